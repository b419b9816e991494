import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Seed } from './seed.ts';
import { adminToken, type Target } from './target.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const requirements = here('requirements.txt');
const run = promisify(execFile);

/** Installs Schemathesis into a folder of its own, unless this version is there; returns its program. */
export async function installSchemathesis(): Promise<string> {
  const version = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const folder = here(`../node_modules/.cache/schemathesis-${version}`);
  const program = join(folder, 'bin', 'schemathesis');
  // Written last: an installation that was broken off has no mark.
  const mark = join(folder, 'installed');
  if (existsSync(mark)) return program;
  rmSync(folder, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', folder]).catch((error: unknown) => {
    throw new Error(
      'python3 -m venv failed; install Python 3.11 or newer, and on Debian the package python3-venv',
      { cause: error },
    );
  });
  // As with npm: versions and contents as they were chosen, and nothing that would be built here.
  const strictly = ['--no-deps', '--require-hashes', '--only-binary=:all:'];
  await run(join(folder, 'bin', 'pip'), ['install', '--quiet', ...strictly, '-r', requirements]);
  writeFileSync(mark, '');
  return program;
}

/** The settings in schemathesis.toml, and where to take ids of what is there. */
export function writeSettings({ folder }: Target, { keys, ids, ownIds }: Seed): string {
  const dictionaries = Object.entries(ids).map(
    ([field, values]) => `[dictionaries.${field}]\nvalues = ${JSON.stringify(values)}\n`,
  );
  const named = Object.keys(ids).map((field) => bind(field, field));
  // Not a record's own id: thousands of records with the same one in a request are slow, and tell nothing new.
  const uploads = Object.entries(ownIds).map(([operationId, ownId]) => {
    const references = Object.keys(ids).filter((field) => field !== ownId);
    const bound = references.map((field) => bind(`body.records[*].${field}`, field));
    return `[[project.operations]]\ninclude-operation-id = "${operationId}"\n[project.operations.parameters]\n${bound.join('')}`;
  });
  const interaction = ['item_id', 'student_id'].map((field) => bind(`body.${field}`, field));
  const file = join(folder, 'schemathesis.toml');
  const settings = readFileSync(here('schemathesis.toml'), 'utf8');
  const all = [
    settings,
    ...dictionaries,
    `[parameters]\n${named.join('')}${interaction.join('')}`,
    ...uploads,
  ];
  writeFileSync(file, all.join('\n'));
  const auth = Object.entries(keys).map(([name, key]) => ({
    name,
    fixedHeaders: [{ name: 'Authorization', value: `Bearer ${key}` }],
  }));
  writeFileSync(join(folder, 'keys.json'), JSON.stringify({ auth }));
  return file;
}

function bind(parameter: string, dictionary: string): string {
  return `"${parameter}" = { dictionary = "${dictionary}", probability = 0.5 }\n`;
}

/** Runs it; true if it found nothing. */
export function runSchemathesis(
  program: string,
  args: readonly string[],
  { target, settings, signal }: { target: Target; settings: string; signal: AbortSignal },
): Promise<boolean> {
  const { folder } = target;
  const env = {
    ...process.env,
    SCHEMATHESIS_HOOKS: here('hooks.py'),
    PYTHONDONTWRITEBYTECODE: '1',
    FUZZ_KEYS_FILE: join(folder, 'keys.json'),
    FUZZ_ADMIN_TOKEN: adminToken,
  };
  const child = spawn(program, ['--config-file', settings, 'run', ...args], {
    cwd: folder,
    env,
    signal,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code === 0));
  });
}
