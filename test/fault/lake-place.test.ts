// @module-tag full

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, it, onTestFinished } from 'vitest';
import { startLocalPostgres, unprivilegedAccount } from '../../scripts/local-postgres.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase, servingLogin, servingUrl } from '../support/database.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';
import { lakeFolder, startLakeProcess, untilInLake } from '../support/running-lake.ts';
import { untilPasses } from '../support/until-passes.ts';

/** The files of the lakes belong to one database. Every other database, and a wrong place, is refused by name. */

const programs = '/usr/lib/postgresql/15/bin';
const isInstalled = existsSync(join(programs, 'pg_dump'));
const shop = newShop();

interface Written {
  readonly databaseUrl: string;
  readonly server: BuiltServer;
  readonly api: Api;
  readonly key: string;
  readonly folder: ReturnType<typeof lakeFolder>;
  readonly lake: Awaited<ReturnType<typeof startLakeProcess>>;
}

/** Starts a server and a lake that has three interactions. */
async function written(databaseUrl: string): Promise<Written> {
  const folder = lakeFolder();
  onTestFinished(() => folder.remove());
  const server = await startBuiltServer({ DATABASE_URL: databaseUrl, LAKE_URL: folder.url });
  onTestFinished(() => server.stop());
  const key = await server.createKey('acme');
  const api = apiOf(server.url, key);
  await api.upload('shops', [shop]);
  await record(api, 3);
  await server.run('organisations', 'set-lake', 'acme', 'on');
  const lake = await startedLake(databaseUrl, folder.url);
  await untilInLake(api, 3);
  return { databaseUrl, server, api, key, folder, lake };
}

async function startedLake(databaseUrl: string, lakeUrl: string) {
  const lake = await startLakeProcess(databaseUrl, lakeUrl);
  onTestFinished(() => lake.stop());
  await untilPasses(() => expect(lake.log.join('\n')).toContain('Writing lakes'));
  return lake;
}

async function record(api: Api, count: number): Promise<void> {
  const records = many(count, () => ({
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: 1_700_000_000,
  }));
  expect((await api.post('/user-interactions/batch', { records })).status).toBe(200);
}

/** Waits until everything is copied, and expects this many rows in these tables. */
async function untilCopied(api: Api, rows: Readonly<Record<string, number>>): Promise<void> {
  const tables = async (): Promise<{ table: string; rows: number; state: string }[]> =>
    (await api.get('/v1/lake')).body.tables ?? [];
  const isCopied = async () => (await tables()).find(({ table }) => table in rows)?.state === 'following';
  await expect.poll(isCopied, { interval: 500 }).toBe(true);
  const found = (await tables()).filter(({ table }) => table in rows);
  expect(Object.fromEntries(found.map((one) => [one.table, one.rows]))).toEqual(rows);
}

/** Returns every file with its size and its time. */
const filesIn = (path: string) =>
  readdirSync(path, { recursive: true, encoding: 'utf8' })
    .map((name) => [name, statSync(join(path, name))] as const)
    .filter(([, stats]) => stats.isFile())
    .map(([name, { size, mtimeMs }]) => `${name} ${size} ${mtimeMs}`)
    .toSorted();

const runLake = (databaseUrl: string, lakeUrl: string, ...flags: string[]) =>
  runCommand(['lake', ...flags], { DATABASE_URL: servingUrl(databaseUrl), LAKE_URL: lakeUrl });

/** Expects that neither process starts, and returns what both say. */
async function expectRefused(databaseUrl: string, lakeUrl: string): Promise<string> {
  const lake = await runLake(databaseUrl, lakeUrl);
  const serve = await runCommand(['serve'], {
    DATABASE_URL: servingUrl(databaseUrl),
    LAKE_URL: lakeUrl,
    PORT: '0',
  });
  expect([lake.exitCode, serve.exitCode]).toEqual([1, 1]);
  expect(serve.stderr).toBe(lake.stderr);
  expect(lake.stderr.trim().split('\n')).toHaveLength(1);
  return lake.stderr;
}

const idOf = async (databaseUrl: string) =>
  (await queryDatabase<{ fingerprint: string }>(databaseUrl, 'select fingerprint from lake_place'))[0]
    ?.fingerprint ?? '';

/** Copies a database on the same server. */
async function copyOf(databaseUrl: string): Promise<string> {
  const name = new URL(databaseUrl).pathname.slice(1);
  await queryDatabase(inject('postgresUrl'), `create database ${name}_copy template ${name}`);
  return `${databaseUrl}_copy`;
}

async function stopBoth({ lake, server }: Written): Promise<void> {
  await lake.stop();
  await server.stop();
}

it('a copy of the database is refused, until it takes the place over on purpose', async () => {
  const original = await written(await createTestDatabase());
  const { databaseUrl, folder } = original;
  await stopBoth(original);
  const copy = await copyOf(databaseUrl);
  const before = filesIn(folder.path);
  const refusal = await expectRefused(copy, folder.url);
  expect(filesIn(folder.path)).toEqual(before);
  const id = await idOf(databaseUrl);
  const [name, copied] = [databaseUrl, copy].map((url) => new URL(url).pathname.slice(1));
  expect(refusal).toContain(`database "${name}" (${id}), but DATABASE_URL is database "${copied}" (`);
  expect(refusal).toContain(`--take-over ${id}`);

  // The original continues.
  await (await startedLake(databaseUrl, folder.url)).stop();
  for (const wrong of ['empty', '0123456789ab'])
    expect((await runLake(copy, folder.url, '--take-over', wrong)).stderr).toContain(`--take-over ${id}`);
  const unknown = randomUUID();
  mkdirSync(join(folder.path, unknown, 'shops'), { recursive: true });
  const taken = await runLake(copy, folder.url, '--take-over', id);
  expect(taken).toMatchObject({ exitCode: 0, stderr: '' });
  expect(taken.stdout).toContain('everything is copied again');
  expect(taken.stdout).toMatch(
    new RegExp(`organisations that have no lake in this database: 1\\..*\\n${unknown}\\n$`),
  );
  expect(await expectRefused(databaseUrl, folder.url)).toContain(`--take-over ${await idOf(copy)}`);
});

it('after a copy has taken over, the lake has nothing that the original wrote since the copy was made', async () => {
  const original = await written(await createTestDatabase());
  const { databaseUrl, folder, key } = original;
  await stopBoth(original);
  const copy = await copyOf(databaseUrl);
  const restarted = await startBuiltServer({ DATABASE_URL: databaseUrl, LAKE_URL: folder.url });
  onTestFinished(() => restarted.stop());
  const lake = await startedLake(databaseUrl, folder.url);
  const before = apiOf(restarted.url, key);
  await before.upload('shops', [newShop()]);
  await record(before, 4);
  await untilInLake(before, 7);
  await stopBoth({ ...original, lake, server: restarted });

  expect(await runLake(copy, folder.url, '--take-over', await idOf(databaseUrl))).toMatchObject({
    exitCode: 0,
  });
  const server = await startBuiltServer({ DATABASE_URL: copy, LAKE_URL: folder.url });
  onTestFinished(() => server.stop());
  const api = apiOf(server.url, key);
  // The copy gives the numbers of the original's changes to changes of its own before its lake is written.
  for (const shops of [many(2, () => newShop()), [newShop()]]) await api.upload('shops', shops);
  await record(api, 1);
  await startedLake(copy, folder.url);
  await untilCopied(api, { shops: 4, interactions: 4 });
});

it.skipIf(!isInstalled)(
  'a database copied with pg_dump to another server is refused, and no file is touched',
  async () => {
    const home = mkdtempSync(join(tmpdir(), 'intake-place-'));
    chmodSync(home, 0o755);
    const clusters: { stop(): Promise<void> }[] = [];
    onTestFinished(async () => {
      for (const cluster of clusters) await cluster.stop();
      rmSync(home, { recursive: true, force: true });
    });
    const start = async (name: string) => {
      const cluster = await startLocalPostgres(join(home, name), programs);
      clusters.push(cluster);
      const { password } = new URL(cluster.url('postgres'));
      for (const role of ['intake_serve', 'intake_admin', 'intake_read_all'])
        await queryDatabase(cluster.url('postgres'), `create role ${role} nologin`);
      await queryDatabase(
        cluster.url('postgres'),
        `create role ${servingLogin} login password '${password}' in role intake_serve`,
      );
      await queryDatabase(cluster.url('postgres'), 'create database intake');
      return cluster.url('intake');
    };
    const [first, second] = [await start('first'), await start('second')];
    expect((await runCommand(['migrate'], { DATABASE_URL: first })).exitCode).toBe(0);
    const original = await written(first);
    const { folder } = original;
    await stopBoth(original);
    const options = { ...unprivilegedAccount(), maxBuffer: 64 * 1024 * 1024 };
    const text = execFileSync(join(programs, 'pg_dump'), [first], options);
    execFileSync(join(programs, 'psql'), ['-q', '-v', 'ON_ERROR_STOP=1', '-d', second], {
      ...options,
      input: text,
    });
    const before = filesIn(folder.path);
    expect(before.length).toBeGreaterThan(10);
    expect(await expectRefused(second, folder.url)).toContain(`database "intake" (${await idOf(first)})`);
    expect(filesIn(folder.path)).toEqual(before);
  },
);

it('serve and lake with different places are refused, also if serve started first', async () => {
  const { databaseUrl, server, api, key, folder, lake } = await written(await createTestDatabase());
  const other = lakeFolder();
  onTestFinished(() => other.remove());
  const refusal = await expectRefused(databaseUrl, other.url);
  const name = new URL(databaseUrl).pathname.slice(1);
  expect(refusal).toContain(`LAKE_URL ${other.url} is not the place of the lakes of database "${name}"`);
  expect(refusal).toContain(`They are at ${folder.url}.`);
  expect(readdirSync(other.path)).toEqual([]);

  // The lake moves to an empty place, while serve still reads the old one.
  await lake.stop();
  const moved = await runLake(databaseUrl, other.url, '--take-over', 'empty');
  expect(moved.stdout).toContain('everything is copied again');
  expect(moved.stdout).toContain(`Delete the files at ${folder.url}`);
  await untilPasses(async () => expect((await api.get('/v1/lake')).status).toBe(503), 500);
  await expect.poll(() => server.log.join('\n')).toContain(`which are at ${other.url}`);
  expect(await expectRefused(databaseUrl, folder.url)).toContain(`is a former place`);
  await startedLake(databaseUrl, other.url);
  const reader = await startBuiltServer({ DATABASE_URL: databaseUrl, LAKE_URL: other.url });
  onTestFinished(() => reader.stop());
  // Even an organisation without new data is copied to the new place.
  await untilCopied(apiOf(reader.url, key), { interactions: 3 });
});

it('a folder that is not mounted is not an empty lake', async () => {
  const { databaseUrl, api, folder, lake } = await written(await createTestDatabase());
  const away = `${folder.path}-away`;
  const unmount = () => {
    renameSync(folder.path, away);
    mkdirSync(folder.path);
  };
  const mount = () => {
    rmSync(folder.path, { recursive: true });
    renameSync(away, folder.path);
  };
  unmount();
  expect(await expectRefused(databaseUrl, folder.url)).toContain('its marker is missing there');
  expect(readdirSync(folder.path)).toEqual([]);
  await record(api, 2);
  await untilPasses(() => expect(lake.log.join('\n')).toContain('If a folder is not mounted, mount it'));
  mount();
  await untilInLake(api, 5);
  expect(lake.log.join('\n')).not.toContain('copied again');
});

it('while PostgreSQL is away, nothing is written to a place that may belong to another database', async () => {
  const { folder } = await written(await createTestDatabase());
  const { mtimeMs } = statSync(folder.path);
  const away = await startLakeProcess('postgres://nobody@127.0.0.1:1/intake', folder.url);
  onTestFinished(() => away.stop());
  await untilPasses(() => expect(away.log.join('\n')).toContain('Writing lakes'));
  expect(away.log.join('\n')).toContain('PostgreSQL cannot be used');
  expect(statSync(folder.path).mtimeMs).toBe(mtimeMs);
});

it('a lake of an earlier version is marked, but not if its files are missing', async () => {
  const { databaseUrl, api, folder, lake } = await written(await createTestDatabase());
  await lake.stop();
  const unmark = async () => {
    rmSync(join(folder.path, '_place'), { recursive: true });
    await queryDatabase(databaseUrl, 'update lake_place set claim = null, fingerprint = null, url = null');
  };
  await unmark();
  const empty = lakeFolder();
  onTestFinished(() => empty.remove());
  const refused = await runLake(databaseUrl, empty.url);
  expect([refused.exitCode, refused.stderr]).toEqual([
    1,
    expect.stringContaining('its files are missing there'),
  ]);
  await startedLake(databaseUrl, folder.url);
  await record(api, 1);
  await untilInLake(api, 4);
  expect(await idOf(databaseUrl)).toMatch(/^[0-9a-f]{12}$/);
});

it('after a restore, the place has to be taken over', async () => {
  const { databaseUrl, server, folder, lake } = await written(await createTestDatabase());
  await lake.stop();
  const id = await idOf(databaseUrl);
  const said = await server.run('after-restore', '--revoke-all-keys', '--without-erasures');
  expect(said).toContain(`intake-server lake --take-over ${id}`);
  const before = filesIn(folder.path);
  expect(await expectRefused(databaseUrl, folder.url)).toContain(`--take-over ${id}`);
  expect(filesIn(folder.path)).toEqual(before);
  expect(await runLake(databaseUrl, folder.url, '--take-over', id)).toMatchObject({ exitCode: 0 });
  await startedLake(databaseUrl, folder.url);
});
