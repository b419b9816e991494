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
const guide = readFileSync(join(root, 'docs/uploading.md'), 'utf8');
const blocks = [...guide.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, kind = '', text = '']) => ({
  kind,
  text,
}));

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
  const commands = blocks.flatMap(({ kind, text }, at) =>
    kind === 'sh' ? [{ text, answer: blocks[at + 1] }] : [],
  );
  const between = '--- next command ---\n';
  // The program is built, and building it again would take it away from the other tests.
  const script = commands
    .map(
      ({ text }) =>
        `${text.replace('npm run build\n', '').replace('http://127.0.0.1:8080', server.url)}printf '%s' '${between}'\n`,
    )
    .join('');
  const { stdout } = await run('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    cwd: folder,
    timeout: 280_000,
  });
  const printed = stdout.split(between);
  expect(commands.filter(({ answer }) => answer?.kind === 'text')).toHaveLength(7);
  for (const [at, { text, answer }] of commands.entries()) {
    if (answer?.kind === 'text') expect(printed[at], text).toBe(answer.text);
  }
}, 300_000);

it('the program of the guide prints what it shows', async () => {
  const at = blocks.findIndex(({ kind }) => kind === 'js');
  const app = join(folder, 'app');
  mkdirSync(join(app, 'node_modules'), { recursive: true });
  symlinkSync(join(root, 'client'), join(app, 'node_modules/intake-client'));
  writeFileSync(join(app, 'main.mjs'), blocks[at]?.text ?? '');
  const env = { INTAKE_URL: server.url, INTAKE_KEY: key };
  const { stdout } = await run(process.execPath, ['main.mjs'], { cwd: app, env });
  expect(stdout).toBe(blocks[at + 1]?.text);
});
