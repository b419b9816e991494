// @module-tag full

import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { needTool } from '../../scripts/tools.ts';
import { settings } from '../../src/settings.ts';
import { createTestDatabase } from '../support/database.ts';
import { hasTool } from '../support/has-tool.ts';

/** Checks deploy/ without containers: validates files against their schemas and runs linters. */

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'intake-manifests-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns the program's output if it found problems, and an empty string otherwise. */
async function faults(program: string, ...args: string[]): Promise<string> {
  const told = await run(program, args, { cwd: root, maxBuffer: 1e8 }).catch(
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr || `${program} failed`,
  );
  return typeof told === 'string' ? told : '';
}

const isThere = (program: string) => !spawnSync(program, ['--version']).error;

const hasLinters = hasTool('Helm and linters');
const program = (name: string) => join(needTool('Helm and linters'), name);

describe.skipIf(!hasLinters)('files against their schemas', () => {
  it('hadolint reports nothing about the Dockerfile', async () => {
    expect(await faults(program('hadolint'), 'deploy/Dockerfile')).toBe('');
  });

  it('compose.yaml and the workflows match their schemas', async () => {
    const check = (schema: string, ...files: string[]) =>
      faults(program('check-jsonschema'), '--builtin-schema', schema, ...files);
    expect(await check('vendor.compose-spec', 'deploy/compose.yaml')).toBe('');
    const workflows = ['.github/workflows/check.yml', '.github/workflows/image.yml'];
    expect(await check('vendor.github-workflows', ...workflows)).toBe('');
  });
});

it('every variable that the manifests set is a setting', () => {
  const ofOthers = /^(POSTGRES|DATA_SOURCE|GF|AWS)_|^NODE_ENV$|^ALL$/;
  const used = [
    ...read('deploy/compose.yaml').matchAll(/^ {6}([A-Z_]+):/gm),
    ...read('deploy/helm/intake/templates/deployment.yaml').matchAll(/- {? ?name: ([A-Z_]+)/g),
    ...read('deploy/helm/intake/templates/lake.yaml').matchAll(/- {? ?name: ([A-Z_]+)/g),
    ...read('deploy/helm/intake/templates/migrate.yaml').matchAll(/- {? ?name: ([A-Z_]+)/g),
    ...read('deploy/systemd/intake@.service').matchAll(/(?:Environment=| )([A-Z_]+)=/g),
    ...read('deploy/systemd/intake-lake.service').matchAll(/(?:Environment=| )([A-Z_]+)=/g),
    ...read('deploy/systemd/serve.env.example').matchAll(/^#?([A-Z_]+)=/gm),
    ...read('deploy/Dockerfile').matchAll(/(?<=^ENV.* )([A-Z_]+)=/gm),
  ].flatMap(([, name = '']) => (ofOthers.test(name) ? [] : [name]));
  const known = Object.values(settings).map(([variable]) => variable as string);
  expect(used.length).toBeGreaterThan(20);
  expect(used.filter((name) => !known.includes(name))).toEqual([]);
});

it('the files that compose.yaml mounts exist', () => {
  const mounted = [...read('deploy/compose.yaml').matchAll(/\.(\/[\w/.-]+):\//g)].map(([, path]) => path);
  expect(mounted.length).toBeGreaterThan(4);
  // Grafana starts even if this folder is missing.
  const needed = mounted.filter((path) => path !== '/observability/dashboards');
  expect(needed.filter((path) => !existsSync(join(root, 'deploy', path ?? '')))).toEqual([]);
});

it('every service of compose.yaml that uses the lake can write to /tmp', () => {
  const services = read('deploy/compose.yaml')
    .split(/^ {2}(?=\w+:$)/m)
    .filter((one) => one.includes('LAKE_URL:'));
  expect(services.map((one) => /^\w+/.exec(one)?.[0])).toEqual(['intake', 'lake']);
  for (const one of services) expect(one).toMatch(/^ {4}tmpfs: \['?\/tmp\b/m);
});

it('the demo key of compose.yaml is printed at the first start only', async () => {
  const env = { ...process.env, DATABASE_URL: await createTestDatabase() };
  const start = () => run(process.execPath, ['deploy/compose/demo.js'], { cwd: root, env });
  expect((await start()).stdout).toMatch(/^ {2}intake_\w{11}_\w+$/m);
  expect((await start()).stdout).toBe(
    'The organisation demo exists; its key was printed when it was created.\n',
  );
});

const hasSystemd = isThere('systemd-analyze');
if (!hasSystemd) console.log("The units are not checked: that needs Debian's systemd");

describe.skipIf(!hasSystemd)('the units of systemd', () => {
  it.each([
    ['intake@.service', 'intake@1.service'],
    ['intake-lake.service', 'intake-lake.service'],
    ['intake-migrate.service', 'intake-migrate.service'],
    ['intake-backup-log.service', 'intake-backup-log.service'],
  ])('%s is valid, and restricts the process', async (file, unit) => {
    const copy = join(folder, unit);
    writeFileSync(copy, read(`deploy/systemd/${file}`).replaceAll('/usr/bin/node', process.execPath));
    expect(await faults('systemd-analyze', 'verify', copy)).toBe('');
    // The score ranges from 0 (most restricted) to 10, but the threshold is given in tenths.
    expect(await faults('systemd-analyze', 'security', '--offline=true', '--threshold=15', copy)).toBe('');
  });

  it('the timer is valid, and starts the service of its name', async () => {
    const alone = mkdtempSync(join(folder, 'timer-'));
    const copy = (name: string, from: string | RegExp, to: string) => {
      const file = join(alone, name);
      writeFileSync(file, read(`deploy/systemd/${name}`).replace(from, to));
      return file;
    };
    copy('intake-backup-log.service', '/usr/bin/node', process.execPath);
    const name = 'intake-backup-log.timer';
    expect(await faults('systemd-analyze', 'verify', copy(name, '', ''))).toBe('');
    const wrong = copy(name, /OnCalendar=.*/, 'OnCalendar=every 15 minutes');
    expect(await faults('systemd-analyze', 'verify', wrong)).not.toBe('');
  });
});
