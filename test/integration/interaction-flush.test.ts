import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { recordInteraction } from '../../src/http/routes/interactions.ts';
import { InteractionWriter } from '../../src/interactions/interaction-writer.ts';
import { KnownReferences } from '../../src/interactions/known-ids.ts';
import type { OwningNodes } from '../../src/postgres/cluster/node-pools.ts';
import { NodePools } from '../../src/postgres/cluster/node-pools.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { many } from '../support/new-records.ts';
import { allowingTriggers, queryDatabase } from '../support/query-database.ts';

/**
 * Tests interactions that share a flush, with and without keys. The flush is pipelined on a single PostgreSQL server,
 * and runs in a transaction on a Citus worker. The statements for Citus work on any PostgreSQL server.
 */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const toWorker = { of: () => 'worker:5432', nodes: new Set(['worker:5432']) } as unknown as OwningNodes;

/** Counts how many interactions were written together, and how many were written alone. */
class CountingWriter extends InteractionWriter {
  writtenCount = 0;

  override async write(...args: Parameters<InteractionWriter['write']>): Promise<boolean> {
    const written = await super.write(...args);
    if (written) this.writtenCount++;
    return written;
  }
}

describe.each([
  ['in one exchange', () => new NodePools(test.pool)],
  ['in a transaction at a worker', () => new NodePools(test.pool, toWorker, () => test.pool)],
])('%s', (_how, poolsOf) => {
  const itemId = randomUUID();
  let writer: CountingWriter;
  let organisationId: string;
  beforeEach(async () => {
    writer = new CountingWriter(poolsOf(), new KnownReferences(new Suppressions([])));
    organisationId = await newOrganisation();
  });

  const newOrganisation = async () => {
    const made = await test.organisation(`acme-${randomUUID().slice(0, 8)}`);
    await test.pool.query(`insert into tags values ($1, $2, 'vegan', null, null, false)`, [
      made.organisationId,
      itemId,
    ]);
    return made.organisationId;
  };

  const record = (user_id: string, idempotencyKey?: string, fields: object = {}, to = organisationId) => {
    const sent = {
      interaction_type: 'SHARE',
      item_type: 'TAG',
      item_id: itemId,
      event_timestamp: 1,
      user_id,
    };
    const body = Buffer.from(JSON.stringify({ ...sent, ...fields }));
    const request = { organisationId: to, requestId: randomUUID(), body, idempotencyKey };
    return recordInteraction({ pool: test.pool, writer }, request);
  };

  /** Returns the stored interactions with their counts, change log and keys. */
  const stateOf = async (of = organisationId) => {
    const { rows } = await test.pool.query<{ users: string[]; counted: number; changed: string[] }>(
      `select array(select user_id from interactions where organisation_id = $1 order by 1) as users,
         array(select interaction_id::text from interactions where organisation_id = $1 order by 1) as ids,
         (select coalesce(sum(records), 0)::integer from (
            select records from record_count_changes where organisation_id = $1 and type = 'interactions'
            union all select records from record_counts where organisation_id = $1 and type = 'interactions') as c) as counted,
         array(select unnest(ids)::text from changes where organisation_id = $1 order by 1) as changed,
         array(select interaction_id::text from interaction_idempotency_keys where organisation_id = $1 order by 1) as claimed`,
      [of],
    );
    return rows[0] as {
      users: string[];
      ids: string[];
      counted: number;
      changed: string[];
      claimed: string[];
    };
  };

  /** Checks that the counts and the change log match the stored interactions. */
  const expectStored = async (users: readonly string[], of?: string) => {
    const state = await stateOf(of);
    expect(state.users).toEqual(users.toSorted());
    expect(state.counted).toBe(users.length);
    expect(state.changed).toEqual(state.ids);
    return state;
  };

  it('interactions with and without keys are stored, counted and logged once, in two organisations', async () => {
    const other = await newOrganisation();
    const users = many(60, (at) => `user-${at}`);
    const key = (at: number) => (at % 2 === 0 ? `key-${at % 20}-${at}` : undefined);
    const recorded = await Promise.all(
      [organisationId, other].flatMap((to) => users.map((user, at) => record(user, key(at), {}, to))),
    );
    expect(recorded.map(({ isRepeated }) => isRepeated)).toEqual(Array(120).fill(false));
    expect(writer.writtenCount).toBe(120);
    for (const of of [organisationId, other]) {
      const { claimed, ids } = await expectStored(users, of);
      expect(claimed).toHaveLength(30);
      expect(ids).toEqual(expect.arrayContaining(claimed));
    }
  });

  it('retries find the first, in the same flush and in a later one, and are not counted', async () => {
    const keys = many(5, () => randomUUID());
    const send = () => Promise.all(keys.flatMap((key) => many(3, () => record(`user of ${key}`, key))));
    const recorded = [...(await send()), ...(await send())];
    expect(recorded.filter(({ isRepeated }) => !isRepeated)).toHaveLength(5);
    const ids = new Map(recorded.map(({ interaction }) => [interaction.user_id, interaction.interaction_id]));
    for (const { interaction } of recorded)
      expect(ids.get(interaction.user_id as string)).toBe(interaction.interaction_id);
    const { claimed } = await expectStored(keys.map((key) => `user of ${key}`));
    expect(claimed).toEqual([...ids.values()].toSorted());
  });

  it('another body under a key fails alone, and a key is free again after a day', async () => {
    await record('first', 'used');
    const [changed, fresh] = await Promise.allSettled([record('second', 'used'), record('third', 'fresh')]);
    expect(changed).toMatchObject({ status: 'rejected', reason: { code: 'idempotency_key_reused' } });
    expect(fresh).toMatchObject({ status: 'fulfilled', value: { isRepeated: false } });
    await test.pool.query(
      `update interaction_idempotency_keys set claimed_at = now() - interval '25 hours' where organisation_id = $1`,
      [organisationId],
    );
    const again = await Promise.all([record('second', 'used'), record('third', 'fresh')]);
    expect(again.map(({ isRepeated }) => isRepeated)).toEqual([false, false]);
    await expectStored(['first', 'second', 'third', 'third']);
  });

  it('an interaction with a missing reference keeps its key, and does not delay the others', async () => {
    const missing = { item_id: randomUUID() };
    const answers = await Promise.allSettled([
      record('one', 'key-1'),
      record('two', 'key-2', missing),
      record('three'),
      record('four', undefined, missing),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'rejected']);
    const { claimed, ids } = await expectStored(['one', 'three']);
    const { rows } = await test.pool.query<{ record_id: string | null }>(
      'select record_id from rejections where organisation_id = $1 order by record_id',
      [organisationId],
    );
    expect(rows.map(({ record_id }) => record_id)).toEqual([claimed.find((id) => !ids.includes(id)), null]);
  });

  it('rows that PostgreSQL drops are answered as failed, and the others of the flush are stored once', async () => {
    const run = (text: string) => queryDatabase(allowingTriggers(test.databaseUrl), text);
    await run(`create or replace function drop_row() returns trigger language plpgsql as
      $$ begin return case when new.user_id like 'dropped%' then null else new end; end $$`);
    await run('create trigger drops before insert on interactions for each row execute function drop_row()');
    const users = ['kept-1', 'dropped-1', 'kept-2', 'dropped-2', 'kept-3'];
    const answers = await Promise.allSettled(
      users.map((user, at) => record(user, at > 2 ? `key-${at}` : undefined)),
    ).finally(() => run('drop trigger drops on interactions'));
    const stored = users.filter((_, at) => answers[at]?.status === 'fulfilled');
    expect(stored).toEqual(users.filter((user) => user.startsWith('kept')));
    await expectStored(stored);
  });
});
