// @module-tag full

import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

function blocksOf(page: string): { readonly kind: string; readonly text: string }[] {
  const blocks = readFileSync(join(root, page), 'utf8').matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return [...blocks].map(([, kind = '', text = '']) => ({ kind, text }));
}

let server: SharedServer;
let key: string;
let folder: string;

beforeAll(async () => {
  server = await sharedServer();
  key = await server.createKey('guide');
  folder = mkdtempSync(join(tmpdir(), 'intake-guide-'));
  cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true });
  symlinkSync(join(root, 'client'), join(folder, 'client'));
  mkdirSync(join(folder, '.intake'));
  writeFileSync(join(folder, '.intake/key'), `${key}\n`);
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
});

it('the commands of the guide, pasted one after the other, print what it shows', async () => {
  const blocks = blocksOf('docs/uploading/index.md');
  const commands = blocks.flatMap(({ kind, text }, at) =>
    kind === 'sh' ? [{ text, answer: blocks[at + 1] }] : [],
  );
  const between = '--- next command ---\n';
  // Skip the build, because the program is already built and a rebuild would temporarily remove it for other tests.
  const script = commands
    .map(
      ({ text }) =>
        `${text.replace('npm run build\n', '').replace('http://127.0.0.1:8080', server.url)}printf '%s' '${between}'\n`,
    )
    .join('');
  const { stdout } = await run('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    cwd: folder,
    timeout: 900_000,
  });
  const printed = stdout.split(between);
  expect(commands.filter(({ answer }) => answer?.kind === 'text')).toHaveLength(8);
  for (const [at, { text, answer }] of commands.entries()) {
    if (answer?.kind === 'text')
      expect(printed[at]?.replace(runId, ''), text).toBe(answer.text.replace(runId, ''));
  }
});

/** The service chooses the ids of runs. */
const runId = /(?<=intake runs )[0-9a-f-]{36}/;

/** Runs the first program on a documentation page and returns its output. */
async function runProgram(page: string): Promise<string> {
  const program = blocksOf(page).find(({ kind }) => kind === 'js')?.text ?? '';
  writeFileSync(join(folder, 'app/main.mjs'), program);
  const env = { INTAKE_URL: server.url, INTAKE_KEY: key };
  return (await run(process.execPath, ['main.mjs'], { cwd: join(folder, 'app'), env })).stdout;
}

it('the programs of docs/uploading/library.md and client/README.md print what they should', async () => {
  mkdirSync(join(folder, 'app/node_modules'), { recursive: true });
  symlinkSync(join(root, 'client'), join(folder, 'app/node_modules/intake-client'));
  const page = 'docs/uploading/library.md';
  const shown = blocksOf(page).find(({ kind }) => kind === 'text');
  expect(await runProgram(page)).toBe(shown?.text);
  expect(await runProgram('client/README.md')).toBe('1 0 36\n');
});
