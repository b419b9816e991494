// @module-tag full

import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createEmptyDatabase, createTestDatabase } from '../support/database.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';

/** Runs as many processes as a large operator would, on one database or on the nodes of a Citus cluster. */

const processes = 12;
const connectionsMax = 2;
/**
 * For interactions, a process opens two connections to each worker and three to the coordinator. Keys, maintenance and
 * readiness use another seven, all to the coordinator.
 */
const workerMax = processes * (connectionsMax + 2);
const coordinatorMax = processes * (connectionsMax + 3 + 7);

let databaseUrl: string;
let servers: BuiltServer[];
let keys: string[];
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  const env = { DATABASE_URL: databaseUrl, DATABASE_CONNECTIONS_MAX: String(connectionsMax) };
  servers = await Promise.all(many(processes, () => startBuiltServer(env)));
  keys = [];
  for (const at of many(4, (at) => at))
    keys.push((await servers[0]?.createKey(`organisation-${at}`)) as string);
});
afterAll(() => Promise.all(servers.map((server) => server.stop())));

/** Returns the number of connections to each node. The first node is the coordinator, or the only server. */
async function connections(): Promise<number[]> {
  const { pathname } = new URL(databaseUrl);
  const nodes = inject('citus')?.nodes ?? [inject('postgresUrl')];
  return Promise.all(
    nodes.map(async (node) => {
      const [row] = await queryDatabase<{ count: number }>(
        node,
        `select count(*)::integer as count from pg_stat_activity
         where application_name = 'intake-server' and datname = $1`,
        [pathname.slice(1)],
      );
      return row?.count ?? 0;
    }),
  );
}

/** Sends more concurrent uploads, interactions and reads than there are connections. A slow machine refuses some. */
async function work(api: Api): Promise<number> {
  const tag = newTag();
  await api.upload('tags', [tag]);
  const sent = { interaction_type: 'SHARE', item_type: 'TAG', item_id: tag.tag_id, event_timestamp: 1 };
  const answers = await Promise.all([
    ...many(3, () => api.upload('tags', [newTag()])),
    ...many(3, () => api.post('/user-interactions', sent)),
    ...many(3, () => api.get('/v1/data/tags?limit=10')),
  ]);
  return answers.filter(({ status }) => status < 300).length;
}

it(`${processes} processes under load do not exceed their connections to a server`, async () => {
  let isOver = false;
  const working = Promise.all(servers.flatMap(({ url }) => keys.map((key) => work(apiOf(url, key))))).finally(
    () => {
      isOver = true;
    },
  );
  const seen: number[][] = [];
  do seen.push(await connections());
  while (!isOver);
  const answered = (await working).reduce((sum, count) => sum + count);
  const nodes = seen[0]?.length ?? 0;
  const most = many(nodes, (node) => Math.max(...seen.map((counts) => counts[node] ?? 0)));
  console.log(`${answered} requests, at most ${most.join(', ')} connections in ${seen.length} looks`);
  expect(answered).toBeGreaterThan(processes * connectionsMax);
  expect(most[0]).toBeLessThanOrEqual(coordinatorMax);
  for (const worker of most.slice(1)) expect(worker).toBeLessThanOrEqual(workerMax);
  // All nodes together get as many upload and read connections as a single server. While one connection replaces
  // another, both count.
  const overAll = coordinatorMax + (nodes - 1) * processes * 3;
  const total = async () => (await connections()).reduce((sum, count) => sum + count, 0);
  await expect.poll(total).toBeLessThanOrEqual(overAll);
});

it(`${processes} that migrate an empty database at the same time run each migration once`, async () => {
  const url = await createEmptyDatabase();
  const all = await Promise.all(many(processes, () => runCommand(['migrate'], { DATABASE_URL: url })));
  expect(all.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(many(processes, () => [0, '']));
  const applied = all.flatMap(({ stdout }) =>
    stdout.split('\n').filter((line) => line.startsWith('applied')),
  );
  expect(applied.length).toBeGreaterThan(0);
  expect(applied.toSorted()).toEqual([...new Set(applied)].toSorted());
  const noted = await queryDatabase(url, 'select name from schema_migrations');
  expect(noted).toHaveLength(applied.length);
});
