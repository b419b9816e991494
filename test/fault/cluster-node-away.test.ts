// @module-tag full

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { followFeed } from '../support/change-feed.ts';
import { type LocalPostmaster, localPostmaster } from '../support/local-postmaster.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests a Citus cluster in which a node is killed and stays down for longer than the feed's heartbeat interval. */

const awayMs = 15_000;
const lagMsMax = 1_000;

describe.skipIf(inject('citus') === null)('a cluster', () => {
  const nodes = inject('citus')?.nodes ?? [];
  let postmasters: (LocalPostmaster | undefined)[];
  let server: BuiltServer;
  /** One organisation on each worker. */
  let organisations: { readonly slug: string; readonly key: string; readonly api: Api }[];

  beforeAll(async () => {
    postmasters = await Promise.all(nodes.map(localPostmaster));
    server = await startBuiltServer();
    const slugs = many(12, (at) => `organisation-${at}`);
    const keys = new Map<string, string>();
    for (const slug of slugs) keys.set(slug, await server.createKey(slug));
    const placed = await queryDatabase<{ slug: string; node: string }>(
      server.databaseUrl,
      `select o.slug, n.nodename || ':' || n.nodeport as node from organisations o
       join pg_dist_placement on shardid = get_shard_id_for_distribution_column('tenants', o.organisation_id)
       join pg_dist_node n using (groupid)`,
    );
    organisations = nodes.slice(1).map((url) => {
      const slug = placed.find(({ node }) => node === new URL(url).host)?.slug ?? '';
      const key = keys.get(slug) ?? '';
      return { slug, key, api: apiOf(server.url, key) };
    });
  });
  beforeEach(({ skip }) =>
    skip(postmasters.includes(undefined), 'needs root, and the nodes on this machine'),
  );
  afterAll(() => server.stop());

  it('that lacks a worker streams the changes of the other as fast as before, and reports the detour once', async () => {
    const [away, healthy] = organisations as [(typeof organisations)[0], (typeof organisations)[0]];
    const leaving = new AbortController();
    const streams = [away, healthy].map(({ key }) => readingsOf(server.url, key, leaving.signal));
    for (const { api } of [away, healthy]) await api.upload('tags', [newTag()]);
    await expect.poll(() => streams.map(({ size }) => size)).toEqual([1, 1]);
    const lags = async (ms: number) => {
      const all: number[] = [];
      for (const untilMs = performance.now() + ms; performance.now() < untilMs; await sleep(200)) {
        const tag = newTag();
        expect((await healthy.api.upload('tags', [tag])).status).toBe(200);
        const storedMs = performance.now();
        await expect.poll(() => streams[1]?.has(tag.tag_id), { interval: 5 }).toBe(true);
        all.push((streams[1]?.get(tag.tag_id) ?? 0) - storedMs);
      }
      return Math.max(...all);
    };
    const before = await lags(3_000);
    await postmasters[1]?.kill();
    const during = await lags(awayMs);
    expect((await away.api.upload('tags', [newTag()])).status).toBe(503);
    const { host } = new URL(nodes[1] as string);
    await postmasters[1]?.start();
    console.log(`longest lag ${Math.round(before)} ms, without a worker ${Math.round(during)} ms`);
    expect(during).toBeLessThan(lagMsMax);
    const logged = () =>
      server.log.map((line) => JSON.parse(line)).flatMap(({ worker, msg }) => (worker === host ? msg : []));
    await expect
      .poll(async () => {
        await away.api.upload('tags', [newTag()]);
        return logged();
      })
      .toEqual([expect.stringContaining('the coordinator forwards'), expect.stringContaining('again')]);
    leaving.abort();
  });

  it('whose coordinator dies ends a move with a sentence, and the move can be run again', async () => {
    const [{ slug }] = organisations as [(typeof organisations)[0]];
    const target = new URL(nodes[2] as string).host;
    const move = () => startCommand(server.databaseUrl, 'cluster', 'move', slug, target);
    const moving = move();
    await expect.poll(moving.stdout, { interval: 5 }).toContain('Moving shard');
    await postmasters[0]?.kill();
    const { exitCode, stderr } = await moving.ended;
    await postmasters[0]?.start();
    expect(stderr).toMatch(/^intake-server: the connection to PostgreSQL at \S+ was lost \(.*\); .*\n$/);
    expect(exitCode).toBe(1);
    await expect.poll(async () => (await move().ended).exitCode, { interval: 1_000 }).toBe(0);
  });
});

/** Returns the arrival time of each record in a stream that reconnects. */
function readingsOf(url: string, key: string, signal: AbortSignal): ReadonlyMap<string, number> {
  const arrived = new Map<string, number>();
  const follow = async () => {
    for (let after: string | undefined; !signal.aborted; await sleep(100)) {
      try {
        for await (const { id, cursor } of followFeed(url, key, { ...(after && { after }), signal })) {
          after = cursor;
          if (id !== undefined) arrived.set(id, performance.now());
        }
      } catch {
        // The next iteration reconnects.
      }
    }
  };
  void follow();
  return arrived;
}

function startCommand(databaseUrl: string, ...args: string[]) {
  const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, DATABASE_URL: databaseUrl },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (data) => {
    stdout += data;
  });
  child.stderr.on('data', (data) => {
    stderr += data;
  });
  return {
    stdout: () => stdout,
    ended: once(child, 'close').then(([exitCode]) => ({ exitCode: exitCode as number | null, stderr })),
  };
}
