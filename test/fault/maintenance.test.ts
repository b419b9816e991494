// @module-tag full
// @module-tag long

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { type CountingPostgres, startCountingPostgres } from '../support/counting-postgres.ts';
import { expectInTime } from '../support/in-time.ts';
import { badTag, many, newTag } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';

/** When several processes share a database, one of them does the maintenance for all organisations. */

/** The default is one kill, because each kill takes up to 20 seconds. */
const kills = Number(process.env.MAINTENANCE_KILLS ?? 1);
const organisations = 2_000;
/** This is long enough for one round of the ten-second chores, and too short for three. */
const watchedMs = 11_000;

let postgres: CountingPostgres;
const servers: BuiltServer[] = [];
beforeAll(async () => {
  postgres = await startCountingPostgres();
  await startServers(3);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  await postgres.stop();
});

async function startServers(count: number): Promise<void> {
  const started = many(count, () => startBuiltServer({ DATABASE_URL: postgres.url }));
  servers.push(...(await Promise.all(started)));
}

const isRunning = ({ process }: BuiltServer) => process.exitCode === null && process.signalCode === null;
/** Starts another process if one is missing, so that it can take over. */
async function startMissing(): Promise<void> {
  if (servers.filter(isRunning).length < 2) await startServers(1);
}

const elections = ({ log }: BuiltServer) =>
  log.filter((line) => line.includes('does the maintenance')).length;

const allElections = () => servers.reduce((sum, server) => sum + elections(server), 0);

/** Returns the running process that was elected last, according to the logs. */
function elected(): BuiltServer {
  const lastElectedAt = ({ log }: BuiltServer): number => {
    const line = log.findLast((each) => each.includes('does the maintenance'));
    return line === undefined ? 0 : new Date(JSON.parse(line).time).getTime();
  };
  const [newest] = servers.filter(isRunning).toSorted((a, b) => lastElectedAt(b) - lastElectedAt(a));
  return newest as BuiltServer;
}

/** Waits for another election, and returns how long that took. */
async function msUntilElected(before: number): Promise<number> {
  const began = performance.now();
  await expect.poll(allElections, { interval: 50 }).toBeGreaterThan(before);
  return performance.now() - began;
}

/** Returns the number of maintenance statements, for the election and for the work. */
async function countStatements(): Promise<{ election: number; work: number }> {
  const counts = { election: 0, work: 0 };
  for (const { query, calls } of await postgres.calls()) {
    // Every process polls for changed keys, checks the settings of the server and of a cluster's workers, configures the
    // connections that it opens, and reports its activity once a minute. With one query for all organisations, the leader
    // checks whether there is anything to settle, erase, collect, expire, remove or measure.
    const ofEach =
      /changed_api_keys|note_api_keys_used|set_config|pg_db_role_setting|pg_extension|insert into processes/;
    if (ofEach.test(query)) continue;
    const looks =
      /unsettled_batches|erasure|access_requests|retention_progress|deleted_at|quota|\bjobs\b|user_ids|from now\(\)\)/;
    if (looks.test(query)) continue;
    counts[query.includes('leases') ? 'election' : 'work'] += calls;
  }
  return counts;
}

/** Counts statements while the record counts of `changed` organisations change every two seconds. */
async function countWhileChanging(changed: number) {
  await postgres.reset();
  const began = performance.now();
  let counts = { election: 0, work: 0 };
  while (performance.now() - began < watchedMs || counts.work === 0) {
    await queryDatabase(
      postgres.url,
      `insert into record_count_changes (organisation_id, type, records)
       select organisation_id, 'shops', 1 from organisations where slug like 'many-%' order by slug limit $1`,
      [changed],
    );
    await sleep(2_000);
    counts = await countStatements();
  }
  return { ...counts, seconds: (performance.now() - began) / 1_000 };
}

/** Waits for the hourly chores, which run right after the election and may take some time. */
async function untilNothingIsDone(): Promise<void> {
  for (let before = -1, now = 0; before !== now; ) {
    await sleep(5_000);
    [before, now] = [now, (await countStatements()).work];
  }
}

it('2,000 organisations and three processes take as many statements as one organisation', async () => {
  await msUntilElected(0);
  await queryDatabase(
    postgres.url,
    `insert into organisations (organisation_id, slug, name)
     select gen_random_uuid(), 'many-' || n, 'one of many' from generate_series(1, $1::integer) n`,
    [organisations],
  );
  await untilNothingIsDone();
  const [few, all] = [await countWhileChanging(1), await countWhileChanging(organisations)];
  console.log('statements with one organisation', few, 'and with 2,000', all);
  for (const { work, election, seconds } of [few, all]) {
    // A round runs every ten seconds and consists of BEGIN, four statements and COMMIT. A round may have to be retried.
    expect(work).toBeLessThanOrEqual(6 * Math.ceil(seconds / 10 + 1));
    expect(election).toBeLessThanOrEqual(3 * Math.ceil(seconds / 5 + 1));
  }
  const stillThere = () => queryDatabase(postgres.url, 'select from record_count_changes');
  await expect.poll(stillThere, { interval: 500 }).toEqual([]);
});

interface Sent {
  good: number;
  bad: number;
}

/** Uploads to any running process until stopped, and counts the responses. */
async function uploadUntil(isOver: () => boolean, key: string): Promise<Sent> {
  const sent = { good: 0, bad: 0 };
  for (let round = 0; !isOver(); round++) {
    const running = servers.filter(isRunning);
    const api = apiOf((running[round % running.length] as BuiltServer).url, key);
    const records = [...many(8, () => newTag()), ...many(2, () => badTag())];
    // With a new Idempotency-Key per upload, another process can complete an upload whose answer was lost.
    const idempotencyKey = { 'idempotency-key': randomUUID() };
    for (let isAnswered = false; !isAnswered; ) {
      const to = isRunning(running[round % running.length] as BuiltServer)
        ? api
        : apiOf((servers.find(isRunning) as BuiltServer).url, key);
      const answer = await to.post('/v1/data/tags', { records }, idempotencyKey).catch(() => undefined);
      isAnswered = answer !== undefined && answer.status < 500;
      if (!isAnswered) await sleep(50);
    }
    sent.good += 8;
    sent.bad += 2;
    await sleep(100);
  }
  return sent;
}

it(`killed (${kills}x), another takes over within 30 seconds, and every count is right`, {
  timeout: 1_200_000 + kills * 40_000,
}, async () => {
  const key = await (servers[0] as BuiltServer).createKey('acme');
  let isOver = false;
  const uploading = uploadUntil(() => isOver, key);
  for (let kill = 0; kill < kills; kill++)
    await expectInTime(async () => {
      await startMissing();
      const before = allElections();
      const holder = elected();
      const ended = once(holder.process, 'exit');
      holder.process.kill('SIGKILL');
      await ended;
      const ms = await msUntilElected(before);
      console.log(`taken over after ${(ms / 1_000).toFixed(1)} s`);
      return [{ what: 'another takes over', ms, promisedMs: 30_000 }];
    });
  isOver = true;
  const { good, bad } = await uploading;
  console.log(`${good + bad} records uploaded meanwhile`);
  const api: Api = apiOf((servers.find(isRunning) as BuiltServer).url, key);
  const expectRight = async () =>
    expect((await overviewOf(api)).tags).toMatchObject({ records: good, open_rejections: bad });
  await expectRight();
  const changes = () =>
    queryDatabase(
      postgres.url,
      `select from record_count_changes union all select from rejection_count_changes`,
    );
  await expect.poll(changes, { interval: 500 }).toEqual([]);
  await expectRight();
});

it('a stopping one hands over without waiting for its lease to expire', async () => {
  await expectInTime(async () => {
    await startMissing();
    const before = allElections();
    const holder = elected();
    await holder.stop();
    expect(holder.process.exitCode).toBe(0);
    const ms = await msUntilElected(before);
    console.log(`handed over after ${(ms / 1_000).toFixed(1)} s`);
    // The other processes poll every five seconds.
    return [{ what: 'handed over', ms, promisedMs: 8_000 }];
  });
});
