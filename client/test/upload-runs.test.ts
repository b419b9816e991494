// @module-tag full

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { openDisk } from '../src/lake/disk.ts';
import { lockFolder } from '../src/lake/folder-lock.ts';
import { limits } from '../src/limits.ts';
import { type Fate, type Seen, startHttpProxy } from './support/http-proxy.ts';
import { mainFile, type Place, runIntake, startIntake } from './support/run-intake.ts';

/** This file tests runs of `intake upload` that overlap, are killed at a bad moment, or cannot print their result. */

let server: SharedServer;
let organisation: string;
let key: string;
let shopId: string;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  organisation = `runs-${++made}`;
  key = await server.createKey(organisation);
  const shop = newShop();
  shopId = shop.shop_id;
  await new Intake({ url: server.url, key }).upload('shops', [shop]).finish();
  const cwd = mkdtempSync(join(tmpdir(), 'intake-runs-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key } };
  return () => rmSync(cwd, { recursive: true });
});

function put(name: string, count: number): void {
  const rows = many(count, (at) => `SHARE,SHOP,${shopId},${name} ${at},${at + 1}\n`);
  writeFileSync(
    join(place.cwd, name),
    `interaction_type,item_type,item_id,user_id,event_timestamp\n${rows.join('')}`,
  );
}

async function countOf(): Promise<number> {
  const types = await new Intake({ url: server.url, key }).data.overview();
  return types.find(({ type }) => (type as string) === 'interactions')?.records ?? 0;
}

const journals = () => readdirSync(place.cwd).filter((name) => name.endsWith('.journal'));

async function through(
  fateOf: (seen: Seen, count: number) => Fate | Promise<Fate>,
  seesRuns = false,
): Promise<Place> {
  const proxy = await startHttpProxy(server.url, fateOf, { seesRuns });
  onTestFinished(() => proxy.close());
  return { ...place, env: { ...place.env, INTAKE_URL: proxy.url } };
}

it('a second run with a folder, or with one of its files, stops and names the first', async () => {
  put('interactions.csv', 3_000);
  put('interactions-2.csv', 10);
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const slow = await through(async ({ method }): Promise<Fate> => {
    if (method === 'POST') await released;
    return 'pass';
  });
  const first = startIntake(slow, 'upload', '.', '--json');
  while (journals().length < 2 && first.exitCode === null) await sleep(10);
  for (const args of [['.'], ['interactions-2.csv'], ['.', '--resume']]) {
    const second = await runIntake(slow, 'upload', ...args);
    expect(second).toMatchObject({ exitCode: 2, stdout: '' });
    expect(second.stderr).toMatch(
      new RegExp(
        `^Error: Another intake upload is sending .*csv, as process ${first.pid} on \\S+\\. Wait until it has`,
      ),
    );
  }
  release();
  expect(await first.ended).toMatchObject({ exitCode: 0 });
  expect(await countOf()).toBe(3_010);
  expect(readdirSync(place.cwd).toSorted()).toEqual(['interactions-2.csv', 'interactions.csv']);
});

it('every file has a journal before the first request, so a killed run is continued as a whole', async () => {
  put('interactions.csv', 3_000);
  put('interactions-2.csv', 3_000);
  const stuck = await through(({ method }) => (method === 'POST' ? 'cut after' : 'pass'));
  const running = startIntake(stuck, 'upload', '.');
  await expect.poll(countOf).toBe(3_000);
  running.kill('SIGKILL');
  await running.ended;
  expect(journals()).toEqual(['interactions-2.csv.journal', 'interactions.csv.journal']);
  const again = await runIntake(stuck, 'upload', '.');
  expect(again.stderr).toContain('Continue it with --resume');
  const direct = await through(() => 'pass');
  for (const name of journals()) {
    const path = join(place.cwd, name);
    const moved = readFileSync(path, 'utf8').replace(stuck.env.INTAKE_URL ?? '', direct.env.INTAKE_URL ?? '');
    writeFileSync(path, moved);
  }
  const resumed = await runIntake(direct, 'upload', '.', '--resume', '--json');
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(await countOf()).toBe(6_000);
});

it('--resume without a journal stops, also after a complete run', async () => {
  put('interactions.csv', 100);
  for (const run of [1, 2]) {
    const { exitCode, stdout, stderr } = await runIntake(place, 'upload', 'interactions.csv', '--resume');
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain('There is nothing to resume for interactions.csv, which has no journal');
    expect(await countOf()).toBe(run === 1 ? 0 : 100);
    if (run === 1)
      expect(await runIntake(place, 'upload', 'interactions.csv')).toMatchObject({ exitCode: 0 });
  }
});

/** Runs the command with its output going to /dev/full, or to a pipe that is closed. */
async function runUnread(args: readonly string[], output: 'full' | 'closed', errors = false) {
  const full = openSync('/dev/full', 'w');
  const child = spawn(process.execPath, [mainFile, 'upload', ...args], {
    ...place,
    stdio: ['ignore', output === 'full' && !errors ? full : 'pipe', errors ? full : 'pipe'],
  });
  if (output === 'closed') child.stdout?.destroy();
  const stderr = child.stderr ? text(child.stderr) : '';
  const stdout = child.stdout && output === 'full' ? text(child.stdout) : '';
  const [exitCode] = await once(child, 'close');
  return { exitCode, stdout: await stdout, stderr: await stderr };
}

it.each(['full', 'closed'] as const)(
  'a result that cannot be printed (%s) is reported later, and nothing is sent again',
  async (output) => {
    put('interactions.csv', 100);
    put('interactions-2.csv', 100);
    const unread = await runUnread(['.', '--json'], output);
    expect(unread.exitCode).toBe(2);
    expect(unread.stderr).toMatch(/^Error: The result cannot be written to standard output: .*--resume/s);
    const again = await runIntake(place, 'upload', '.');
    expect(again.stderr).toContain('complete, but its result was not reported');
    const resumed = await runIntake(place, 'upload', '.', '--resume', '--json');
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect(JSON.parse(resumed.stdout).files).toMatchObject([
      { counts: { created: 100 } },
      { counts: { created: 100 } },
    ]);
    expect(await countOf()).toBe(200);
    expect(journals()).toEqual([]);
  },
);

it('messages that cannot be printed change only the exit code', async () => {
  put('interactions.csv', 100);
  writeFileSync(join(place.cwd, 'notes.txt'), 'This file causes a warning.');
  const { exitCode, stdout } = await runUnread(['.', '--json'], 'full', true);
  expect(exitCode).toBe(2);
  expect(JSON.parse(stdout).files).toMatchObject([{ counts: { created: 100 } }]);
  expect(journals()).toEqual([]);
});

/** Returns settings with which the command is killed once it has removed its first journal. */
function killedAtRemoval(): Record<string, string> {
  const preload = join(place.cwd, 'kill.mjs');
  writeFileSync(
    preload,
    `import fsp from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
const { rm } = fsp;
fsp.rm = async (path, options) => {
  const isJournal = String(path).endsWith('.journal') && existsSync(path);
  await rm(path, options);
  if (isJournal) process.kill(process.pid, 'SIGKILL');
};
syncBuiltinESMExports();`,
  );
  return { NODE_OPTIONS: `--import=${preload}` };
}

it('a run that is killed between the removal of two journals has reported its result', async () => {
  put('interactions.csv', 100);
  put('interactions-2.csv', 100);
  const env = { ...place.env, ...killedAtRemoval() };
  const args = ['upload', 'interactions.csv', 'interactions-2.csv'] as const;
  const killed = await runIntake({ ...place, env }, ...args);
  expect(killed.exitCode).toBe(null);
  expect(killed.stdout).toContain('interactions-2.csv');
  expect(journals()).toHaveLength(1);
  const resumed = await runIntake(place, ...args, '--resume');
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(resumed.stderr).toContain('is finished: its result was reported');
  expect(await countOf()).toBe(200);
  expect(journals()).toEqual([]);
});

it('a run that is killed while it removes journals because nothing was stored leaves no file out', async () => {
  put('interactions.csv', 100);
  put('interactions-2.csv', 100);
  const env = { ...place.env, INTAKE_KEY: `${key.slice(0, -1)}${key.endsWith('0') ? 1 : 0}` };
  const args = ['upload', 'interactions.csv', 'interactions-2.csv'] as const;
  const killed = await runIntake({ ...place, env: { ...env, ...killedAtRemoval() } }, ...args);
  expect(killed.exitCode).toBe(null);
  expect(journals()).toHaveLength(1);
  const resumed = await runIntake(place, ...args, '--resume');
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(resumed.stderr).not.toContain('is finished');
  expect(await countOf()).toBe(200);
  expect(journals()).toEqual([]);
});

it('a run that is killed before all its files have journals has sent nothing, and begins when it is resumed', async () => {
  put('interactions.csv', 100);
  put('interactions-2.csv', 100);
  const preload = join(place.cwd, 'kill.mjs');
  writeFileSync(
    preload,
    `import fsp from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
const { rename } = fsp;
let isFirst = true;
fsp.rename = async (from, to) => {
  if (!String(to).endsWith('.journal')) return rename(from, to);
  if (!isFirst) return new Promise(() => {});
  isFirst = false;
  await rename(from, to);
  process.kill(process.pid, 'SIGKILL');
};
syncBuiltinESMExports();`,
  );
  const env = { ...place.env, NODE_OPTIONS: `--import=${preload}` };
  const args = ['upload', 'interactions.csv', 'interactions-2.csv'] as const;
  expect((await runIntake({ ...place, env }, ...args)).exitCode).toBe(null);
  expect(journals()).toHaveLength(1);
  expect(await countOf()).toBe(0);
  const [first] = journals().map((name) => name.replace('.journal', ''));
  expect(await runIntake(place, ...args, '--resume')).toMatchObject({ exitCode: 0 });
  expect(await countOf()).toBe(200);
  expect(await runIntake(place, 'upload', first ?? '', '--resume')).toMatchObject({ exitCode: 2 });
  expect(await countOf()).toBe(200);
});

it('a file that was resumed alone is not sent again with the others', async () => {
  put('interactions.csv', 100);
  put('interactions-2.csv', 100);
  const stuck = await through(({ method }) => (method === 'POST' ? 'cut after' : 'pass'));
  const running = startIntake(stuck, 'upload', 'interactions.csv', 'interactions-2.csv');
  await expect.poll(countOf).toBe(100);
  running.kill('SIGKILL');
  await running.ended;
  for (const name of journals()) {
    const path = join(place.cwd, name);
    writeFileSync(path, readFileSync(path, 'utf8').replace(stuck.env.INTAKE_URL ?? '', server.url));
  }
  expect(await runIntake(place, 'upload', 'interactions.csv', '--resume')).toMatchObject({ exitCode: 0 });
  // A refused key does not lose the proof that this file is finished.
  const env = { ...place.env, INTAKE_KEY: `${key.slice(0, -1)}${key.endsWith('0') ? 1 : 0}` };
  const both = ['upload', 'interactions.csv', 'interactions-2.csv', '--resume'];
  for (const args of [both, ['upload', 'interactions-2.csv', '--resume'], both]) {
    const refused = await runIntake({ ...place, env }, ...args);
    expect(refused).toMatchObject({ exitCode: 2, stdout: '' });
    expect(refused.stderr).toContain('does not accept the API key');
  }
  const rest = await runIntake(place, 'upload', 'interactions.csv', 'interactions-2.csv', '--resume');
  expect(rest.exitCode, rest.stderr).toBe(0);
  expect(rest.stderr).toContain('interactions.csv is finished');
  expect(await countOf()).toBe(200);
});

it('a new file does not join a resumed upload', async () => {
  put('interactions.csv', 3_000);
  const stuck = await through(({ method }) => (method === 'POST' ? 'cut after' : 'pass'));
  const running = startIntake(stuck, 'upload', '.');
  await expect.poll(countOf).toBe(3_000);
  running.kill('SIGKILL');
  await running.ended;
  put('interactions-2.csv', 10);
  const { exitCode, stderr } = await runIntake(stuck, 'upload', '.', '--resume');
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/nothing to resume for interactions-2\.csv.*\nResume only the other files/);
});

it('a new key of the same organisation continues an upload, a key of another one does not', async () => {
  put('interactions.csv', 20_000);
  let lost = 0;
  const losing = await through(({ method, body }) =>
    method === 'POST' && !body.includes('"event_timestamp":1}') && ++lost > 0 ? 'cut after' : 'pass',
  );
  const running = startIntake(losing, 'upload', 'interactions.csv');
  const journal = join(place.cwd, 'interactions.csv.journal');
  while (
    running.exitCode === null &&
    !(existsSync(journal) && readFileSync(journal, 'utf8').includes('"done"'))
  )
    await sleep(10);
  await expect.poll(() => lost).toBeGreaterThan(2);
  running.kill('SIGKILL');
  await running.ended;
  const text = readFileSync(journal, 'utf8');
  writeFileSync(journal, text.replace(losing.env.INTAKE_URL ?? '', server.url));
  const resume = (other: string) =>
    runIntake(
      { ...place, env: { ...place.env, INTAKE_KEY: other } },
      ...['upload', 'interactions.csv', '--resume', '--json'],
    );
  const stranger = await resume(await server.createKey(`${organisation}-other`));
  expect(stranger).toMatchObject({ exitCode: 2, stdout: '' });
  expect(stranger.stderr).toContain('Use a key of the same organisation that may read data');
  const successor = await server.createKey(organisation);
  await server.run('keys', 'revoke', key.split('_')[1] ?? '');
  key = successor;
  const resumed = await resume(successor);
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(await countOf()).toBe(20_000);
});

it('a key of another organisation does not continue an upload of which nothing was answered', async () => {
  put('interactions.csv', 3_000);
  let fate: Fate = 'cut after';
  const losing = await through(({ method }) => (method === 'POST' ? fate : 'pass'));
  const running = startIntake(losing, 'upload', 'interactions.csv');
  await expect.poll(countOf).toBe(3_000);
  running.kill('SIGKILL');
  await running.ended;
  fate = 'pass';
  const resume = (other: string) =>
    runIntake(
      { ...losing, env: { ...losing.env, INTAKE_KEY: other } },
      'upload',
      'interactions.csv',
      '--resume',
    );
  const stranger = await server.createKey(`${organisation}-stranger`);
  const refused = await resume(stranger);
  expect(refused).toMatchObject({ exitCode: 2, stdout: '' });
  expect(refused.stderr).toContain('Use a key of the same organisation that may read data');
  const theirs = await new Intake({ url: server.url, key: stranger }).data.overview();
  expect(theirs.map(({ records }) => records).filter((records) => records > 0)).toEqual([]);
  expect(await resume(await server.createKey(organisation))).toMatchObject({ exitCode: 0 });
  expect(await countOf()).toBe(3_000);
});

it('if the key is replaced before any request arrived, the messages lead to a new start', async () => {
  put('interactions.csv', 3_000);
  let fate: Fate = 'cut before';
  let lost = 0;
  const losing = await through(({ method }) => (method === 'POST' && ++lost ? fate : 'pass'));
  const running = startIntake(losing, 'upload', 'interactions.csv');
  await expect.poll(() => lost).toBeGreaterThan(1);
  running.kill('SIGKILL');
  await running.ended;
  fate = 'pass';
  const successor = await server.createKey(organisation);
  await server.run('keys', 'revoke', key.split('_')[1] ?? '');
  key = successor;
  const next = { ...losing, env: { ...losing.env, INTAKE_KEY: successor } };
  const early = await runIntake(next, 'upload', 'interactions.csv', '--resume');
  expect(early).toMatchObject({ exitCode: 2, stdout: '' });
  expect(early.stderr).toMatch(
    /request may still be under way: run the same command again in \d+ minutes?\.\n$/,
  );
  expect(early.stderr).not.toMatch(/nothing is stored|remove/);
  const earlier = Date.now() / 1_000 - 16 * 60;
  utimesSync(join(place.cwd, 'interactions.csv.journal'), earlier, earlier);
  const refused = await runIntake(next, 'upload', 'interactions.csv', '--resume');
  expect(refused).toMatchObject({ exitCode: 2, stdout: '' });
  expect(refused.stderr).toMatch(
    /nothing is stored .*: remove interactions\.csv\.journal and upload the file without --resume\.\n$/,
  );
  expect(refused.stderr).not.toContain('or upload it again');
  const again = await runIntake(next, 'upload', 'interactions.csv');
  expect(again).toMatchObject({ exitCode: 2, stdout: '' });
  expect(again.stderr).toContain('remove interactions.csv.journal');
  expect(await countOf()).toBe(0);
  rmSync(join(place.cwd, 'interactions.csv.journal'));
  // For the service, the first run is interrupted only after 15 minutes.
  expect((await runIntake(next, 'upload', 'interactions.csv')).stderr).toContain('in 15 minutes');
  expect(await runIntake(next, 'upload', 'interactions.csv', '--again')).toMatchObject({ exitCode: 0 });
  expect(await countOf()).toBe(3_000);
});

it('the lock of another machine is respected while it is touched, and removed otherwise', async () => {
  const before = { ...limits };
  Object.assign(limits, { lockTouchedEveryMs: 50, lockWatchedForMs: 500 });
  onTestFinished(() => void Object.assign(limits, before));
  const disk = openDisk();
  const elsewhere = { ...disk, machine: async () => ({ host: 'elsewhere', machine: 'another container' }) };
  const locked = { job: 'upload', names: ['a.csv', 'b.csv'] } as const;
  const unlock = await lockFolder(elsewhere, place.cwd, locked);
  await expect(lockFolder(disk, place.cwd, { job: 'upload', names: ['b.csv'] })).rejects.toThrow(
    `Another intake upload is sending ${place.cwd}/b.csv, as process ${process.pid}`,
  );
  await (await lockFolder(disk, place.cwd, { job: 'upload', names: ['c.csv'] }))();
  const stopped = { ...elsewhere, touch: async () => {} };
  await unlock();
  await lockFolder(stopped, place.cwd, locked);
  await (await lockFolder(disk, place.cwd, locked))();
  expect(readdirSync(place.cwd)).toEqual([]);
});

it('a run whose lock was removed while it was paused sends nothing and leaves the journal of the other run', async () => {
  put('interactions.csv', 3_000);
  const journal = join(place.cwd, 'interactions.csv.journal');
  // The command opens the run after it has its journal and before it sends anything.
  const paused = await through(({ url }) => {
    if (url === '/v1/runs') takeOver(() => writeFileSync(journal, 'another journal\n'));
    return 'pass';
  }, true);
  const { exitCode, stdout, stderr } = await runIntake(paused, 'upload', 'interactions.csv');
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  expect(stderr).toContain('The lock of these files was removed while this run was paused');
  expect(readFileSync(journal, 'utf8')).toBe('another journal\n');
  expect(await countOf()).toBe(0);
});

it('a run whose lock is removed later sends no more and overwrites no line of its journal', async () => {
  put('interactions.csv', 30_000);
  const journal = join(place.cwd, 'interactions.csv.journal');
  const line = `${JSON.stringify({ of: 'another run', text: 'x'.repeat(1_000) })}\n`;
  let isTaken = false;
  const paused = await through(({ method }) => {
    if (method === 'POST' && !isTaken) takeOver(() => appendFileSync(journal, line));
    isTaken ||= method === 'POST';
    return 'pass';
  });
  const { exitCode, stdout, stderr } = await runIntake(paused, 'upload', 'interactions.csv');
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  expect(stderr).toContain('run the same command again with --resume');
  expect(readFileSync(journal, 'utf8')).toContain(line);
  expect(await countOf()).toBeLessThan(30_000);
  expect(await runIntake(place, 'upload', 'interactions.csv')).toMatchObject({ exitCode: 2 });
});

/** Removes the lock of the running upload, as another machine does, and writes to its journal. */
function takeOver(write: () => void): void {
  const locks = readdirSync(place.cwd).filter((name) => name.startsWith('.intake-upload-'));
  for (const lock of locks) rmSync(join(place.cwd, lock));
  if (locks.length > 0) write();
}

it('the lock of a process that has ended is removed, even if another process has its id', async () => {
  const disk = openDisk();
  const locked = { job: 'upload', names: ['a.csv'] } as const;
  const ended = { ...disk, pid: process.ppid, startOf: async () => 'long ago' };
  await lockFolder(ended, place.cwd, locked);
  await (await lockFolder(disk, place.cwd, locked))();
  expect(readdirSync(place.cwd)).toEqual([]);
});
