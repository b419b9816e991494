import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { type CitusPlan, citusPlan } from '../support/citus-plans.ts';
import { makeEveryRequest } from '../support/every-request.ts';
import { type RecordedStatement, recordStatements } from '../support/recorded-statements.ts';
import { signerOf } from '../support/signed-cursor.ts';

/** Explains every statement that client requests run, with its parameters, on a Citus coordinator. */
describe.skipIf(inject('citus') === null)('on Citus', () => {
  let testApp: TestApp;
  let owner: string;
  const plans = new Map<RecordedStatement, CitusPlan>();

  beforeAll(async () => {
    testApp = await createTestApp();
    const { organisationId, key } = await testApp.organisation('acme');
    const recording = recordStatements();
    const api = apiOf(await testApp.app.listen({ port: 0, host: '127.0.0.1' }), key);
    await makeEveryRequest(api, await signerOf(testApp.databaseUrl, 'acme', 'report'));
    recording.stop();
    const { rows } = await testApp.pool.query<{ node: string }>(
      `select nodename || ':' || nodeport as node
       from pg_dist_placement join pg_dist_node using (groupid)
       where shardid = get_shard_id_for_distribution_column('tenants', $1::uuid)`,
      [organisationId],
    );
    owner = rows[0]?.node ?? '';
    const client = await testApp.pool.connect();
    for (const statement of recording.statements.values())
      if (/^\s*(select|insert|update|delete)\b/.test(statement.text))
        plans.set(statement, await citusPlan(client, statement.text, statement.values));
    client.release();
  });
  afterAll(() => testApp?.close());

  it('every statement of a request is one task, on the worker that has the organisation', () => {
    const distributed = [...plans].filter(
      ([{ text }, { tasks, isPulled }]) => (tasks > 0 || isPulled) && !text.includes(ofEveryOrganisation),
    );
    expect(distributed.length).toBeGreaterThan(100);
    const elsewhere = distributed.filter(
      ([, { tasks, nodes, isPulled }]) => tasks !== 1 || isPulled || nodes.join() !== owner,
    );
    expect(
      elsewhere.map(([{ text, lines }, plan]) => `${lines[0]}: ${text}\n${plan.text}`).join('\n\n'),
    ).toBe('');
  });

  it('the coordinator itself answers only about keys, locks and the schema', () => {
    const local = [...plans].filter(([, { tasks, isPulled }]) => tasks === 0 && !isPulled);
    const others = local.filter(([{ text }]) => !coordinatorsOwn.some((part) => text.includes(part)));
    expect(others.map(([{ text, lines }]) => `${lines[0]}: ${text}`)).toEqual([]);
  });
});

/** Each process asks for all organisations, every few seconds, whether it has the keys of all suppressions. */
const ofEveryOrganisation = 'select distinct encode(fingerprint';

/** Statements that use no distributed table, identified by a part of their text. */
const coordinatorsOwn = [
  // Keys are looked up before the organisation is known. Changes to keys are numbered by transactions on a single node.
  'look_up_key',
  'changed_api_keys',
  'note_api_keys_used',
  'keys_can_be_trusted',
  // All organisations share one cursor key, which each process reads once.
  'from cursor_key',
  // The organisations table stays on the coordinator.
  'select recommendations_report from organisations',
  'select lake from organisations',
  // A restarted batch runs alone, while other writers of the same type wait for it on the same node.
  'pg_advisory_xact_lock',
  // All organisations share the daily interaction partitions and their indexes.
  'from interaction_partitions',
  // These statements are about the session or the schema.
  'set_config',
  'schema_migrations',
  "from pg_extension where extname = 'citus'",
];
