import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { type AddressInfo, createServer } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Service, startService } from '../../src/cli/serve.ts';
import { readConfig } from '../../src/config.ts';
import type { NewInteraction } from '../../src/interactions/interaction-rows.ts';
import { InteractionWriter } from '../../src/interactions/interaction-writer.ts';
import { KnownReferences } from '../../src/interactions/known-ids.ts';
import { limits } from '../../src/limits.ts';
import { Detours } from '../../src/postgres/cluster/node-detours.ts';
import { NodePools, OwningNodes, uuidHash } from '../../src/postgres/cluster/node-pools.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { interaction } from '../../src/registry/interaction.ts';
import { type Instant, instantOf } from '../../src/registry/times.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { type Api, apiOf } from '../support/api.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { unlimited } from '../support/built-server.ts';
import { citusPlan } from '../support/citus-plans.ts';
import { servingUrl } from '../support/database.ts';
import { many, newTag } from '../support/new-records.ts';
import { recordStatements } from '../support/recorded-statements.ts';

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

it('an id has the same hash as in PostgreSQL', async () => {
  const ids = many(1_000, () => randomUUID());
  const { rows } = await test.pool.query<{ hash: number }>(
    'select uuid_hash(id) as hash from unnest($1::uuid[]) with ordinality as i(id, at) order by at',
    [ids],
  );
  expect(ids.map(uuidHash)).toEqual(rows.map(({ hash }) => hash));
});

it.skipIf(inject('citus') !== null)(
  'on a single PostgreSQL there are no owners, and it is queried once',
  async () => {
    const asked: string[] = [];
    const pool = {
      ...test.pool,
      query: (text: string) => {
        asked.push(text);
        return test.pool.query(text);
      },
    };
    const owners = new OwningNodes(pool as never, 'tenants');
    await owners.watch()();
    expect(asked).toHaveLength(1);
    expect(owners.of(randomUUID())).toBeUndefined();
  },
);

it('a worker that refuses connections is avoided for a short time, the coordinator is used instead, and that is reported once', async () => {
  let tried = 0;
  const closed = createServer((socket) => {
    tried++;
    socket.destroy();
  });
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
  const { port } = closed.address() as AddressInfo;
  const worker = `127.0.0.1:${port}`;
  const reported: object[] = [];
  const detours = new Detours();
  detours.logTo({ begun: (what) => reported.push(what), ended: (what) => reported.push(what) });
  const make = (node: string) =>
    createPool(readConfig({ DATABASE_URL: `postgres://somebody@${node}/nowhere` }), () => {});
  // Uploads and interactions each have their own pools.
  const [pools, others] = many(2, () => new NodePools(test.pool, undefined, make, { detours })) as [
    NodePools,
    NodePools,
  ];
  for (const pool of [pools, pools, others]) {
    const client = await pool.connect(worker);
    expect((await client.query('select current_database() as name')).rows).toEqual([
      { name: new URL(test.databaseUrl).pathname.slice(1) },
    ]);
    client.release();
  }
  expect(tried).toBe(2);
  expect(reported).toEqual([{ worker, cause: expect.stringMatching(/ECONNRESET|terminated/) }]);
  await Promise.all([pools.close(), others.close()]);
  closed.close();
});

it('whichever servers are used, the limit of open connections holds, and idle ones are closed', async () => {
  const config = readConfig({ DATABASE_URL: test.databaseUrl, DATABASE_CONNECTIONS_MAX: '3' });
  const coordinator = createPool(config, () => {});
  const pools = new NodePools(
    coordinator,
    { nodes: new Set('abcd') } as unknown as OwningNodes,
    () => createPool(config, () => {}),
    { openMax: 3 },
  );
  let openMax = 0;
  const asked = new Set<string | undefined>();
  const keepAsking = async (first: number) => {
    for (let at = first; at < first + 60; at++) {
      const node = ['a', 'b', 'c', 'd', undefined][at % 5];
      const client = await pools.connect(node);
      asked.add(node);
      openMax = Math.max(openMax, pools.totalCount);
      await client.query('select');
      client.release();
    }
  };
  await Promise.all([0, 1, 2].map(keepAsking));
  expect({ openMax, asked: asked.size }).toEqual({ openMax: 3, asked: 5 });
  await Promise.all([pools.close(), coordinator.end()]);
});

describe.skipIf(inject('citus') === null)('on Citus', () => {
  let service: Service;
  let apis: Api[];
  const organisationIds: string[] = [];

  beforeAll(async () => {
    service = await startService(
      readConfig({
        ...unlimited,
        DATABASE_URL: servingUrl(test.databaseUrl),
        PORT: '0',
        LOG_LEVEL: 'silent',
      }),
    );
    const made = await Promise.all(many(12, (at) => test.organisation(`organisation-${at}`)));
    organisationIds.push(...made.map(({ organisationId }) => organisationId));
    apis = made.map(({ key }) => apiOf(service.address, key));
  });
  afterAll(() => service.stop());

  it('each organisation is at the node that Citus reports', async () => {
    const owners = new OwningNodes(test.pool, 'tenants');
    await owners.ask();
    expect(owners.nodes.size).toBe(2);
    const ids = [...organisationIds, ...many(200, () => randomUUID())];
    const { rows } = await test.pool.query<{ node: string }>(
      `select nodename || ':' || nodeport as node
       from unnest($1::uuid[]) with ordinality as i(id, at)
       join pg_dist_placement on shardid = get_shard_id_for_distribution_column('tenants', id)
       join pg_dist_node using (groupid) order by at`,
      [ids],
    );
    expect(ids.map((id) => owners.of(id))).toEqual(rows.map(({ node }) => node));
  });

  it('settings of a transaction also apply at the worker', async () => {
    const pool = createPool(readConfig({ DATABASE_URL: test.databaseUrl }), () => {});
    const client = await pool.connect();
    await client.query('begin');
    await client.query(`set local lock_timeout = '1234ms'`);
    const { rows } = await client.query(
      `select current_setting('lock_timeout') as said from tenants where organisation_id = $1`,
      [organisationIds[0]],
    );
    client.release(true);
    await pool.end();
    expect(rows).toEqual([{ said: '1234ms' }]);
  });

  it('uploads and interactions go straight to the workers, and can be read back', async () => {
    const tags = apis.map(() => newTag());
    const sent = { interaction_type: 'SHARE', item_type: 'TAG', event_timestamp: 1_700_000_000 };
    const upload = () =>
      Promise.all(
        apis.map(async (api, at) => {
          expect((await api.upload('tags', [tags[at] as object])).status).toBe(200);
          const { status } = await api.post('/user-interactions', { ...sent, item_id: tags[at]?.tag_id });
          expect(status).toBe(201);
        }),
      );
    // Requests go through the coordinator until the nodes are known.
    const reachesWorkers = async () => {
      await upload();
      return Promise.all((inject('citus')?.nodes.slice(1) ?? []).map(countSessions));
    };
    await expect.poll(async () => (await reachesWorkers()).every((sessions) => sessions > 1)).toBe(true);
    for (const [at, api] of apis.entries())
      expect((await api.get(`/v1/data/tags/${tags[at]?.tag_id}`)).status).toBe(200);
  });

  it('a commit of several organisations stays on their worker, and each finds its own data', async () => {
    const tag = newTag();
    for (const api of apis) expect((await api.upload('tags', [tag])).status).toBe(200);
    const owners = new OwningNodes(test.pool, 'tenants');
    await owners.ask();
    const pools = new NodePools(test.pool, owners, (node) =>
      createPool(readConfig({ DATABASE_URL: at(node) }), () => {}),
    );
    const writer = new InteractionWriter(pools, new KnownReferences(new Suppressions([])));
    // The first batch has too many rows to send each value as a parameter.
    const counts = apis.map((_, at) => (at === 0 ? 3 * limits.rowsWrittenOutMax : 1 + (at % 5)));
    const before = await storedOf();
    const recording = recordStatements();
    const written = await Promise.all(
      organisationIds.flatMap((organisationId, at) =>
        many(counts[at] as number, () => writer.write(shareOf(organisationId, tag.tag_id))),
      ),
    );
    await writer.close();
    recording.stop();
    expect(new Set(written)).toEqual(new Set([true]));
    const after = await storedOf();
    for (const [at, organisationId] of organisationIds.entries())
      for (const table of ['interactions', 'changes', 'counts'] as const)
        expect((after.get(organisationId)?.[table] ?? 0) - (before.get(organisationId)?.[table] ?? 0)).toBe(
          counts[at],
        );
    const plans = await Promise.all(
      [...recording.statements.values()]
        .filter(({ text }) => /^insert into (interactions|changes|record_count_changes) /.test(text))
        .map(({ text, values }) => planAtOwner(text, values)),
    );
    expect(Math.max(...plans.map(({ plan }) => plan.tasks))).toBeGreaterThan(1);
    for (const { owner, plan } of plans)
      expect({ nodes: [...new Set(plan.nodes)], isPulled: plan.isPulled }).toEqual({
        nodes: [owner],
        isPulled: false,
      });
  });

  /** Returns the stored interactions, their change log entries and their counts, by organisation. */
  async function storedOf() {
    const { rows } = await test.pool.query<
      { organisation_id: string } & Record<'interactions' | 'changes' | 'counts', number>
    >(
      `select organisation_id, sum(interactions)::integer as interactions, sum(changes)::integer as changes,
         sum(counts)::integer as counts
       from (select organisation_id, 1 as interactions, 0 as changes, 0 as counts from interactions
             union all select organisation_id, 0, size, 0 from changes where type = 'interactions'
             union all select organisation_id, 0, 0, records from record_count_changes where type = 'interactions'
             union all select organisation_id, 0, 0, records from record_counts where type = 'interactions') as all_of_them
       group by 1`,
    );
    return new Map(rows.map((row) => [row.organisation_id, row]));
  }

  /** Returns the URL of a node's database. */
  function at(node: string): string {
    const url = new URL(test.databaseUrl);
    url.host = node;
    return url.href;
  }

  /** Explains the statement on the node that owns the organisation in the first parameter. */
  async function planAtOwner(text: string, values: readonly unknown[]) {
    const owners = new OwningNodes(test.pool, 'tenants');
    await owners.ask();
    const owner = owners.of(String(values[0])) ?? '';
    const client = new pg.Client({ connectionString: at(owner) });
    await client.connect();
    try {
      await client.query('set citus.explain_all_tasks = on');
      return { owner, plan: await citusPlan(client, text, values) };
    } finally {
      await client.end();
    }
  }

  /** Counts the service's own sessions, but not the coordinator's. */
  async function countSessions(node: string): Promise<number> {
    const client = new pg.Client({ connectionString: node });
    await client.connect();
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::integer as count from pg_stat_activity where application_name = 'intake-server' and datname = $1`,
      [new URL(test.databaseUrl).pathname.slice(1)],
    );
    await client.end();
    return rows[0]?.count ?? 0;
  }
});

function shareOf(organisationId: string, tagId: string): NewInteraction {
  const fields: Record<string, string | number> = {
    interaction_type: 'SHARE',
    item_type: 'TAG',
    item_id: tagId,
    event_timestamp: 1_700_000_000,
  };
  return {
    organisationId,
    interactionId: randomUUIDv7(),
    itemType: 'TAG',
    itemId: tagId,
    studentId: null,
    row: Object.keys(interaction).map((name) => fields[name] ?? null),
    eventTime: instantOf(1_700_000_000_000) as Instant,
  };
}
