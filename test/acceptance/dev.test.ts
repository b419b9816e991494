// @module-tag full
// @module-tag long

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { freePort } from '../support/free-port.ts';
import { expectInTime } from '../support/in-time.ts';
import { scratchCopy } from '../support/scratch-copy.ts';

const isRoot = process.getuid?.() === 0;
/** Returns whether every user can enter all folders above this path. */
const reachable = (path: string): boolean =>
  path === dirname(path) || ((statSync(dirname(path)).mode & 0o001) !== 0 && reachable(dirname(path)));
const othersCanRun = reachable(process.execPath) && reachable(fileURLToPath(import.meta.url));
const shop = { shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01', name: 'Corner Bakery', region: 'GB' };
/** The parts of a clone that `npm run dev` needs. */
const needed = ['src', 'scripts', 'migrations', 'package.json'];
/**
 * Copies the needed files with the built reference and console, because building them takes longer than starting the
 * service. The first test covers the build.
 */
function smallCopy(): string {
  const folder = scratchCopy(...needed);
  for (const built of ['dist/reference', 'dist/console']) {
    const from = fileURLToPath(new URL(`../../${built}`, import.meta.url));
    cpSync(from, join(folder, built), { recursive: true });
  }
  return folder;
}
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

interface Dev {
  readonly process: ChildProcess;
  readonly output: string;
  readonly key: string;
  readonly privacyKey: string;
  readonly url: string;
  readonly startedInMs: number;
}

/** Starts `npm run dev` as a terminal would: in its own process group, so that Ctrl-C reaches all of its processes. */
async function startDev(folder: string, identity: { uid?: number; gid?: number } = {}): Promise<Dev> {
  const port = await freePort();
  const since = performance.now();
  const env = { ...process.env, PORT: String(port), HOME: folder, npm_config_cache: join(folder, '.npm') };
  const child = spawn('npm', ['run', 'dev'], { cwd: folder, env, detached: true, ...identity });
  const closed = once(child, 'close');
  let output = '';
  child.stdout?.on('data', (chunk) => (output += chunk));
  child.stderr?.on('data', (chunk) => (output += chunk));
  const url = `http://127.0.0.1:${port}`;
  while (!output.includes('Ctrl-C stops it')) {
    if (child.exitCode !== null) {
      // By now the process has written its last output.
      await closed;
      throw new Error(`npm run dev ended:\n${output}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await expect.poll(async () => (await apiOf(url).get('/health/ready')).status).toBe(200);
  const [key = '', privacyKey = ''] = output.match(/(?<=ey +)intake_\w+/g) ?? [];
  return { process: child, output, key, privacyKey, url, startedInMs: performance.now() - since };
}

async function ctrlC(dev: Dev): Promise<void> {
  process.kill(-(dev.process.pid as number), 'SIGINT');
  await once(dev.process, 'exit');
}

/** Checks that no process has one of the folders in its command line. */
async function expectNothingLeft(...inFolders: string[]): Promise<void> {
  expect(inFolders).not.toContain('');
  const left = () => {
    const all = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n');
    return all.filter((line) => inFolders.some((folder) => line.includes(folder)));
  };
  await expect.poll(left).toEqual([]);
}

/** Checks that the second key can erase people and collect what is stored about them. */
async function expectPrivacy({ url, privacyKey }: Dev): Promise<void> {
  const officer = apiOf(url, privacyKey);
  const customer_ids = [randomUUID()];
  expect((await officer.post('/v1/erasures?dry_run=true', { customer_ids })).status).toBe(200);
  expect((await officer.post('/v1/access-requests', { customer_ids })).status).toBe(202);
  expect((await officer.get('/v1/data/customers')).status).toBe(200);
}

/** Runs the printed command unchanged in a shell. */
function pasteCurl({ output }: Dev): string {
  const curl = /curl -sS[\s\S]*?}'/.exec(output)?.[0] ?? '';
  return execFileSync('bash', ['-c', curl], { encoding: 'utf8' });
}

/** Starts `npm run dev`, uploads with the command that it prints, and stops it. Returns the data folder. */
async function startsAndStops(
  folder: string,
  identity: { uid?: number; gid?: number } = {},
): Promise<{ dev: Dev; home: string }> {
  const dev = await startDev(folder, identity);
  expect(JSON.parse(pasteCurl(dev)).batches[0].data.counts.created).toBe(1);
  for (const path of ['/docs/', '/docs/scalar.js', '/openapi.json'])
    expect((await fetch(dev.url + path)).status).toBe(200);
  await ctrlC(dev);
  const home = /the data stays in (\S+)\./.exec(dev.output)?.[1] ?? '';
  await expectNothingLeft(folder, home);
  return { dev, home };
}

describe('npm run dev', () => {
  // All steps share one folder, because creating it takes longer than the steps themselves.
  it('starts without an installed database, prints a command that works, stops completely, keeps its data, does not disturb a running one, takes over after a kill, and refuses data with migrations that no longer exist', async () => {
    const folder = scratchCopy();
    folders.push(folder);
    const { dev: first, home } = await startsAndStops(folder);

    const second = await startDev(folder);
    expect(second.key).toBe(first.key);
    expect((await apiOf(second.url, second.key).batch('shops', [shop])).counts).toMatchObject({
      unchanged: 1,
    });
    expect((await apiOf(second.url, second.key).get('/v1/reports/recommendations')).status).toBe(200);
    expect(second.privacyKey).toBe(first.privacyKey);
    await expectPrivacy(second);
    await expect(startDev(folder)).rejects.toThrow(`already running at ${second.url}`);
    expect((await apiOf(second.url, second.key).get('/v1/data/shops')).status).toBe(200);

    process.kill(-(second.process.pid as number), 'SIGKILL');
    await once(second.process, 'exit');
    // Data from before there were two keys.
    rmSync(join(folder, '.intake/privacy-key'));
    const third = await startDev(folder);
    expect(third.key).toBe(first.key);
    await expectPrivacy(third);
    await ctrlC(third);
    await expectNothingLeft(folder, home);

    const migrations = join(folder, 'migrations');
    renameSync(join(migrations, '0004_receipts.sql'), join(migrations, '0004_named-otherwise.sql'));
    await expect(startDev(folder)).rejects.toThrow(
      /the data in \S+\.intake comes from a version before 0\.1\.0.*delete that folder and start again/,
    );
    await expectNothingLeft(folder, home);

    // Check how long the very first start took. If the machine was busy then, measure another start without any data.
    const startOf = async () => {
      rmSync(join(folder, '.intake'), { recursive: true, force: true });
      const dev = await startDev(folder);
      await ctrlC(dev);
      return dev.startedInMs;
    };
    let known: number | undefined = first.startedInMs;
    await expectInTime(async () => {
      const ms = known ?? (await startOf());
      known = undefined;
      return [{ what: 'the first start', ms, promisedMs: 15_000 }];
    });
  });

  it.skipIf(!isRoot || !othersCanRun)(
    'starts and stops completely for an ordinary user (needs root to become one, and a Node and a checkout it can reach)',
    async () => {
      const folder = smallCopy();
      folders.push(folder);
      const id = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
      execFileSync('chown', ['-R', 'nobody', folder]);
      await startsAndStops(folder, { uid: id('-u'), gid: id('-g') });
    },
  );

  it.skipIf(!isRoot)(
    'starts and stops completely for root below a private folder, such as its home, and keeps its data (needs root)',
    async () => {
      const folder = smallCopy();
      folders.push(folder);
      chmodSync(folder, 0o700);
      const inner = join(folder, 'clone');
      mkdirSync(inner);
      for (const name of [...needed, 'dist', 'node_modules'])
        renameSync(join(folder, name), join(inner, name));
      const { dev, home } = await startsAndStops(inner);
      folders.push(home);
      expect(home).not.toContain(folder);
      // The data is stored elsewhere, and the next start finds it there.
      const again = await startDev(inner);
      expect(again.key).toBe(dev.key);
      await ctrlC(again);
      await expectNothingLeft(inner, home);
    },
  );
});
