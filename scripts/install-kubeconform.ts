import { execFile } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

/**
 * Builds kubeconform, and the schemas that it validates manifests against. Published schemas would have to be downloaded in
 * each run, so they are made from Kubernetes' own API description and from the Prometheus operator's resource definitions.
 */

const run = promisify(execFile);

/** The kinds that the chart renders. kubeconform fails if a manifest has another one. */
const kinds = [
  ...['CronJob', 'Deployment', 'HorizontalPodAutoscaler', 'Ingress', 'Job', 'NetworkPolicy', 'Pod'],
  ...['PodDisruptionBudget', 'Service', 'ServiceAccount'],
];

interface Schema {
  readonly $ref?: string;
  readonly properties?: object;
  readonly additionalProperties?: unknown;
  readonly 'x-kubernetes-group-version-kind'?: readonly { group: string; version: string; kind: string }[];
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

type Pins = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Installs into a folder with the Go program given. Versions and hashes are pinned. */
export async function installKubeconform(go: string, pins: string, folder: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'intake-go-'));
  const env = {
    ...process.env,
    ...{ GOPATH: work, GOCACHE: join(work, 'cache'), GOMODCACHE: join(work, 'mod'), GOFLAGS: '-modcacherw' },
    // Hashes are compared with the pinned ones, and those of kubeconform's own modules with its go.sum.
    ...{ GOTOOLCHAIN: 'local', GOSUMDB: 'off', CGO_ENABLED: '0' },
  };
  try {
    for (const [module, versions] of Object.entries(JSON.parse(readFileSync(pins, 'utf8')) as Pins)) {
      for (const [version, sum] of Object.entries(versions)) {
        const args = ['mod', 'download', '-json', `${module}@${version}`];
        const { Dir, Sum } = JSON.parse((await run(go, args, { env, cwd: work })).stdout);
        if (Sum !== sum) throw new Error(`${module}@${version} has the hash ${Sum} instead of ${sum}`);
        if (module === 'k8s.io/kubernetes') writeKubernetesSchemas(Dir, join(folder, version));
        else if (module.endsWith('/prometheus-operator')) writeOperatorSchemas(Dir, folder);
        else
          await run(go, ['build', '-o', join(folder, 'kubeconform'), './cmd/kubeconform'], { env, cwd: Dir });
      }
    }
  } finally {
    rmSync(work, { recursive: true });
  }
}

function writeKubernetesSchemas(module: string, folder: string): void {
  const { definitions } = JSON.parse(readFileSync(join(module, 'api/openapi-spec/swagger.json'), 'utf8'));
  const isAny = { type: ['string', 'number'] };
  const strict = strictly({
    ...definitions,
    'io.k8s.apimachinery.pkg.util.intstr.IntOrString': isAny,
    'io.k8s.apimachinery.pkg.api.resource.Quantity': isAny,
  }) as Record<string, Schema>;
  for (const [name, schema] of Object.entries(strict)) {
    const [{ group, version, kind } = { group: '', version: '', kind: '' }] =
      schema['x-kubernetes-group-version-kind'] ?? [];
    if (!kinds.includes(kind)) continue;
    const reached: Record<string, Schema> = {};
    reach(name);
    write(folder, kind, group, version, { $ref: `#/definitions/${name}`, definitions: reached });

    function reach(needed: string): void {
      const found = strict[needed];
      if (needed in reached || !found) return;
      reached[needed] = found;
      for (const [, inner = ''] of JSON.stringify(found).matchAll(/"\$ref":"#\/definitions\/([^"]+)"/g))
        reach(inner);
    }
  }
}

function writeOperatorSchemas(module: string, folder: string): void {
  for (const file of globSync(
    join(module, 'jsonnet/prometheus-operator/{prometheusrules,servicemonitors}-crd.json'),
  )) {
    const { group, names, versions } = JSON.parse(readFileSync(file, 'utf8')).spec;
    for (const { name, schema } of versions)
      write(
        join(folder, basename(module).replace('prometheus-operator@', '')),
        names.kind,
        group,
        name,
        strictly(schema.openAPIV3Schema),
      );
  }
}

/** Writes a schema under the name by which the test asks for it. */
function write(folder: string, kind: string, group: string, version: string, schema: unknown): void {
  mkdirSync(folder, { recursive: true });
  const [first] = group.split('.');
  const name = [kind.toLowerCase(), ...(first ? [first] : []), version].join('-');
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(schema));
}

/** Refuses fields that an object does not have. The API server would only warn, and drop them. */
function strictly(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(strictly);
  if (typeof schema !== 'object' || schema === null) return schema;
  const given = schema as Schema;
  if (given['x-kubernetes-int-or-string']) return { type: ['string', 'integer'] };
  const isClosed =
    typeof given.properties === 'object' &&
    given.additionalProperties === undefined &&
    !given['x-kubernetes-preserve-unknown-fields'];
  const entries = Object.entries(given).filter(
    ([name, value]) => name !== 'description' || typeof value !== 'string',
  );
  return {
    ...Object.fromEntries(entries.map(([name, value]) => [name, strictly(value)])),
    ...(isClosed && { additionalProperties: false }),
  };
}
