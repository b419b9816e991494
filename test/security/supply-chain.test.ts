import { spawnSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { isPython, pinsOf, tools } from '../../scripts/tools.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const manifest = JSON.parse(read('package.json'));
const { packages } = JSON.parse(read('package-lock.json')) as {
  packages: Record<
    string,
    {
      version: string;
      integrity?: string;
      hasInstallScript?: boolean;
      resolved?: string;
      link?: boolean;
      optionalDependencies?: Record<string, string>;
    }
  >;
};
// The client package is linked, not installed.
const installed = Object.entries(packages).filter(
  ([path, { link }]) => path.includes('node_modules/') && !link,
);

it('every package in the lock file has a hash', () => {
  expect(installed.length).toBeGreaterThan(100);
  expect(installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).toEqual([]);
});

it('every package for another platform is in the lock file, without which npm ci fails there', () => {
  const named = Object.values(packages).flatMap((one) => Object.keys(one.optionalDependencies ?? {}));
  expect(named.filter((name) => name.startsWith('@duckdb/')).length).toBeGreaterThan(5);
  const locked = new Set(installed.map(([path]) => path.replace(/^.*node_modules\//, '')));
  expect(named.filter((name) => !locked.has(name))).toEqual([]);
});

it('what we ask for is asked for by its exact version', () => {
  const client = JSON.parse(read('client/package.json'));
  const wanted = [manifest, client].flatMap(
    ({ dependencies, optionalDependencies, devDependencies, overrides }) =>
      Object.entries({ ...dependencies, ...optionalDependencies, ...devDependencies, ...overrides }),
  );
  for (const [name, version] of wanted) {
    expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
  }
});

it.each(tools.filter(isPython))('the packages of %s have exact versions and hashes', (tool) => {
  const wanted = readFileSync(pinsOf(tool), 'utf8')
    .split(/^(?=[a-z])/m)
    .slice(1);
  expect(wanted.length).toBeGreaterThan(0);
  for (const one of wanted)
    expect(one).toMatch(/^[\w.-]+==[\d.]+(\.post\d+)? \\\n( +--hash=sha256:[0-9a-f]{64}( \\)?\n)+/);
});

it('the workflows pin actions to a commit', () => {
  const workflows = globSync('.github/workflows/*.yml', { cwd: root }).map(read).join('\n');
  const used = [...workflows.matchAll(/uses: (.*)/g)].map(([, action]) => action);
  expect(used.length).toBeGreaterThan(5);
  for (const action of used) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v[\d.]+$/);
});

it('the generator of TypeScript clients has exact versions and hashes, and runs no install script', () => {
  const { packages: locked } = JSON.parse(read('client-check/typescript/package-lock.json'));
  const { '': root, ...others } = locked as typeof packages & { '': { dependencies: object } };
  expect(Object.keys(root.dependencies).length).toBeGreaterThan(1);
  expect(Object.keys(others).length).toBeGreaterThan(10);
  for (const version of Object.values(root.dependencies)) expect(version).toMatch(/^\d+\.\d+\.\d+$/);
  for (const { integrity, hasInstallScript } of Object.values(others))
    expect([integrity?.slice(0, 7), hasInstallScript]).toEqual(['sha512-', undefined]);
});

it('an install script runs only if package.json lists the package', () => {
  expect(read('.npmrc')).toMatch(/^strict-allow-scripts=true$/m);
  const withScript = installed
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.replace(/^.*node_modules\//, ''));
  expect(withScript.filter((name) => !Object.hasOwn(manifest.allowScripts, name))).toEqual([]);
});

it('the service has few runtime packages', () => {
  expect(Object.keys(manifest.dependencies).length).toBeLessThanOrEqual(14);
});

it('a build includes its bill of materials: CycloneDX, with build and test packages marked as optional', () => {
  const bill = JSON.parse(readFileSync(new URL('../../dist/bom.cdx.json', import.meta.url), 'utf8'));
  expect(bill.bomFormat).toBe('CycloneDX');
  expect(bill.metadata.component.purl).toBe(`pkg:npm/${manifest.name}@${manifest.version}`);
  const components: { name: string; version: string; scope: string; hashes?: unknown[] }[] = bill.components;
  const scopeOf = new Map(components.map(({ name, version, scope }) => [`${name}@${version}`, scope]));
  const script = '@scalar/fastify-api-reference';
  for (const [name, version] of Object.entries({
    ...manifest.dependencies,
    [script]: manifest.devDependencies[script],
  }))
    expect(scopeOf.get(`${name}@${version}`), name).toBe('required');
  for (const name of ['typescript', 'vitest'])
    expect(scopeOf.get(`${name}@${manifest.devDependencies[name]}`), name).toBe('optional');
  expect(components.filter(({ hashes = [] }) => hashes.length === 0)).toEqual([]);
  // Packages that only the client's command uses are not listed.
  expect(components.filter(({ name }) => name.startsWith('hyparquet-'))).toEqual([]);
  for (const name of ['hyparquet', 'react'])
    expect(components.find((one) => one.name === name)?.scope, name).toBe('required');
});

it('no secret is in the repository: nothing that looks like a key', () => {
  const pattern = 'intake_[0-9A-Za-z]{11}_[0-9A-Za-z]{49}';
  const found = spawnSync('git', ['grep', '-lE', pattern], { cwd: root, encoding: 'utf8' });
  // git exits with 1 if it found nothing. A higher code means that it failed.
  expect(found).toMatchObject({ status: 1, stdout: '' });
});
