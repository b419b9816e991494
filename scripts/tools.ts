import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The tools from PyPI, npm and Go's module proxy that tests and checks use, each with the file that pins its packages. */
const pins = {
  moto: 'test/support/s3-requirements.txt',
  'readers of the lake': 'test/support/lake-requirements.txt',
  'DuckDB for Python': 'client/test/support/duckdb-requirements.txt',
  'Helm and linters': 'test/deploy/requirements.txt',
  kubeconform: 'test/deploy/kubeconform.json',
  Schemathesis: 'fuzz/requirements.txt',
  'openapi-python-client': 'client-check/python/requirements.txt',
  'openapi-typescript': 'client-check/typescript/package-lock.json',
};
export type Tool = keyof typeof pins;
export const tools = Object.keys(pins) as Tool[];

/** The pinned wheels are for Python 3.11. Debian's comes first, because another one may be first on the path. */
export const python = existsSync('/usr/lib/python3.11/ensurepip') ? '/usr/bin/python3.11' : 'python3';

/** The cache is outside the checkout, because `npm ci` deletes node_modules and installing takes up to half a minute. */
export const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'intake-tools');

export const pinsOf = (tool: Tool) => join(root, pins[tool]);
export const isPython = (tool: Tool) => pins[tool].endsWith('requirements.txt');
const kubeconformScript = join(root, 'scripts/install-kubeconform.ts');

/** Returns the folder of a tool, which exists if exactly these versions are installed. */
export function folderOf(tool: Tool): string {
  const runtime = isPython(tool)
    ? spawnSync(python, ['--version'], { encoding: 'utf8' }).stdout
    : process.version;
  const version = createHash('sha256')
    .update(readFileSync(pinsOf(tool)))
    .update(runtime ?? '')
    .update(tool === 'kubeconform' ? readFileSync(kubeconformScript) : '');
  return join(cache, `${tool.toLowerCase().replaceAll(' ', '-')}-${version.digest('hex').slice(0, 12)}`);
}

/** Returns the folder with the programs of a tool, or for an npm package the one with node_modules, or of kubeconform. */
export function findTool(tool: Tool): string | undefined {
  const folder = folderOf(tool);
  if (!existsSync(folder)) return undefined;
  return isPython(tool) ? join(folder, 'bin') : folder;
}

/** Like findTool, but fails if the tool is missing. Nothing but `npm run install-tools` installs one. */
export function needTool(tool: Tool): string {
  const found = findTool(tool);
  if (found === undefined) throw new Error(`${tool}: not installed; run npm run install-tools`);
  return found;
}

/** Returns what `.ci/install` installs and is missing. */
export function missingTools(): string[] {
  const packages = readFileSync(join(root, '.ci/packages'), 'utf8').trim().split('\n');
  const debian = packages.flatMap((line) => {
    const [file = '', name = ''] = line.split(' ');
    return existsSync(file) ? [] : [`${file} of Debian's package ${name}`];
  });
  const path = (process.env.PATH ?? '').split(delimiter);
  const runtimes = process.arch === 'x64' ? ['deno', 'bun', 'workerd'] : [];
  return [
    ...debian,
    ...runtimes.filter((program) => !path.some((folder) => existsSync(join(folder, program)))),
    ...tools.filter((tool) => findTool(tool) === undefined),
  ];
}
