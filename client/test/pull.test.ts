// @module-tag full

import { randomBytes, randomUUID } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { MadeLake } from '../../test/support/made-lake.ts';
import { many } from '../../test/support/new-records.ts';
import { queryDatabase } from '../../test/support/query-database.ts';
import { lakeFolder } from '../../test/support/running-lake.ts';
import { Intake, type PullProgress } from '../src/index.ts';
import { type Fate, type Seen, startHttpProxy } from './support/http-proxy.ts';
import { type Place, runIntake, startIntake } from './support/run-intake.ts';

/**
 * This file tests pulling a lake into a folder. The files contain random bytes, because another test checks what programs
 * read from a copy.
 */

const store = lakeFolder();
let server: BuiltServer;
beforeAll(async () => {
  server = await startBuiltServer({ LAKE_URL: store.url });
});
afterAll(async () => {
  await server?.stop();
  store.remove();
});

let made = 0;
let key: string;
let organisationId: string;
let remote: MadeLake;
let cwd: string;
let place: Place;
beforeEach(async () => {
  const slug = `pull-${++made}`;
  key = await server.createKey(slug);
  await server.run('organisations', 'set-lake', slug, 'on');
  const [row] = await queryDatabase<{ organisation_id: string }>(
    server.databaseUrl,
    'select organisation_id from organisations where slug = $1',
    [slug],
  );
  organisationId = row!.organisation_id;
  remote = new MadeLake(store.path, organisationId);
  await queryDatabase(
    server.databaseUrl,
    `insert into lake_progress (organisation_id, number, epoch, as_of) values ($1, 0, 'a', now())`,
    [organisationId],
  );
  cwd = mkdtempSync(join(tmpdir(), 'intake-pull-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  return () => rmSync(cwd, { recursive: true });
});

const local = (...path: string[]) => join(cwd, 'lake', 'interactions', ...path);
const dayFolder = () => local('received_on=2026-03-14');
const intakeAt = (url: string) => new Intake({ url, key, onRetry: () => {} });
const pulled = () => intakeAt(server.url).lake.pull(join(cwd, 'lake'));
const setProgress = (change: string) =>
  queryDatabase(server.databaseUrl, `update lake_progress set ${change} where organisation_id = $1`, [
    organisationId,
  ]);
const locks = () => readdirSync(join(cwd, 'lake')).filter((name) => name.startsWith('.intake-pull-'));
const lockOf = (pid: number) => join(cwd, 'lake', `.intake-pull-${pid}-${randomUUID()}`);
/** The service may take a second to notice that a table has changed. */
const untilSeen = () => sleep(1_100);

async function through(fateOf: (seen: Seen, count: number) => Fate | Promise<Fate>) {
  const proxy = await startHttpProxy(server.url, fateOf);
  onTestFinished(() => proxy.close());
  return proxy;
}

const downloadsIn = (seen: readonly Seen[]) => seen.filter(({ url }) => /\/files\/[^?]/.test(url));

/** Returns the files listed in the copy's log, after checking the size of each. */
function logged(): string[] {
  const [first = '', ...actions] = readFileSync(local('_delta_log/00000000000000000000.json'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(first).toMatchObject({ commitInfo: { engineInfo: 'intake pull' } });
  return actions
    .flatMap(({ add }: { add?: { path: string; size: number } }) => {
      if (!add) return [];
      expect(statSync(local(add.path)).size).toBe(add.size);
      return [/([^/]+)\.parquet$/.exec(add.path)?.[1] ?? ''];
    })
    .toSorted();
}

function expectCopy(names: readonly string[]): void {
  expect(logged()).toEqual(names.toSorted());
  expect(readdirSync(dayFolder()).toSorted()).toEqual(names.map((name) => `${name}.parquet`).toSorted());
  for (const name of names)
    expect(readFileSync(join(dayFolder(), `${name}.parquet`)).equals(readFileSync(remote.fileOf(name)))).toBe(
      true,
    );
  expect(existsSync(local('_pull'))).toBe(false);
  expect(locks()).toEqual([]);
}

it('the command copies everything, and then only what is new', async () => {
  const names = remote.commit([randomBytes(100_000), randomBytes(2_500_000), randomBytes(10)]);
  const first = await runIntake(place, 'pull', './lake');
  expect(first).toMatchObject({ exitCode: 0, stderr: '' });
  expect(first.stdout).toMatch(/interactions +3 +3 +3 +0/);
  expectCopy(names);
  // These files were not written by a pull, so a pull must not remove them.
  writeFileSync(join(dayFolder(), 'notes.txt'), 'mine');
  writeFileSync(local('query.sql'), 'mine');
  const [gone = '', ...kept] = names;
  const added = remote.commit([randomBytes(5_000)], [gone]);
  remote.delete(gone);
  await untilSeen();
  const proxy = await through(() => 'pass');
  const env = { ...place.env, INTAKE_URL: proxy.url };
  const second = await runIntake({ cwd, env }, 'pull', 'lake', '--json');
  expect(JSON.parse(second.stdout)).toMatchObject([
    { table: 'interactions', version: 2, rows: 3, files: 3, filesDownloaded: 1, filesRemoved: 1 },
  ]);
  expect(downloadsIn(proxy.seen).map(({ url }) => url.split('/').at(-1))).toEqual(added);
  expect(readFileSync(join(dayFolder(), 'notes.txt'), 'utf8')).toBe('mine');
  rmSync(join(dayFolder(), 'notes.txt'));
  expectCopy([...kept, ...added]);
  expect(existsSync(local('query.sql'))).toBe(true);
});

it('a download that breaks off continues where it was, and progress counts each byte once', async () => {
  const [name = ''] = remote.commit([randomBytes(3_000_000)]);
  let cuts = 0;
  const proxy = await through(({ url }) => (url.includes('/files/') && cuts++ < 2 ? 'cut within' : 'pass'));
  const progress: PullProgress[] = [];
  const onProgress = (one: PullProgress) => void progress.push(one);
  await intakeAt(proxy.url).lake.pull(join(cwd, 'lake'), { onProgress });
  expectCopy([name]);
  const ranges = downloadsIn(proxy.seen).map(({ headers }) => headers.range);
  expect(ranges).toEqual([
    undefined,
    expect.stringMatching(/^bytes=\d+-$/),
    expect.stringMatching(/^bytes=/),
  ]);
  const starts = ranges.map((range) => Number(/\d+/.exec(range ?? '0')?.[0]));
  expect(starts).toEqual(starts.toSorted((one, other) => one - other));
  expect(starts[1]).toBeGreaterThan(0);
  expect(progress.at(-1)).toMatchObject({ filesDone: 1, bytesDone: 3_000_000, bytes: 3_000_000 });
});

it('killed again and again, it leaves the table as it was or as it is, and ends complete', async () => {
  const before = remote.commit([randomBytes(50_000)]);
  await pulled();
  const added = remote.commit(
    Array.from({ length: 20 }, () => randomBytes(1_000_000)),
    before,
  );
  await untilSeen();
  let killed = Promise.withResolvers<void>();
  const proxy = await through(async (): Promise<Fate> => {
    if (downloadsIn(proxy.seen).length >= 5) await killed.promise;
    return 'pass';
  });
  const env = { ...place.env, INTAKE_URL: proxy.url };
  for (let kill = 1; kill <= 3; kill++) {
    proxy.seen.length = 0;
    killed = Promise.withResolvers();
    const running = startIntake({ cwd, env }, 'pull', 'lake');
    // There are four concurrent downloads, so by the fifth request one file is complete and others are not.
    await expect.poll(() => downloadsIn(proxy.seen).length, { interval: 5 }).toBeGreaterThanOrEqual(5);
    running.kill('SIGKILL');
    await running.ended;
    killed.resolve();
    expect(logged()).toEqual(before);
  }
  const done = readdirSync(dayFolder()).map((name) => name.replace('.parquet', ''));
  expect(done.length).toBeGreaterThan(before.length);
  proxy.seen.length = 0;
  const ended = await runIntake({ cwd, env }, 'pull', 'lake');
  expect(ended).toMatchObject({ exitCode: 0 });
  expectCopy(added);
  const asked = downloadsIn(proxy.seen).map(({ url }) => url.split('/').at(-1));
  // A file that was complete but not yet renamed when the process was killed must not be downloaded again.
  expect(asked.length).toBeGreaterThan(0);
  expect(asked.filter((name) => !added.includes(name ?? '') || done.includes(name ?? ''))).toEqual([]);
  expect(new Set(asked).size).toBe(asked.length);
});

it('SIGINT ends it with advice, and the next pull continues', async () => {
  const names = remote.commit(Array.from({ length: 10 }, () => randomBytes(100_000)));
  const ended = Promise.withResolvers<void>();
  const proxy = await through(async (): Promise<Fate> => {
    if (downloadsIn(proxy.seen).length > 4) await ended.promise;
    return 'pass';
  });
  const running = startIntake({ cwd, env: { ...place.env, INTAKE_URL: proxy.url } }, 'pull', 'lake');
  await expect.poll(() => downloadsIn(proxy.seen).length, { interval: 5 }).toBeGreaterThan(4);
  running.kill('SIGINT');
  const { exitCode, stderr } = await running.ended;
  ended.resolve();
  expect([exitCode, stderr]).toEqual([
    2,
    expect.stringMatching(/Run the same command again to continue\.\n.*Interrupted/),
  ]);
  expect(locks()).toEqual([]);
  await pulled();
  expectCopy(names);
});

it('a file that vanishes in between makes it begin again at the newest version', async () => {
  const [gone = '', ...kept] = remote.commit([randomBytes(30_000), randomBytes(20_000)]);
  let added: string[] = [];
  const proxy = await through(({ url }) => {
    if (url.includes(`/files/${gone}`) && added.length === 0) {
      added = remote.commit([randomBytes(40_000)], [gone]);
      remote.delete(gone);
    }
    return 'pass';
  });
  const [table] = await intakeAt(proxy.url).lake.pull(join(cwd, 'lake'));
  expect(table).toMatchObject({ version: 2, files: 2 });
  expectCopy([...kept, ...added]);
});

it('bytes that do not have their checksum never become part of the copy', async () => {
  const good = remote.commit([randomBytes(30_000)]);
  await pulled();
  const [bad = ''] = remote.commit([randomBytes(40_000)]);
  writeFileSync(remote.fileOf(bad), randomBytes(40_000));
  await untilSeen();
  const ended = await runIntake(place, 'pull', 'lake');
  expect(ended).toMatchObject({ exitCode: 2, stdout: '' });
  expect(ended.stderr).toMatch(/does not have the checksum/);
  expect(logged()).toEqual(good);
  // A pull also notices a partial file that was changed on disk, and downloads it again.
  remote.delete(bad);
  const [large = ''] = remote.commit([randomBytes(60_000)], [bad]);
  mkdirSync(local('_pull'), { recursive: true });
  writeFileSync(local('_pull', large), randomBytes(30_000));
  await untilSeen();
  await pulled();
  expectCopy([...good, large]);
});

it('refuses a folder that is not its own, and two pulls at once', async () => {
  remote.commit([randomBytes(30_000)]);
  const outside = join(cwd, 'outside');
  mkdirSync(outside);
  mkdirSync(join(cwd, 'lake'));
  symlinkSync(outside, local());
  const linked = await runIntake(place, 'pull', 'lake');
  expect([linked.exitCode, linked.stderr]).toEqual([2, expect.stringMatching(/is not a folder/)]);
  rmSync(local());
  mkdirSync(local());
  symlinkSync(outside, dayFolder());
  expect((await runIntake(place, 'pull', 'lake')).stderr).toMatch(/received_on=2026-03-14 is not a folder/);
  expect(readdirSync(outside)).toEqual([]);
  rmSync(dayFolder());
  const running = lockOf(process.pid);
  writeFileSync(running, '');
  expect((await runIntake(place, 'pull', 'lake')).stderr).toMatch(
    `Another pull writes to lake, as process ${process.pid}`,
  );
  rmSync(running);
  // This lock was left behind by a killed process.
  writeFileSync(lockOf(999_999_999), '');
  expect(await runIntake(place, 'pull', 'lake')).toMatchObject({ exitCode: 0 });
  const refused = Promise.withResolvers<void>();
  // A pull takes the lock after its first request.
  const proxy = await through(async (_, count): Promise<Fate> => {
    if (count > 1) await refused.promise;
    return 'pass';
  });
  const first = intakeAt(proxy.url).lake.pull(join(cwd, 'lake'));
  await expect.poll(() => locks().length, { interval: 5 }).toBe(1);
  await expect(pulled()).rejects.toThrow(/Another pull writes to/);
  refused.resolve();
  expect(await first).toMatchObject([{ files: 1 }]);
  appendFileSync(local('_delta_log/00000000000000000001.json'), '{}\n');
  expect((await runIntake(place, 'pull', 'lake')).stderr).toMatch(
    /has a Delta Lake table that intake pull did not/,
  );
});

it.each([
  ['is being copied again', `copied_type = 'interactions', copied_after = gen_random_uuid()`],
  ['is about to be copied again', 'removing_since = now()'],
])('keeps a complete copy while the lake %s, and says so', async (_, change) => {
  const complete = remote.commit(many(8, () => randomBytes(10_000)));
  await pulled();
  const [left = '', ...gone] = complete;
  const [added = ''] = remote.commit([randomBytes(10_000)], gone);
  await untilSeen();
  await setProgress(change);
  const ended = await runIntake(place, 'pull', 'lake');
  expect([ended.exitCode, ended.stdout, ended.stderr]).toEqual([
    2,
    '',
    expect.stringMatching(/is being copied .*Your copy was not changed/),
  ]);
  expectCopy(complete);
  await setProgress('copied_type = null, copied_after = null, removing_since = null');
  expect(await runIntake(place, 'pull', 'lake')).toMatchObject({ exitCode: 0 });
  expectCopy([left, added]);
});

it('keeps a complete copy if the lake starts over while its files are listed', async () => {
  const complete = remote.commit([randomBytes(10_000)]);
  await pulled();
  remote.commit([randomBytes(10_000)], complete);
  await untilSeen();
  const proxy = await through(async ({ url }): Promise<Fate> => {
    if (/\/interactions\/files\?/.test(url)) await setProgress('removing_since = now()');
    return 'pass';
  });
  await expect(intakeAt(proxy.url).lake.pull(join(cwd, 'lake'))).rejects.toMatchObject({
    code: 'lake_incomplete',
  });
  expectCopy(complete);
});

it('keeps a copy of a table that the lake has lost, and says so', async () => {
  const complete = remote.commit([randomBytes(10_000)]);
  await pulled();
  rmSync(join(store.path, organisationId), { recursive: true });
  await untilSeen();
  const ended = await runIntake(place, 'pull', 'lake');
  expect([ended.exitCode, ended.stderr]).toEqual([2, expect.stringMatching(/is empty.* was not changed/)]);
  expect(logged()).toEqual(complete);
});

it('keeps a copy of one table that the lake has lost, and says so', async () => {
  const complete = remote.commit([randomBytes(10_000)]);
  new MadeLake(store.path, organisationId, 'tags').commit([randomBytes(10_000)]);
  await pulled();
  remote.commit([randomBytes(10_000)]);
  rmSync(join(store.path, organisationId, 'tags'), { recursive: true });
  await untilSeen();
  const ended = await runIntake(place, 'pull', 'lake');
  expect([ended.exitCode, ended.stderr]).toEqual([
    2,
    expect.stringMatching(/no longer has the table tags\. .* was not changed/),
  ]);
  expectCopy(complete);
});

/** Tries only once, so that it does not wait for the lake to be complete. */
const pulledOnce = () =>
  new Intake({ url: server.url, key, retryForMs: 0, onRetry: () => {} }).lake.pull(join(cwd, 'lake'));
const unavailable = { code: 'lake_unavailable', message: expect.stringContaining('ask the operator') };

it('a lake without a table that was written to it is not copied', async () => {
  remote.commit([randomBytes(10_000)]);
  new MadeLake(store.path, organisationId, 'tags').commit([randomBytes(10_000)]);
  await setProgress(`positions = '{"interactions": 1, "tags": 1}'`);
  rmSync(join(store.path, organisationId, 'tags'), { recursive: true });
  await expect(pulledOnce()).rejects.toMatchObject(unavailable);
  expect(existsSync(join(cwd, 'lake'))).toBe(false);
});

it('a complete copy is not replaced by an older version of the lake', async () => {
  const older = remote.commit([randomBytes(10_000)]);
  const complete = remote.commit([randomBytes(10_000)], older);
  await setProgress(`positions = '{"interactions": 2}'`);
  await pulled();
  rmSync(join(store.path, organisationId, 'interactions/_delta_log/00000000000000000002.json'));
  await untilSeen();
  await expect(pulledOnce()).rejects.toMatchObject(unavailable);
  expectCopy(complete);
});

it('says what to do if there is no lake, or nothing in it', async () => {
  const other = await server.createKey('without-lake');
  const without = { cwd, env: { ...place.env, INTAKE_KEY: other } };
  const off = await runIntake(without, 'pull', 'lake');
  expect([off.exitCode, off.stderr]).toEqual([2, expect.stringMatching(/has no lake; ask the operator/)]);
  expect(existsSync(join(cwd, 'lake'))).toBe(false);
  await server.run('organisations', 'set-lake', 'without-lake', 'on');
  const empty = await runIntake(without, 'pull', 'lake');
  expect([empty.exitCode, empty.stderr]).toEqual([2, expect.stringMatching(/is being copied/)]);
  expect(existsSync(join(cwd, 'lake'))).toBe(false);
  expect((await runIntake(place, 'pull')).stderr).toMatch(/Specify one folder/);
  const missing = randomUUID();
  await expect(intakeAt(server.url).lake.open('interactions', missing)).rejects.toMatchObject({
    code: 'lake_file_not_found',
  });
});
