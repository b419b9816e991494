// @module-tag full

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { type LocalPostmaster, localPostmaster } from '../support/local-postmaster.ts';
import { many, newTag } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';

/**
 * Eight clients store records and interactions on a Citus cluster while its shards are moved and split, and a worker is
 * killed. The clients retry every failed request, unchanged, until it succeeds.
 */

const moves = Number(process.env.MOVES ?? 3);
const splits = Number(process.env.SPLITS ?? 1);
const kills = Number(process.env.KILLS ?? 3);
const uploaders = 8;
const recordsPerUpload = 20;

/** Sends one organisation's requests one after another, and remembers which records must be stored. */
interface Uploader {
  readonly slug: string;
  readonly api: Api;
  /** The service's log. */
  readonly log: readonly string[];
  readonly names: Map<string, string>;
  readonly interactionIds: Set<string>;
  uploads: number;
  /** All unsuccessful responses, with their times. */
  readonly refusals: { readonly ms: number; readonly status: number; readonly code: string }[];
  slowestMs: number;
}

/** Returns the error code of the whole request, or of an upload's only batch. */
const codeOf = ({ body }: Answer): string => body.code ?? body.batches?.[0]?.data.errors[0].code;

/** Returns whether the response allows a retry: nothing was stored, or the Idempotency-Key makes a retry safe. */
const isRetryable = (answer: Answer) =>
  answer.status === 503 || answer.status === 429 || codeOf(answer) === 'outcome_unknown';

async function untilAnswered(uploader: Uploader, send: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const beganMs = performance.now();
    const answer = await send();
    uploader.slowestMs = Math.max(uploader.slowestMs, performance.now() - beganMs);
    if (answer.status < 300) return answer;
    uploader.refusals.push({ ms: performance.now(), status: answer.status, code: codeOf(answer) });
    if (!isRetryable(answer)) {
      const requestId = answer.headers.get('x-request-id') ?? '';
      const logged = uploader.log.filter((line) => line.includes(requestId));
      throw new Error([answer.status, JSON.stringify(answer.body), ...logged].join('\n'));
    }
    await sleep(50);
  }
}

async function upload(uploader: Uploader, round: number): Promise<void> {
  const known = [...uploader.names.keys()].slice(-recordsPerUpload / 2);
  const changed = known.map((tag_id) => ({ tag_id, name: `changed in ${round}` }));
  const records = [
    ...changed,
    ...many(recordsPerUpload - changed.length, () => newTag({ name: `made in ${round}` })),
  ];
  const headers = { 'idempotency-key': randomUUID() };
  const { body } = await untilAnswered(uploader, () =>
    uploader.api.post('/v1/data/tags', { records }, headers),
  );
  expect(body.batches[0].data.counts).toMatchObject({ failed: 0 });
  for (const { tag_id, name } of records) uploader.names.set(tag_id, name);
  uploader.uploads++;
}

async function record(uploader: Uploader): Promise<void> {
  const [item_id] = uploader.names.keys();
  const sent = { interaction_type: 'SHARE', item_type: 'TAG', item_id, event_timestamp: 1_700_000_000 };
  const headers = { 'idempotency-key': randomUUID() };
  const { body } = await untilAnswered(uploader, () =>
    uploader.api.post('/user-interactions', sent, headers),
  );
  uploader.interactionIds.add(body.interaction_id);
}

describe.skipIf(inject('citus') === null)('a cluster', () => {
  let server: BuiltServer;
  let all: Uploader[];
  let isStopping = false;
  let working: Promise<void>[];

  beforeAll(async () => {
    server = await startBuiltServer();
    all = [];
    for (const slug of many(uploaders, (at) => `organisation-${at}`)) {
      const api = apiOf(server.url, await server.createKey(slug));
      all.push({
        slug,
        api,
        log: server.log,
        names: new Map(),
        interactionIds: new Set(),
        uploads: 0,
        refusals: [],
        slowestMs: 0,
      });
    }
    working = all.map(async (uploader) => {
      for (let round = 0; !isStopping; round++) {
        await upload(uploader, round);
        await record(uploader);
      }
    });
  });
  afterAll(async () => {
    isStopping = true;
    await Promise.allSettled(working);
    await server.stop();
  });

  const workers = async () =>
    queryDatabase<{ node: string }>(
      server.databaseUrl,
      `select nodename || ':' || nodeport as node from pg_dist_node where groupid > 0 order by nodeid`,
    );
  const nodesOf = async () => {
    const rows = await queryDatabase<{ slug: string; node: string }>(
      server.databaseUrl,
      `select o.slug, n.nodename || ':' || n.nodeport as node from organisations o
       join pg_dist_placement on shardid = get_shard_id_for_distribution_column('tenants', o.organisation_id)
       join pg_dist_node n using (groupid)`,
    );
    return new Map(rows.map(({ slug, node }) => [slug, node]));
  };
  /** Waits until every client has received a response again. */
  const untilAllGoOn = async () => {
    const before = all.map(({ uploads }) => uploads);
    const goOn = () => all.every(({ uploads }, at) => uploads > (before[at] ?? 0) + 1);
    await Promise.race([expect.poll(goOn).toBe(true), ...working]);
  };

  it(`whose shards are moved ${moves} times refuses nobody for good`, { timeout: 1_800_000 }, async () => {
    for (let move = 0; move < moves; move++) {
      const { slug } = all[move % uploaders] as Uploader;
      const here = (await nodesOf()).get(slug);
      const there = (await workers()).find(({ node }) => node !== here)?.node ?? '';
      await server.run('cluster', 'move', slug, there);
      expect((await nodesOf()).get(slug)).toBe(there);
      await untilAllGoOn();
    }
  });

  it(`in which ${splits} organisations get their own shard loses no write that waited`, {
    timeout: 1_800_000,
  }, async () => {
    for (let split = 0; split < splits; split++) {
      await queryDatabase(
        server.databaseUrl,
        `select isolate_tenant_to_new_shard('tenants', organisation_id, 'CASCADE', 'block_writes')
         from organisations where slug = $1`,
        [all[split]?.slug],
      );
      await untilAllGoOn();
    }
  });

  it(`of which a worker is killed ${kills} times serves the others all the time`, {
    timeout: 1_800_000,
  }, async ({ skip }) => {
    const urls = inject('citus')?.nodes.slice(1) ?? [];
    const postmasters: (LocalPostmaster | undefined)[] = [];
    for (const url of urls) postmasters.push(await localPostmaster(url));
    if (postmasters.includes(undefined)) return skip('needs root, and the workers on this machine');
    for (let kill = 0; kill < kills; kill++) {
      const at = kill % urls.length;
      const { host } = new URL(urls[at] as string);
      const nodes = await nodesOf();
      const elsewhere = all.filter(({ slug }) => nodes.get(slug) !== host);
      const refusedBefore = elsewhere.map(({ refusals }) => refusals.length);
      const uploadsBefore = elsewhere.map(({ uploads }) => uploads);
      await postmasters[at]?.kill();
      // The other clients continue before the worker is back.
      const goOn = () => elsewhere.every(({ uploads }, which) => uploads > (uploadsBefore[which] ?? 0) + 2);
      await Promise.race([expect.poll(goOn).toBe(true), ...working]);
      await postmasters[at]?.start();
      await untilAllGoOn();
      expect(elsewhere.map(({ refusals }) => refusals.length)).toEqual(refusedBefore);
    }
  });

  it('has everything that was acknowledged, once', async () => {
    isStopping = true;
    await Promise.all(working);
    for (const { slug, api, names, interactionIds, uploads, refusals, slowestMs } of all) {
      const ids = await queryDatabase<{ organisation_id: string }>(
        server.databaseUrl,
        `select organisation_id from organisations where slug = $1`,
        [slug],
      );
      const own = [ids[0]?.organisation_id];
      const tags = await queryDatabase<{ tag_id: string; name: string }>(
        server.databaseUrl,
        'select tag_id, name from tags where organisation_id = $1',
        own,
      );
      expect(Object.fromEntries(tags.map(({ tag_id, name }) => [tag_id, name]))).toEqual(
        Object.fromEntries(names),
      );
      const interactions = await queryDatabase<{ interaction_id: string }>(
        server.databaseUrl,
        'select interaction_id from interactions where organisation_id = $1',
        own,
      );
      expect(interactions.map(({ interaction_id }) => interaction_id).toSorted()).toEqual(
        [...interactionIds].toSorted(),
      );
      const receipts = await queryDatabase<{ count: number }>(
        server.databaseUrl,
        'select count(*)::integer as count from receipts where organisation_id = $1',
        own,
      );
      expect(receipts[0]?.count).toBe(uploads);
      const overview = await overviewOf(api);
      expect([overview.tags?.records, overview.interactions?.records]).toEqual([
        names.size,
        interactionIds.size,
      ]);
      const codes = Object.groupBy(refusals, ({ status, code }) => `${status} ${code}`);
      console.log(slug, {
        uploads,
        records: names.size,
        interactions: interactionIds.size,
        slowestMs: Math.round(slowestMs),
        refusals: Object.fromEntries(Object.entries(codes).map(([what, some]) => [what, some?.length])),
      });
    }
  });
});
