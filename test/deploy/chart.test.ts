// @module-tag full

import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { needTool } from '../../scripts/tools.ts';
import { type Setting, settings } from '../../src/settings.ts';
import { hasTool } from '../support/has-tool.ts';
import { everyValue, leavesOf, withValue } from './every-value.ts';

/** Renders the Helm chart, and validates what it renders with kubeconform. */

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const folder = mkdtempSync(join(tmpdir(), 'intake-chart-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Returns the program's output if it found problems, and an empty string otherwise. */
async function faults(program: string, ...args: string[]): Promise<string> {
  const told = await run(program, args, { cwd: root, maxBuffer: 1e8 }).catch(
    ({ stdout, stderr }: { stdout: string; stderr: string }) => stdout + stderr || `${program} failed`,
  );
  return typeof told === 'string' ? told : '';
}

const isInstalled = hasTool('Helm and linters') && hasTool('kubeconform');

describe.skipIf(!isInstalled)('the Helm chart', () => {
  const helm = () => join(needTool('Helm and linters'), 'helm');
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
    const file = join(mkdtempSync(join(folder, 'rendered-')), 'rendered.yaml');
    writeFileSync(file, manifests.join('\n---\n'));
    const kubeconform = needTool('kubeconform');
    for (const version of ['1.30.14', '1.37.1']) {
      const schemas = [version, '0.85.0'].flatMap((one) => [
        '-schema-location',
        `${kubeconform}/v${one}/{{.ResourceKind}}{{.KindSuffix}}.json`,
      ]);
      expect(await faults(join(kubeconform, 'kubeconform'), '-strict', ...schemas, file)).toBe('');
    }
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

  it('with the version of a build, labels and the image have a form that Kubernetes accepts', async () => {
    const copy = copyChart();
    const file = join(copy, 'Chart.yaml');
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replaceAll(/(?<=^(version|appVersion): ).+/gm, '0.2.0-dev+49dec8a12345'),
    );
    const rendered = await render(behindProxy, copy);
    expect(rendered).toContain('image: intake:0.2.0-dev_49dec8a12345\n');
    expect(rendered.match(/: .*\+.*/g)).toBeNull();
  });

  it('with every value it passes helm lint, and what it renders is valid in Kubernetes', async () => {
    for (const values of [behindProxy, withLake, everyValue])
      expect(await faults(helm(), 'lint', '--strict', chart, '-f', valuesFile(values))).toBe('');
    await validate(await render(behindProxy), await render(withLake), await render(everyValue));
    const copy = copyChart();
    const file = join(copy, 'templates/service.yaml');
    for (const wrong of ['spec:\n  typ: x', 'spec:\n  ports: 8080']) {
      writeFileSync(
        file,
        readFileSync(join(root, chart, 'templates/service.yaml'), 'utf8').replace('spec:', wrong),
      );
      await expect(validate(await render(behindProxy, copy)), wrong).rejects.toThrow();
    }
  });

  it('every value is tried, and changes what is rendered', async () => {
    const copy = copyChart();
    writeFileSync(
      join(copy, 'templates/values.yaml'),
      'kind: Values\ntext: {{ .Values | toJson | toJson }}\n',
    );
    const [, text = ''] = /^text: (".*")$/m.exec(await render({ trustedProxy: '10.1.1.1' }, copy)) ?? [];
    const leaves = leavesOf({ ...JSON.parse(JSON.parse(text)), trustedProxy: '' });
    expect(leaves.length).toBeGreaterThan(60);
    const tried = leavesOf(everyValue).map(({ path }) => `${path}.`);
    expect(leaves.filter(({ path }) => !tried.some((one) => one.startsWith(`${path}.`)))).toEqual([]);
    // With a digest, the tag does not count. With the autoscaler, the replicas do not.
    const instead: Record<string, object> = {
      'image.tag': withValue(everyValue, { path: 'image.digest', value: '' }),
      replicas: withValue(everyValue, { path: 'autoscaling.enabled', value: false }),
    };
    const same: string[] = [];
    const all = await render(everyValue);
    for (const leaf of leaves) {
      const values = instead[leaf.path];
      const before = values ? await render(values) : all;
      // What is on by default is tried switched on, so that its other values count.
      const other = leaf.value === true ? { ...leaf, value: false } : leaf;
      const after = await render(withValue(values ?? everyValue, other)).catch(() => 'refused');
      if (before === after) same.push(leaf.path);
    }
    expect(same).toEqual([]);
  });

  it('a secret is never in plain text: each comes from a Secret, and one in a value is refused', async () => {
    const secrets = ['DATABASE_URL', 'ADMIN_DATABASE_URL', 'REDIS_URL', 'ERASURE_KEYS'];
    const rendered = await render(everyValue);
    for (const secret of secrets) {
      const places = rendered.split(`name: ${secret}\n`).slice(1);
      expect(places.length, secret).toBeGreaterThan(0);
      for (const rest of places) expect(rest).toMatch(/^ +valueFrom: { secretKeyRef: /);
      expect(rendered).not.toContain(`name: ${secret},`);
    }
    const hush = 'hush-hush-hush-hush-hush-hush-hush';
    const inUrl = `https://user:${hush}@collector.example`;
    const wrong: object[] = [
      ...[
        ...secrets,
        'AWS_SECRET_ACCESS_KEY',
        'AWS_SESSION_TOKEN',
        'PGPASSWORD',
        'OTEL_EXPORTER_OTLP_HEADERS',
      ].map((name) => ({ settings: { [name]: hush } })),
      { settings: { OTEL_EXPORTER_OTLP_ENDPOINT: inUrl } },
      { lake: { url: `s3://key:${hush}@bucket/prefix` } },
      { secretEnv: { ERASURE_KEYS: hush } },
      { secretEnv: { ERASURE_KEYS: { value: hush } } },
      ...['database', 'redis', 'admin', 'lake', 'logBackup', 'tls'].map((name) => ({
        [name]: { secret: inUrl },
      })),
    ];
    for (const values of wrong) {
      const outcome = await render({ ...behindProxy, ...values }).then(
        (text) => `rendered ${text}`,
        ({ stderr }: { stderr: string }) => stderr,
      );
      expect(outcome, JSON.stringify(values)).not.toMatch(/^rendered/);
      expect(outcome).not.toContain('hush-hush');
    }
  });

  it('the pods of serve and lake get the same secrets, and the pods that use an identity reach it', async () => {
    const { secretEnv } = everyValue;
    const rendered = await render({ ...withLake, secretEnv });
    expect(rendered.split('secretKeyRef: { name: intake-erasure, key: erasure-keys }').length - 1).toBe(2);
    expect(rendered).not.toContain('169.254.');
    const annotations = { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/lake' };
    const byIdentity = await render({
      ...behindProxy,
      lake: { url: 's3://b/p' },
      serviceAccount: { annotations },
    });
    expect(byIdentity.split('cidr: 169.254.0.0/16').length - 1).toBe(2);
    expect(byIdentity).toContain('eks.amazonaws.com/role-arn: arn:aws:iam::1:role/lake');
  });

  it('the admin API is off by default, and the ingress and the public service do not lead to it', async () => {
    const ingress = { enabled: true, host: 'intake.example.com' };
    expect(await render({ ...behindProxy, ingress })).not.toMatch(/admin/i);
    const documents = (
      await render({ ...behindProxy, ingress, admin: { secret: 'intake-operators' } })
    ).split(/^---$/m);
    const withAdmin = documents
      .filter((one) => /admin/.test(one))
      .map((one) => /^kind: (\w+)/m.exec(one)?.[1]);
    // Without clients, the network policy does not mention it either.
    expect(withAdmin.toSorted()).toEqual(['Deployment', 'Service']);
    const [service = ''] = documents.filter((one) => one.includes('name: try-intake-admin'));
    expect(service).toContain('type: ClusterIP');
    const backend = 'service: { name: try-intake, port: { name: api } }';
    expect(documents.filter((one) => one.includes('kind: Ingress') && one.includes(backend))).toHaveLength(1);
  });

  it('installs the alerts with links to the runbook', async () => {
    const prometheusRule = { enabled: true, runbookUrl: 'https://docs.example.com/runbook' };
    const rendered = await render({ ...behindProxy, metrics: { prometheusRule } });
    const alerts = read('deploy/observability/alerts.yml').match(/- alert: \w+/g) ?? [];
    expect(rendered.match(/- alert: \w+/g)).toEqual(alerts);
    expect(rendered.match(/runbook_url: https:\/\/docs\.example\.com\/runbook#\w+$/gm)).toHaveLength(
      alerts.length,
    );
  });

  it('the job that migrates has a network policy before it runs, which admits only what it needs', async () => {
    const documents = (await render(behindProxy)).split(/^---$/m);
    const [policy = ''] = documents.filter(
      (one) => /^kind: NetworkPolicy$/m.test(one) && one.includes('-migrate'),
    );
    for (const line of ["helm.sh/hook-weight: '-1'", 'policyTypes: [Ingress, Egress]', 'port: 5432'])
      expect(policy).toContain(line);
    expect(policy).not.toMatch(/^ {2}ingress:/m);
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
    const elsewhere = /^(DATABASE_URL|REDIS_URL|ERASURE_KEYS|HOST|PORT|ADMIN_.+)$/;
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
    [{ ...behindProxy, logBackup: { claim: 'intake-log' } }, 'logBackup.secret is missing'],
    [{ ...behindProxy, podAnnotations: { 'example.com/port': 1 } }, 'Expected: string, given: integer'],
    [{ ...behindProxy, settings: { PORT: 9000 } }, 'remove PORT from settings'],
    [{ ...behindProxy, settings: { STOP_TIMEOUT_MS: 1 } }, 'the value stopTimeoutSeconds sets it'],
    [{ ...behindProxy, settings: { LAKE_URL: 's3://bucket' } }, 'the value lake.url sets it'],
    [{ ...behindProxy, lake: { url: 'file:///lake' } }, 'Does not match pattern'],
    [{ ...behindProxy, settings: { ADMIN_DATABASE_URL: 'x' } }, 'the value admin serves the admin API'],
    [{ ...behindProxy, settings: { ERASURE_KEYS: 'x' } }, 'move ERASURE_KEYS from settings to secretEnv'],
    [{ ...behindProxy, ingress: { enabled: true } }, 'set ingress.host'],
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
