// @module-tag full

import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { publint } from 'publint';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';

const run = promisify(execFile);
const client = fileURLToPath(new URL('..', import.meta.url));
const root = fileURLToPath(new URL('../..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8'));

/** Node 20, either from Debian or from Node's own package. */
const debianNode = '/usr/bin/node';

let server: SharedServer;
let folder: string;
let project: string;
let installed: string;
let tarball: string;

/** Packs the client and installs it outside the checkout, as the guide describes. */
beforeAll(async () => {
  server = await sharedServer();
  folder = mkdtempSync(join(tmpdir(), 'intake-package-'));
  project = join(folder, 'my-project');
  mkdirSync(project);
  const guide = readFileSync(join(root, 'docs/uploading/index.md'), 'utf8');
  const [, installing = ''] = /^```bash\n(.*?)^```$/ms.exec(guide) ?? [];
  expect(installing).toContain('npm install');
  // Skip the build, because the program is already built and a rebuild would temporarily remove it for other tests.
  const script = installing.replace('npm run build\n', '').replaceAll('~/my-project', project);
  const flags = { npm_config_prefer_offline: 'true', npm_config_audit: 'false', npm_config_fund: 'false' };
  const { stdout } = await run('bash', ['-euc', script], { cwd: root, env: { ...process.env, ...flags } });
  installed = stdout.trim().split('\n').at(-1) ?? '';
  tarball = join(project, `intake-client-${version}.tgz`);
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
});

it('publint reports nothing about the packed tarball', async () => {
  const { messages } = await publint({
    strict: true,
    pack: { tarball: new Uint8Array(readFileSync(tarball)).buffer },
  });
  expect(messages).toEqual([]);
});

it('its types are found by every module resolution that can load it', async () => {
  const attw = join(root, 'node_modules/.bin/attw');
  // The package is ESM only. CommonJS can load it since Node 20.19, and Node 10 resolution does not support `exports`.
  await run(attw, [tarball, '--profile', 'esm-only']);
});

it('works from an empty folder and plain JavaScript, without its dependencies', async () => {
  const key = await server.createKey('package');
  const unpacked = join(folder, 'app/node_modules/intake-client');
  mkdirSync(unpacked, { recursive: true });
  await run('tar', ['-xzf', tarball, '--strip-components=1', '-C', unpacked]);
  writeFileSync(
    join(folder, 'app/main.mjs'),
    `import { Intake, IntakeError } from 'intake-client';
     const intake = new Intake({ url: process.env.INTAKE_URL, key: process.env.INTAKE_KEY });
     const tags = [{ tag_id: crypto.randomUUID(), name: 'vegan' }, { tag_id: 'none', name: 'vegan' }];
     const { counts, failed } = await intake.upload('tags', tags).finish();
     const error = await intake.data.get('tags', crypto.randomUUID()).catch((thrown) => thrown);
     console.log(JSON.stringify([counts.created, failed[0].index, error instanceof IntakeError, error.code]));`,
  );
  const env = { PATH: process.env.PATH, INTAKE_URL: server.url, INTAKE_KEY: key };
  // The oldest supported Node is installed only on some machines.
  for (const node of [process.execPath, ...(existsSync(debianNode) ? [debianNode] : [])]) {
    const { stdout } = await run(node, ['main.mjs'], { cwd: join(folder, 'app'), env });
    expect(JSON.parse(stdout), node).toEqual([1, 1, true, 'record_not_found']);
  }
});

it('has types that reject a wrong field', async () => {
  const app = join(folder, 'app');
  writeFileSync(
    join(app, 'right.ts'),
    `import { Intake } from 'intake-client';
     new Intake({ url: '', key: '' }).upload('tags', [{ tag_id: '', name: '' }]);`,
  );
  writeFileSync(
    join(app, 'wrong.ts'),
    `import { Intake } from 'intake-client';
     new Intake({ url: '', key: '' }).upload('tags', [{ tag_id: '', nam: '' }]);`,
  );
  const tsc = join(root, 'node_modules/.bin/tsc');
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', ''];
  const { stdout } = await run(tsc, [...flags, 'right.ts', 'wrong.ts'], { cwd: app }).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout.match(/^\S+(?=\(.*error)/gm)).toEqual(['wrong.ts']);
  expect(stdout).toContain("'nam' does not exist");
});

it('is installed as in the guide, and the command and the library work there', async () => {
  const commit = readFileSync(join(root, 'client/dist/commit'), 'utf8');
  expect(installed).toBe(commit === '' ? version : `${version}+${commit}`);
  const key = await server.createKey('installed');
  const env = { ...process.env, INTAKE_URL: server.url, INTAKE_KEY: key };
  writeFileSync(join(project, 'tags.csv'), 'tag_id,name\n5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01,vegan\n');
  const uploaded = await run('node_modules/.bin/intake', ['upload', 'tags.csv'], { cwd: project, env });
  expect(uploaded.stdout).toMatch(/tags\.csv +tags +1 +1 +0/);
  const program = `
    import { Intake } from 'intake-client';
    const intake = new Intake({ url: process.env.INTAKE_URL, key: process.env.INTAKE_KEY });
    const item = { item_type: 'TAG', item_id: '5f0c2d3e-8a41-4c5b-9d77-2b1e6f8a9c01' };
    const interaction = { interaction_type: 'SHARE', ...item, event_timestamp: 1_700_000_000 };
    const recorded = await Promise.all([1, 2, 3].map(() => intake.record(interaction)));
    await intake.close();
    try {
      intake.upload('tag', []);
    } catch (error) {
      console.log(new Set(recorded.map(({ interaction_id }) => interaction_id)).size, error.message);
    }`;
  writeFileSync(join(project, 'main.mjs'), program);
  const { stdout: printed } = await run(process.execPath, ['main.mjs'], { cwd: project, env });
  expect(printed).toMatch(/^3 There is no record type "tag"\./);
});
