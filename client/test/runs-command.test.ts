// @module-tag full

import { hash, randomUUID } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type SharedServer, sharedServer, startBuiltServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { UploadRuns } from '../src/command/uploading/upload-runs.ts';
import { Connection } from '../src/connection.ts';
import { Intake } from '../src/index.ts';
import { limits } from '../src/limits.ts';
import { holdUploads } from './support/hold-uploads.ts';
import { type Fate, type Seen, startHttpProxy } from './support/http-proxy.ts';
import { feedIntake, type Place, runIntake, startIntake } from './support/run-intake.ts';

/** This file tests how `intake upload` opens, names, continues and ends runs. */

let server: SharedServer;
let organisation: string;
let key: string;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  organisation = `run-of-command-${++made}`;
  key = await server.createKey(organisation);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-run-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key } };
  return () => rmSync(cwd, { recursive: true });
});

const at = (url: string, more: Record<string, string> = {}): Place => ({
  ...place,
  env: { ...place.env, INTAKE_URL: url, ...more },
});

async function through(fateOf: (seen: Seen) => Fate | Promise<Fate>) {
  const proxy = await startHttpProxy(server.url, fateOf, { seesRuns: true });
  onTestFinished(proxy.close);
  return { ...at(proxy.url), seen: proxy.seen };
}

function put(name: string, text: string): string {
  writeFileSync(join(place.cwd, name), text);
  return text;
}

const shops = (count: number) =>
  `shop_id,name,region\n${many(count, () => `${randomUUID()},a,GB\n`).join('')}`;
const visits = (count: number) =>
  `interaction_type,item_type,item_id,user_id,event_timestamp\n${many(count, (number) => `SHARE,SHOP,${newShop().shop_id},${randomUUID()},${number + 1}\n`).join('')}`;

const journals = () => readdirSync(place.cwd).filter((name) => name.endsWith('.journal'));

async function allRuns() {
  const runs = [];
  for await (const run of intake.runs.list()) runs.push(run);
  return runs;
}

const runIdOf = ({ stdout }: { readonly stdout: string }): string => JSON.parse(stdout).runs[0].run_id;

/** Starts an upload that is held after its first request, and resolves once the journal shows that this one is answered. */
async function startHeld(...args: string[]) {
  const { url, end } = await holdUploads(server.url);
  const [file = ''] = args;
  const running = startIntake(at(url), 'upload', ...args);
  const journal = join(place.cwd, `${file}.journal`);
  await expect.poll(() => existsSync(journal) && readFileSync(journal, 'utf8').includes('"done"')).toBe(true);
  return { running, end, resumed: at(url) };
}

it('the numbers of the command, of the run, of its receipts and of status are the same', async () => {
  const strict = await startBuiltServer({ BODY_BYTES_MAX: '131072' });
  onTestFinished(() => strict.stop());
  key = await strict.createKey(organisation);
  intake = new Intake({ url: strict.url, key });
  place = at(strict.url, { INTAKE_KEY: key });
  const rows = many(4_000, () => `${randomUUID()},a,GB`);
  rows[10] = `${randomUUID()},a,GBR`;
  rows[20] = `${randomUUID()},a`;
  rows[30] = `${randomUUID()},${'x'.repeat(140_000)},GB`;
  rows[3_900] = `${randomUUID()},a,GBR`;
  const text = put('shops.csv', `shop_id,name,region\n${rows.join('\n')}\n`);
  const uploaded = await runIntake(place, 'upload', 'shops.csv', '--name', 'nightly', '--json');
  expect(uploaded.exitCode, uploaded.stderr).toBe(1);
  const { files, failed, runs } = JSON.parse(uploaded.stdout);
  const counts = { received: 3_998, created: 3_996, failed: 2 };
  expect(failed).toBe(4);
  expect(files).toMatchObject([{ counts, unsent: 1, not_kept: 1 }]);
  expect(runs).toEqual([{ run_id: expect.any(String), name: 'nightly', status: 'failed' }]);
  const run = await intake.runs.get(runs[0].run_id);
  expect(run).toMatchObject({
    name: 'nightly',
    status: 'failed',
    client_version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    counts,
    not_sent: 1,
    not_kept: 1,
    files: [
      {
        name: 'shops.csv',
        bytes: Buffer.byteLength(text),
        sha256: hash('sha256', text),
        type: 'shops',
        counts: files[0].counts,
        not_sent: 1,
        not_kept: 1,
      },
    ],
    reasons: [{ count: 2, field: 'region' }],
  });
  const receipts = [];
  for await (const one of intake.requests.list({ run_id: run.run_id })) receipts.push(one);
  const ofFile = receipts.toSorted((a, b) => Number(a.first_record) - Number(b.first_record));
  let next = 1;
  for (const { file, first_record, counts: of } of ofFile) {
    expect(file).toBe(0);
    // Between two requests are only the records 21 and 31, which no receipt counts.
    expect(Number(first_record)).toBeGreaterThanOrEqual(next);
    expect(Number(first_record) - next).toBeLessThanOrEqual(2);
    next = Number(first_record) + of.received;
  }
  expect(ofFile.at(-1)?.counts.received).toBe(4_000 - Number(ofFile.at(-1)?.first_record) + 1);
  expect(ofFile.reduce((sum, one) => sum + one.counts.received, 0)).toBe(3_998);
  expect(await intake.data.overview()).toMatchObject([{ type: 'shops', records: 3_996, open_rejections: 2 }]);
  const shown = await runIntake(place, 'runs', run.run_id);
  expect(shown.stdout).toMatch(/^Run nightly: failed, opened /);
  expect(shown.stdout).toMatch(/shops\.csv +shops +4,000 +3,996 +0 +0 +0 +2 +1 +1\n/);
  expect(shown.stdout).toContain(`intake rejections --run ${run.run_id}`);
  const listed = await runIntake(place, 'runs');
  expect(listed.stdout).toMatch(/nightly +failed +1 +4,000 +2 +1 +1 +/);
  const rejected = await runIntake(place, 'rejections', '--run', run.run_id, '--json');
  expect(rejected.stdout.trim().split('\n')).toHaveLength(2);
});

it('an upload that is killed is continued in the same run, which ends once', async () => {
  put('shops.csv', shops(10_000));
  const { running, end, resumed } = await startHeld('shops.csv');
  running.kill('SIGKILL');
  await running.ended;
  end();
  const [open] = await allRuns();
  expect(open).toMatchObject({ name: 'shops', status: 'running' });
  const other = await runIntake(resumed, 'upload', 'shops.csv', '--resume', '--name', 'other');
  expect(other.stderr).toContain('began with the name shops');
  const second = await runIntake(resumed, 'upload', 'shops.csv', '--resume', '--json');
  expect(second.exitCode, second.stderr).toBe(0);
  expect(JSON.parse(second.stdout).runs).toEqual([
    { run_id: open?.run_id, name: 'shops', status: 'finished' },
  ]);
  expect(await allRuns()).toMatchObject([
    { run_id: open?.run_id, status: 'finished', counts: { received: 10_000, created: 10_000 } },
  ]);
});

it('Ctrl-C leaves the run open, unless nothing was stored', async () => {
  put('shops.csv', shops(10_000));
  const { running, end, resumed } = await startHeld('shops.csv');
  running.kill('SIGINT');
  expect((await running.ended).exitCode).toBe(2);
  end();
  expect(await allRuns()).toMatchObject([{ status: 'running' }]);
  expect((await runIntake(resumed, 'upload', 'shops.csv', '--resume')).exitCode).toBe(0);
  let [opened, isKilled] = [0, false];
  const losing = await through(async ({ url }) => {
    if (url !== '/v1/runs' || ++opened > 2) return 'pass';
    if (opened === 1) return 'cut after';
    while (!isKilled) await sleep(5);
    return 'cut before';
  });
  put('interactions.csv', visits(10));
  const early = startIntake(losing, 'upload', 'interactions.csv');
  await expect.poll(() => opened).toBe(2);
  early.kill('SIGINT');
  isKilled = true;
  const { exitCode, stderr } = await early.ended;
  expect(exitCode).toBe(2);
  expect(stderr).toContain('Nothing in interactions.csv was stored.');
  expect(journals()).toEqual([]);
  expect(await allRuns()).toMatchObject([{ status: 'failed', requests: 0 }, { status: 'finished' }]);
});

it('interactions are uploaded once, unless --again is given', async () => {
  put('interactions.csv', visits(100));
  put('shops.csv', shops(1));
  const first = await runIntake(place, 'upload', 'interactions.csv', '--json');
  expect(first.exitCode, first.stderr).toBe(1);
  const runId = runIdOf(first);
  const second = await runIntake(place, 'upload', 'shops.csv', 'interactions.csv');
  expect(second).toMatchObject({ exitCode: 2, stdout: '' });
  expect(second.stderr).toMatch(
    new RegExp(
      `^Error: interactions\\.csv was uploaded in the run ${runId} \\(opened 20.*\\)\\.\\n.*--again`,
    ),
  );
  expect(journals()).toEqual([]);
  expect(await intake.data.overview()).not.toContainEqual(expect.objectContaining({ type: 'shops' }));
  const again = await runIntake(place, 'upload', 'interactions.csv', '--again', '--json');
  expect(again.exitCode, again.stderr).toBe(1);
  expect(runIdOf(again)).not.toBe(runId);
  put('interactions-2.csv', readFileSync(join(place.cwd, 'interactions.csv'), 'utf8'));
  const twice = await runIntake(place, 'upload', 'interactions.csv', 'interactions-2.csv', '--again');
  expect(twice.stderr).toContain('interactions.csv and interactions-2.csv are the same file of interactions');
});

it('a service of an older release is uploaded to without a run', async () => {
  const body = JSON.stringify({ code: 'not_found', message: 'There is nothing at this address' });
  const older = await through(({ url }) => {
    if (url.startsWith('/v1/runs')) return { status: 404, body, type: 'application/json' };
    return url.includes('run_id') ? { status: 400 } : 'pass';
  });
  put('shops.csv', shops(3));
  const { exitCode, stdout, stderr } = await runIntake(older, 'upload', 'shops.csv', '--json');
  expect({ exitCode, stderr }).toEqual({
    exitCode: 0,
    stderr: 'This service is of an older release, so the upload is not shown as a run.\n',
  });
  expect(JSON.parse(stdout)).toMatchObject({ runs: [], files: [{ counts: { created: 3 } }] });
  expect(await allRuns()).toEqual([]);
});

it('a key that may upload one type opens runs with files of this type', async () => {
  const scoped = await server.createKey(organisation, 'data:write:shops');
  const limited = at(server.url, { INTAKE_KEY: scoped });
  put('shops.csv', shops(3));
  put('tags.csv', 'tag_id,name\n');
  const { exitCode, stderr } = await runIntake(limited, 'upload', 'shops.csv');
  expect(exitCode, stderr).toBe(0);
  put('tags.csv', `tag_id,name\n${randomUUID()},a\n`);
  put('shops.csv', shops(3));
  const both = await runIntake(limited, 'upload', 'shops.csv', 'tags.csv');
  expect(both).toMatchObject({ exitCode: 2, stdout: '' });
  expect(both.stderr).toContain('data:write:tags');
  expect(journals()).toEqual([]);
  expect(await allRuns()).toMatchObject([{ status: 'finished', counts: { created: 3 } }]);
});

it('an opening whose answer is lost is sent again, and opens one run', async () => {
  put('interactions.csv', visits(10));
  let opened = 0;
  const losing = await through(({ url }) => (url === '/v1/runs' && ++opened === 1 ? 'cut after' : 'pass'));
  expect((await runIntake(losing, 'upload', 'interactions.csv')).exitCode).toBe(1);
  expect(opened).toBe(2);
  expect(await allRuns()).toMatchObject([{ status: 'finished', requests: 1 }]);
});

it('a file that changes between hashing and reading is refused, and its run has failed', async () => {
  put('shops.csv', shops(3));
  const changing = await through(({ url }) => {
    if (url === '/v1/runs') appendFileSync(join(place.cwd, 'shops.csv'), `${randomUUID()},b,GB\n`);
    return 'pass';
  });
  const { exitCode, stderr } = await runIntake(changing, 'upload', 'shops.csv');
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: 'Error: shops.csv: it changed while it was read; wait until it is written completely\n',
  });
  expect(journals()).toEqual([]);
  expect(await allRuns()).toMatchObject([{ status: 'failed', requests: 0 }]);
});

it('if the run cannot be ended, the result is reported, and --resume ends it', async () => {
  put('shops.csv', shops(3));
  let isAway = true;
  const away = await through(({ url }) => (isAway && url.endsWith('/end') ? { status: 403 } : 'pass'));
  const first = await runIntake(away, 'upload', 'shops.csv');
  expect(first.exitCode).toBe(2);
  expect(first.stdout).toMatch(/shops\.csv +shops +3 +3 +0/);
  expect(first.stderr).toMatch(/^Error: The run .* could not be ended\.\n.*\n.*--resume/);
  expect(await allRuns()).toMatchObject([{ status: 'running' }]);
  isAway = false;
  const second = await runIntake(away, 'upload', 'shops.csv', '--resume');
  expect(second.exitCode, second.stderr).toBe(0);
  expect(await allRuns()).toMatchObject([{ status: 'finished', requests: 1 }]);
});

it('if the run has ended meanwhile, --resume continues in another run', async () => {
  put('interactions.csv', visits(10_000));
  const { running, end, resumed } = await startHeld('interactions.csv');
  running.kill('SIGKILL');
  await running.ended;
  end();
  const [open] = await allRuns();
  await intake.runs.end(open?.run_id ?? '', { status: 'failed', files: [] });
  const second = await runIntake(resumed, 'upload', 'interactions.csv', '--resume', '--json');
  expect(second.exitCode, second.stderr).toBe(1);
  expect(runIdOf(second)).toBe(open?.run_id);
  const runs = await allRuns();
  expect(runs).toMatchObject([
    { name: 'interactions', status: 'finished' },
    { name: 'interactions', status: 'failed' },
  ]);
  expect(runs.reduce((sum, { counts }) => sum + counts.received, 0)).toBe(10_000);
});

it('a file that ends early makes the run fail, and the complete file continues in another run', async () => {
  const text = visits(3_000);
  put('interactions.csv', text.slice(0, -40));
  const first = await runIntake(place, 'upload', 'interactions.csv');
  expect(first.exitCode, first.stderr).toBe(2);
  expect(await allRuns()).toMatchObject([{ status: 'failed', counts: { received: 2_999 } }]);
  put('interactions.csv', text);
  const second = await runIntake(place, 'upload', 'interactions.csv', '--resume');
  expect(second.exitCode, second.stderr).toBe(1);
  const [last] = await allRuns();
  expect(last).toMatchObject({ status: 'finished', counts: { received: 1 } });
  expect((await intake.runs.get(last?.run_id ?? '')).files).toMatchObject([{ sha256: hash('sha256', text) }]);
  const receipts = [];
  for await (const one of intake.requests.list({ run_id: last?.run_id ?? '' })) receipts.push(one);
  expect(receipts).toMatchObject([{ file: 0, first_record: 3_000 }]);
});

it('a run that is resumed in parts ends with its last file, and has the counts of all', async () => {
  put('shops.csv', `${shops(3)}${randomUUID()},a\n`);
  put('interactions.csv', visits(5_000));
  const args = ['interactions.csv', 'shops.csv'] as const;
  const { running, end, resumed } = await startHeld('shops.csv', 'interactions.csv');
  running.kill('SIGKILL');
  await running.ended;
  end();
  expect((await runIntake(resumed, 'upload', 'shops.csv', '--resume')).exitCode).toBe(1);
  expect(await allRuns()).toMatchObject([{ status: 'running' }]);
  const rest = await runIntake(resumed, 'upload', ...args, '--resume');
  expect(rest.exitCode, rest.stderr).toBe(1);
  expect(await allRuns()).toMatchObject([{ status: 'failed', not_sent: 1, counts: { received: 5_003 } }]);
});

it('a new upload continues the run of one that was killed before anything was answered', async () => {
  put('interactions.csv', visits(10));
  let isHeld = true;
  const held = await through(({ url }) => (isHeld && url === '/v1/runs' ? 'cut after' : 'pass'));
  const first = startIntake(held, 'upload', 'interactions.csv');
  await expect.poll(async () => (await allRuns()).length).toBe(1);
  first.kill('SIGKILL');
  await first.ended;
  isHeld = false;
  const second = await runIntake(held, 'upload', 'interactions.csv');
  expect(second.exitCode, second.stderr).toBe(1);
  expect(await allRuns()).toMatchObject([{ status: 'finished', requests: 1 }]);
});

it('a new upload of files of which some were sent has a run of its own', async () => {
  put('shops.csv', shops(10_000));
  put('tags.csv', `tag_id,name\n${randomUUID()},a\n`);
  const { running, end, resumed } = await startHeld('shops.csv', 'tags.csv');
  running.kill('SIGKILL');
  await running.ended;
  end();
  expect((await runIntake(resumed, 'upload', 'shops.csv', 'tags.csv')).exitCode).toBe(0);
  expect(await allRuns()).toMatchObject([
    { status: 'finished', counts: { received: 10_001 } },
    { status: 'running' },
  ]);
});

it('more files than a run can have are uploaded in several runs', async () => {
  for (const number of many(101, (index) => index)) put(`shops-${number}.csv`, shops(1));
  const { exitCode, stdout, stderr } = await runIntake(place, 'upload', '.', '--name', 'many', '--json');
  expect(exitCode, stderr).toBe(0);
  expect(JSON.parse(stdout).runs).toMatchObject([{ status: 'finished' }, { status: 'finished' }]);
  expect(await allRuns()).toMatchObject([
    { name: 'many', file_count: 1, counts: { created: 1 } },
    { name: 'many', file_count: 100, counts: { created: 100 } },
  ]);
});

it('dry runs and standard input have no run', async () => {
  const text = put('shops.csv', shops(3));
  expect((await runIntake(place, 'upload', 'shops.csv', '--dry-run')).exitCode).toBe(0);
  expect((await feedIntake(place, text, 'upload', '-', '--type', 'shops')).exitCode).toBe(0);
  expect(await allRuns()).toEqual([]);
  expect((await runIntake(place, 'runs')).stdout).toBe('There are no such runs.\n');
});

it('a run without answers for some time sends heartbeats until it ends', async () => {
  const before = { ...limits };
  Object.assign(limits, { heartbeatMs: 20 });
  onTestFinished(() => void Object.assign(limits, before));
  const { env, seen } = await through(() => 'pass');
  const connection = new Connection({ url: env.INTAKE_URL ?? '', key });
  const options = { isAgain: false, signal: new AbortController().signal, guard: async () => {} };
  const runs = new UploadRuns(connection, options);
  const path = join(place.cwd, 'shops.csv');
  put('shops.csv', shops(1));
  const files = [{ name: 'shops.csv', bytes: 1, sha256: hash('sha256', ''), type: 'shops' as const }];
  const run = { key: randomUUID(), opening: { name: 'a', files }, file: 0, paths: ['shops.csv'] };
  const circumstances = { service: '', keyId: '', reading: '', typed: '', files: [], run };
  const file = { path, type: 'shops' as const, circumstances, earlier: undefined };
  await runs.open([file]);
  const beats = () => seen.filter(({ url }) => url.endsWith('/heartbeat')).length;
  await expect.poll(beats).toBeGreaterThan(1);
  await runs.end([file], [{ path, unsent: 0, notKept: 0 }]);
  expect(await allRuns()).toMatchObject([{ status: 'finished' }]);
});
