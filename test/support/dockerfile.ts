import { execFile } from 'node:child_process';
import { chmodSync, cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, matchesGlob, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** What a Dockerfile makes, as a folder: the last stage's file system without its base image, and how it is started. */
export interface Image {
  readonly folder: string;
  readonly workdir: string;
  readonly user: string;
  readonly env: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthCheck: readonly string[];
}

interface Instruction {
  readonly name: string;
  readonly rest: string;
}

export function readDockerfile(file: string): Instruction[] {
  const lines = readFileSync(join(root, file), 'utf8')
    .replace(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ');
  return lines
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const [, name = '', rest = ''] = /^(\w+) +(.*)$/.exec(line) ?? [];
      return { name, rest: rest.trim() };
    });
}

/** Replays the steps of every stage in folders of their own; the base images are this machine and its Node. */
export async function replayDockerfile(file: string): Promise<Image> {
  const parent = mkdtempSync(join(tmpdir(), 'intake-image-'));
  chmodSync(parent, 0o755);
  const stages = new Map<string, string>();
  let folder = '';
  let workdir = '/';
  let last: Record<string, string> = {};
  let env: Record<string, string> = {};
  for (const { name, rest } of readDockerfile(file)) {
    if (name === 'FROM') {
      const [, stage = 'last'] = / AS (\w+)$/.exec(rest) ?? [];
      folder = join(parent, stage);
      stages.set(stage, folder);
      [workdir, last, env] = ['/', {}, {}];
      mkdirSync(join(folder, 'usr/local/bin'), { recursive: true });
      if (rest.startsWith('node:')) symlinkSync(process.execPath, join(folder, 'usr/local/bin/node'));
    } else if (name === 'WORKDIR') {
      workdir = rest;
      mkdirSync(join(folder, workdir), { recursive: true });
    } else if (name === 'COPY') copy(rest, folder, workdir, stages);
    else if (name === 'RUN' && /^npm ci (?!.*--omit=dev)/.test(rest)) {
      // The packages to build with are half a gigabyte, and `npm ci` has installed the same ones here.
      symlinkSync(join(root, 'node_modules'), join(folder, workdir, 'node_modules'));
    } else if (name === 'RUN') {
      const environment = { ...process.env, npm_config_prefer_offline: 'true' };
      await run('sh', ['-c', rest], { cwd: join(folder, workdir), env: environment });
    } else if (name === 'ENV')
      env = Object.fromEntries(rest.split(/ +/).map((pair) => pair.split('=') as [string, string]));
    else last[name] = rest;
  }
  const list = (text: string | undefined): string[] => JSON.parse(/\[.*\]$/.exec(text ?? '')?.[0] ?? '[]');
  return {
    folder,
    workdir: join(folder, workdir),
    user: last.USER ?? '0:0',
    env,
    entrypoint: list(last.ENTRYPOINT),
    command: list(last.CMD),
    healthCheck: list(last.HEALTHCHECK),
  };
}

function copy(rest: string, folder: string, workdir: string, stages: ReadonlyMap<string, string>): void {
  const [, from] = /^--from=(\w+) /.exec(rest) ?? [];
  const words = rest.replace(/^--from=\w+ /, '').split(/ +/);
  const target = words.pop() ?? '';
  const to = join(folder, resolve(workdir, target));
  for (const source of words) {
    const destination = target.endsWith('/') ? join(to, basename(source)) : to;
    mkdirSync(dirname(destination), { recursive: true });
    const stage = from === undefined ? undefined : stages.get(from);
    if (stage !== undefined)
      cpSync(join(stage, source), destination, { recursive: true, verbatimSymlinks: true });
    else copyContext(source, destination);
  }
}

/** Of the folder that the image is built in, docker sees only what .dockerignore lets through. */
function copyContext(source: string, destination: string): void {
  const lines = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n');
  const rules = lines.filter((line) => line !== '' && !line.startsWith('#'));
  const files = globSync([source, `${source}/**`], { cwd: root, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .filter((file) => !isIgnored(file, rules));
  if (files.length === 0) throw new Error(`.dockerignore leaves nothing of ${source}`);
  for (const file of files) {
    const to = join(destination, file.slice(source.length));
    mkdirSync(dirname(to), { recursive: true });
    cpSync(join(root, file), to);
  }
}

/** The last rule that matches the file or a folder above it decides. */
function isIgnored(file: string, rules: readonly string[]): boolean {
  const last = rules.findLast((rule) => {
    const pattern = rule.replace(/^!/, '');
    return matchesGlob(file, pattern) || matchesGlob(file, `${pattern}/**`);
  });
  return last !== undefined && !last.startsWith('!');
}
