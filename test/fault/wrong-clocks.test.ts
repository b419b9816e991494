// @module-tag full
// @module-tag long

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { followFeed, readFeed } from '../support/change-feed.ts';
import { FakeClock, fakeClockIsInstalled } from '../support/fake-clock.ts';
import { freePort } from '../support/free-port.ts';
import { linesOf } from '../support/lines-of.ts';
import { badTag, many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { expectReady } from '../support/ready.ts';
import { scrapeMetrics } from '../support/scrape-metrics.ts';

/** Two processes on one database, whose clocks differ by nine days. Only one of them agrees with the database. */

const seconds = 9 * 24 * 3_600;
const differs = (isAhead: boolean) =>
  new RegExp(
    `clock of this process is 77\\d{4} seconds ${isAhead ? 'ahead of' : 'behind'} the clock of the database`,
  );

describe.skipIf(!fakeClockIsInstalled)('a process whose clock is wrong', () => {
  let right: BuiltServer;
  let key: string;
  const clocks = { ahead: new FakeClock(9), behind: new FakeClock(-9), later: new FakeClock(0) };
  const wrong = new Map<string, AdminServer>();
  const metricsPorts = new Map<string, number>();

  async function start(name: keyof typeof clocks): Promise<AdminServer> {
    const port = await freePort();
    metricsPorts.set(name, port);
    const env = { DATABASE_URL: right.databaseUrl, METRICS_PORT: String(port), ...clocks[name].env };
    wrong.set(name, await startAdminServer(env));
    return wrong.get(name) as AdminServer;
  }
  const metric = async (name: string, series: string) =>
    (await scrapeMetrics(`http://127.0.0.1:${metricsPorts.get(name)}/metrics`)).get(series);
  const api = ({ url }: { url: string }): Api => apiOf(url, key);
  const isElected = ({ log }: BuiltServer) => log.some((line) => line.includes('does the maintenance'));

  beforeAll(async () => {
    right = await startBuiltServer();
    key = await right.createKey('acme', ...everyPermission);
    await start('ahead');
    await start('behind');
  });
  afterAll(async () => {
    for (const server of [...wrong.values(), right]) await server.stop();
  });

  it.each(['ahead', 'behind'] as const)('%s: is not ready, and names itself everywhere', async (name) => {
    const server = wrong.get(name) as BuiltServer;
    const { status, body } = await apiOf(server.url).get('/health/ready');
    expect([status, body.code]).toEqual([503, 'clock_differs']);
    expect(body.message).toMatch(differs(name === 'ahead'));
    await expect
      .poll(() => server.log.filter((line) => differs(name === 'ahead').test(line)))
      .toHaveLength(1);
    await expectReady(right.url);
  });

  it.each(['ahead', 'behind'] as const)('%s: stores nothing, and reads', async (name) => {
    const { admin, url } = wrong.get(name) as AdminServer;
    const server = api({ url });
    const tag = newTag();
    for (const answer of [
      await server.upload('tags', [tag]),
      await server.post('/user-interactions', { interaction_type: 'SHARE' }),
      await server.post('/v1/erasures', { user_ids: ['u'] }),
      // A key that it issues would expire too late or never work.
      await admin.post('/admin/v1/keys', { organisation: 'acme', expires_at: '2100-01-01T00:00:00Z' }),
      await admin.send('/admin/v1/organisations/acme', { method: 'DELETE' }),
    ])
      expect([answer.status, answer.body.code]).toEqual([503, 'clock_differs']);
    expect((await admin.get('/admin/v1/organisations')).status).toBe(200);
    expect((await server.get(`/v1/data/tags/${tag.tag_id}`)).status).toBe(404);
    // A process that is behind is the only one here that anybody asks for the feed, so it has to see today's changes.
    const after = (await readFeed(server)).cursor;
    await api(right).upload('tags', [tag]);
    await expect
      .poll(async () => (await readFeed(server, { after })).changes.map(({ id }) => id))
      .toEqual([tag.tag_id]);
  });

  it.each(['ahead', 'behind'] as const)(
    '%s: a backup of the log notes the time of the database',
    async (name) => {
      const folder = mkdtempSync(join(tmpdir(), 'intake-log-'));
      onTestFinished(() => rmSync(folder, { recursive: true }));
      await (wrong.get(name) as BuiltServer).run('backup-log', '--to', folder);
      const [{ age } = { age: 0 }] = await queryDatabase<{ age: number }>(
        right.databaseUrl,
        'select abs(extract(epoch from now() - written_at))::float8 as age from log_backups',
      );
      expect(age).toBeLessThan(600);
      const { written_at } = linesOf(readFileSync(join(folder, 'erasures.ndjson'), 'utf8')).at(-1);
      expect(Math.abs(Date.now() - Date.parse(written_at))).toBeLessThan(600_000);
    },
  );

  it.each(['ahead', 'behind'] as const)('%s: no command takes a time from the machine', async (name) => {
    const { run } = wrong.get(name) as BuiltServer;
    const rows = async () => {
      const [row] = await queryDatabase(
        right.databaseUrl,
        `select (select count(*) from api_keys) as keys, (select count(*) from admin_tokens) as tokens,
           (select count(*) from console_links) as links, (select count(*) from audit_log) as entries`,
      );
      return row;
    };
    const before = await rows();
    for (const command of [
      'keys issue --organisation acme --expires 30d',
      'keys list --expiring 30d',
      'tokens issue late --expires 30d',
      'console link --organisation acme',
      'audit --since 30d',
      'organisations suspend acme',
      'organisations export acme --to unused',
    ])
      await expect(run(...command.split(' '))).rejects.toThrow(differs(name === 'ahead'));
    expect(await rows()).toEqual(before);
  });

  it('what an earlier process with such a clock wrote does not stop the feed', async () => {
    const { cursor: after } = await readFeed(api(right));
    const before = newTag();
    const tags = [newTag(), newTag()];
    await api(right).upload('tags', [before]);
    await readFeed(api(right));
    // One change has no number yet, and the other got one from the process that wrote it.
    for (const [at, days] of [9, 20].entries()) {
      await api(right).upload('tags', [tags[at]]);
      if (at === 0) await readFeed(api(right));
      await queryDatabase(
        right.databaseUrl,
        `update changes set change_id = overlay(change_id::text placing left(uuid_floor(now() + make_interval(days => ${days}))::text, 13) from 1 for 13)::uuid
         where '${tags[at]!.tag_id}' = any (ids)`,
      );
    }
    const last = newTag();
    await api(right).upload('tags', [last]);
    const ids = [before, ...tags, last].map(({ tag_id }) => tag_id);
    for (const server of [right, ...wrong.values()]) {
      const { changes } = await readFeed(api(server), { after });
      expect(changes.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
      const streamed = new Set<string | undefined>();
      const stopping = new AbortController();
      for await (const { id } of followFeed(server.url, key, { after, signal: stopping.signal })) {
        streamed.add(id);
        if (ids.every((one) => streamed.has(one))) break;
      }
      stopping.abort();
    }
  });

  it('a leader whose clock jumps deletes nothing, and another process takes over', async () => {
    const counts = async () => {
      const [row] = await queryDatabase(
        right.databaseUrl,
        `select (select count(*)::integer from rejections) as rejections,
           (select count(*)::integer from upload_idempotency_keys) as keys,
           (select count(*)::integer from access_requests where state = 'done') as collected`,
      );
      return row;
    };
    await api(right).post(
      '/v1/data/tags',
      { records: many(50, () => badTag()) },
      { 'idempotency-key': randomUUID() },
    );
    await api(right).post('/v1/access-requests', { user_ids: [randomUUID()] });
    await expect.poll(async () => (await counts())?.collected).toBe(1);
    const before = await counts();
    expect(before).toMatchObject({ rejections: 50, keys: 1 });
    const later = await start('later');
    await expectReady(later.url);
    const firstUrl = right.url;
    const { databaseUrl } = right;
    await right.stop();
    await expect.poll(() => isElected(later)).toBe(true);
    // Without this lock, the leader could lose the lease before it looks for expired access requests, which are kept for a
    // week.
    const locking = new pg.Client({ connectionString: databaseUrl });
    onTestFinished(() => locking.end());
    await locking.connect();
    await locking.query('begin; select from leases for update');
    clocks.later.set(9);
    const hasErased = 'intake_maintenance_last_success_timestamp_seconds{chore="erase people"}';
    const hasRun = async () =>
      Number(await metric('later', hasErased)) > Date.now() / 1_000 + seconds / 2 ||
      (await metric('later', 'intake_maintenance_leader')) === 0;
    await expect.poll(hasRun).toBe(true);
    await locking.end();
    await expect
      .poll(async () => (await apiOf(later.url).get('/health/ready')).body.code)
      .toBe('clock_differs');
    right = await startBuiltServer({ DATABASE_URL: databaseUrl });
    expect(right.url).not.toBe(firstUrl);
    await expect.poll(() => isElected(right)).toBe(true);
    for (const name of ['ahead', 'behind'])
      expect(isElected(wrong.get(name) as BuiltServer), name).toBe(false);
    expect(await counts()).toEqual(before);
    clocks.later.set(0);
    await expectReady(later.url);
    expect((await api(later).upload('tags', [newTag()])).status).toBe(200);
  });
});
