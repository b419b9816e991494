// @module-tag full

import { execFile, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installPythonTools } from '../../scripts/install-once.ts';
import { type Setting, settings } from '../../src/settings.ts';
import { createTestDatabase } from '../support/database.ts';

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

let tools: string;
const program = (name: string) => join(tools, name);

beforeAll(async () => {
  tools = await installPythonTools('manifests', join(root, 'test/deploy/requirements.txt'));
}, 600_000);

describe('files against their schemas', () => {
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
  ])('%s is valid, and restricts the process', async (file, unit) => {
    const copy = join(folder, unit);
    writeFileSync(copy, read(`deploy/systemd/${file}`).replaceAll('/usr/bin/node', process.execPath));
    expect(await faults('systemd-analyze', 'verify', copy)).toBe('');
    // The score ranges from 0 (most restricted) to 10, but the threshold is given in tenths.
    expect(await faults('systemd-analyze', 'security', '--offline=true', '--threshold=15', copy)).toBe('');
  });
});

describe('the Helm chart', () => {
  const helm = () => program('helm');
  const chart = 'deploy/helm/intake';
  const behindProxy = { trustedProxy: '10.0.0.0/8' };
  const withLake = { ...behindProxy, lake: { url: 's3://bucket/prefix', secret: 'intake-lake' } };

  /** Writes values to a file, as operators do. Helm parses numbers and words in a file differently than with --set. */
  function valuesFile(values: object | string): string {
    const file = join(mkdtempSync(join(folder, 'values-')), 'values.yaml');
    writeFileSync(file, typeof values === 'string' ? values : JSON.stringify(values));
    return file;
  }
  const render = async (values: object | string, from = chart) => {
    const args = ['template', 'try', from, '--kube-version', '1.34', '-f', valuesFile(values)];
    return (await run(helm(), args, { cwd: root })).stdout;
  };
  const validate = async (...manifests: string[]) => {
    const files = manifests.map((manifest) => {
      const file = join(mkdtempSync(join(folder, 'rendered-')), 'rendered.yaml');
      writeFileSync(file, manifest);
      return file;
    });
    for (const version of ['1.30', '1.37'])
      expect(await faults(program('kubernetes-validate'), '-k', version, '--strict', ...files)).toBe('');
  };
  const copyChart = () => {
    const copy = mkdtempSync(join(folder, 'chart-'));
    cpSync(join(root, chart), copy, { recursive: true });
    return copy;
  };
  const everything = {
    tls: { secret: 'intake-tls' },
    redis: { secret: 'intake-redis' },
    database: { caSecret: 'intake-ca' },
    image: { pullSecrets: ['registry'] },
    metrics: { serviceMonitor: { labels: { release: 'prometheus' } } },
    settings: { LOG_LEVEL: 'warn', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' },
    autoscaling: { enabled: false },
    migrate: { timeoutSeconds: 10_000_000 },
  };

  it('has the version of the package', () => {
    const { version } = JSON.parse(read('package.json'));
    expect(read(`${chart}/Chart.yaml`)).toContain(`\nversion: ${version}\nappVersion: ${version}\n`);
  });

  it('behind a proxy and with everything it passes helm lint, and what it renders is valid in Kubernetes', async () => {
    for (const values of [behindProxy, withLake, everything])
      expect(await faults(helm(), 'lint', '--strict', chart, '-f', valuesFile(values))).toBe('');
    await validate(await render(behindProxy), await render({ ...everything, ...withLake }));
  });

  it('every setting in a file of values arrives unchanged, without quotes', async () => {
    const inValues: Record<string, string> = {
      LAKE_URL: 's3://bucket/prefix',
      METRICS_PORT: '9999',
      STOP_TIMEOUT_MS: '3600000',
      TRUSTED_PROXY: '10.0.0.0/8',
      TLS_CERT_FILE: '/etc/intake/tls/tls.crt',
      TLS_KEY_FILE: '/etc/intake/tls/tls.key',
      METRICS_HOST: '0.0.0.0',
    };
    const elsewhere = /^(DATABASE_URL|REDIS_URL|HOST|PORT|ADMIN_.+)$/;
    const written = Object.values(settings as Record<string, Setting>).flatMap(([name, kind]) => {
      if (name in inValues || elsewhere.test(name)) return [];
      if ('options' in kind) return [[name, kind.options.find((option) => option !== kind.fallback) ?? '']];
      if ('max' in kind) return [[name, String(kind.max === kind.fallback ? kind.min : kind.max)]];
      return [[name, `http://${name.toLowerCase()}:4318`]];
    });
    expect(written).toContainEqual(['BYTES_IN_FLIGHT_MAX', '2147483647']);
    expect(written).toContainEqual(['API_REFERENCE', 'off']);
    written.push(['OTEL_TRACES_SAMPLER_ARG', '0.25'], ['OTEL_SDK_DISABLED', 'false']);
    const values = `trustedProxy: 10.0.0.0/8
tls: { secret: intake-tls }
lake: { url: s3://bucket/prefix }
stopTimeoutSeconds: 3600
metrics: { port: 9999 }
settings:
${written.map(([name, value]) => `  ${name}: ${value}\n`).join('')}`;
    const arrived = (await render(values)).matchAll(/- { name: ([A-Z_]+), value: "?([^" ]*)"? }/g);
    expect(Object.fromEntries([...arrived].map(([, name, value]) => [name, value]))).toEqual({
      ...inValues,
      ...Object.fromEntries(written),
    });
  });

  it('renders with only the values of 0.1.0, as after helm upgrade --reuse-values', async () => {
    const copy = copyChart();
    writeFileSync(join(copy, 'values.yaml'), read('test/deploy/values-0.1.0.yaml'));
    for (const values of [behindProxy, everything])
      expect(await render(values, copy)).toBe(await render(values));
    expect(await render(withLake, copy)).toContain('args: [lake]');
  });

  it('allows traces to the port of the collector, if there is one', async () => {
    const { settings } = everything;
    const networkPolicy = { collectorPort: 4319 };
    expect(await render({ ...behindProxy, settings, networkPolicy })).toContain('- { port: 4319 }');
    expect(await render({ ...behindProxy, networkPolicy })).not.toContain('4319');
  });

  it('writes the lake if it has an address, and lets it and the API through to the store', async () => {
    expect(await render(behindProxy)).not.toMatch(/lake/i);
    const rendered = await render({ ...withLake, networkPolicy: { lakePort: 9000 } });
    const documents = rendered.split(/^---$/m);
    const kinds = documents
      .filter((one) => one.includes('name: try-intake-lake'))
      .map((one) => /^kind: (\w+)/m.exec(one)?.[1]);
    expect(kinds.toSorted()).toEqual(['Deployment', 'NetworkPolicy', 'Service']);
    expect(rendered.split('{ port: 9000 }').length - 1).toBe(2);
    const inBoth = ['{ name: LAKE_URL, value: "s3://bucket/prefix" }', 'secretRef: { name: intake-lake }'];
    // The root file system is read-only, and both deployments use a temporary folder.
    inBoth.push('{ name: work, mountPath: /tmp }', 'emptyDir: { sizeLimit: ');
    for (const line of inBoth) expect(rendered.split(line).length - 1, line).toBe(2);
    // API requests must not reach a lake pod.
    const [api = ''] = documents.filter((one) => /^kind: Service$/m.test(one) && one.includes('name: api'));
    expect(api).toMatch(/selector:\n +app.kubernetes.io\/name: intake\n/);
  });

  it('scrapes with the Prometheus operator if that is asked for', async () => {
    const rendered = await render({ ...behindProxy, metrics: { serviceMonitor: { enabled: true } } });
    expect(rendered).toContain('kind: ServiceMonitor');
  });

  it.each([
    [{}, 'Intake does not serve in the clear'],
    [{ ...behindProxy, replica: 3 }, 'replica'],
    [{ ...behindProxy, podAnnotations: { 'example.com/port': 1 } }, 'Expected: string, given: integer'],
    [{ ...behindProxy, settings: { PORT: 9000 } }, 'remove PORT from settings'],
    [{ ...behindProxy, settings: { STOP_TIMEOUT_MS: 1 } }, 'the value stopTimeoutSeconds sets it'],
    [{ ...behindProxy, settings: { LAKE_URL: 's3://bucket' } }, 'the value lake.url sets it'],
    [{ ...behindProxy, lake: { url: 'file:///lake' } }, 'Does not match pattern'],
    [{ ...behindProxy, settings: { ADMIN_DATABASE_URL: 'x' } }, 'a secret must not be in plain text'],
  ])('refuses %j', async (values, message) => {
    await expect(render(values)).rejects.toThrow(message);
  });

  const restrictions = [
    '"runAsNonRoot":true',
    '"readOnlyRootFilesystem":true',
    '"capabilities":{"drop":["ALL"]}',
    '"allowPrivilegeEscalation":false',
    '"seccompProfile":{"type":"RuntimeDefault"}',
  ];

  it('every container is an ordinary user, on a read-only file system, without a token', async () => {
    const plain = (await render(withLake)).replaceAll(' ', '');
    const count = (text: string) => plain.split(text).length - 1;
    const containers = count('image:intake:');
    expect(containers).toBe(3);
    for (const line of [...restrictions, '"enableServiceLinks":false'])
      expect(count(line.replaceAll('"', '')), line).toBe(containers);
    // The service account has the same setting, so the total is one higher.
    expect(count('automountServiceAccountToken:false')).toBe(containers + 1);
  });

  it('the pod in the notes is as restricted as the others, and finds the CA of the database', async () => {
    const copy = copyChart();
    const include = '{{ include (print .Template.BasePath "/NOTES.txt") . | toJson }}';
    writeFileSync(join(copy, 'templates/notes.yaml'), `kind: Notes\ntext: ${include}\n`);
    const [, text = ''] = /^text: (".*")$/m.exec(await render(everything, copy)) ?? [];
    const notes: string = JSON.parse(text);
    const [, overrides = ''] = /--overrides='(.+)'/.exec(notes) ?? [];
    for (const restriction of restrictions) expect(overrides).toContain(restriction);
    expect(overrides).toContain('"secret":{"defaultMode":288,"secretName":"intake-ca"}');
    expect(notes).toContain('sslrootcert=/etc/intake/database/ca.crt');
    await validate(JSON.stringify({ ...JSON.parse(overrides), kind: 'Pod', metadata: { name: 'operator' } }));
  });
});
