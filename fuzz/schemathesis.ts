import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { needTool } from '../scripts/tools.ts';
import type { Seed } from './seed.ts';
import { adminToken, type Target } from './target.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** Writes the settings from schemathesis.toml, and adds the existing ids from which Schemathesis can choose. */
export function writeSettings({ folder }: Target, { keys, ids, ownIds, slugs }: Seed): string {
  const dictionaries = Object.entries({ ...ids, slug: slugs }).map(
    ([field, values]) => `[dictionaries.${field}]\nvalues = ${JSON.stringify(values)}\n`,
  );
  const named = [...Object.keys(ids), 'slug'].map((field) => bind(field, field));
  // A record's own id is excluded, because thousands of records with the same id in a request are slow and find nothing new.
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

/** Returns the path of the program, or fails if it is not installed. */
export const findSchemathesis = () => join(needTool('Schemathesis'), 'schemathesis');

/** Runs Schemathesis, and returns true if it found nothing. */
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
