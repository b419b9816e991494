// @module-tag full

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** A command on a page, with the output that the page shows for it, if any. */
interface Step {
  readonly command: string;
  readonly answer: string | undefined;
}

interface Block {
  readonly kind: string;
  readonly text: string;
}

/** Returns a page's code blocks, except the ones marked as not run. */
function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(/^(<!-- not run: [^\n]*\n)?```(\w+)\n(.*?)^```$/gms)].flatMap(
    ([, mark, kind = '', block = '']) => (mark ? [] : [{ kind, text: block }]),
  );
}

/** Returns a page's shell blocks. The block after a command is its expected output, unless that block is a command too. */
function stepsOf(page: string): Step[] {
  const blocks = blocksOf(page);
  return blocks.flatMap(({ kind, text }, at) => {
    const next = blocks[at + 1];
    return kind === 'sh'
      ? [{ command: text, answer: next && next.kind !== 'sh' ? next.text : undefined }]
      : [];
  });
}

let folder: string;
let server: ChildProcess;
let address: string;

// Use a copy, to leave a developer's own .intake alone. Under root, PostgreSQL runs as another account, which must be
// able to read the copy.
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'intake-readme-'));
  chmodSync(folder, 0o755);
  for (const name of ['src', 'scripts', 'migrations', 'package.json', 'examples', 'demo']) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  for (const name of ['node_modules', 'client']) symlinkSync(join(root, name), join(folder, name));
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const [program, ...args] = scripts.dev.split(' ');
  server = spawn(program === 'node' ? process.execPath : program, args, {
    cwd: folder,
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  address = await addressOf(server);
});

afterAll(async () => {
  if (server?.exitCode === null && server.signalCode === null) {
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
});

function addressOf(started: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const printed: string[] = [];
    started.once('exit', (code) =>
      reject(new Error(`npm run dev ended with ${code}:\n${printed.join('\n')}`)),
    );
    createInterface({ input: started.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      printed.push(line);
      const found = /^ +Address +http:\/\/(\S+)$/.exec(line)?.[1];
      if (found) resolve(found);
    });
  });
}

/** Runs the commands one after another in one shell, as a reader would paste them. Returns the output of each. */
async function paste(commands: readonly string[]): Promise<string[]> {
  const between = '--- next command ---\n';
  const script = commands.map((command) => `${command}printf '%s' '${between}'\n`).join('');
  const { stdout } = await promisify(execFile)('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    cwd: folder,
    timeout: 900_000,
  });
  return stdout.split(between).slice(0, -1);
}

/** Removes ids and times, which differ between runs. Everything else must match the page. */
function withoutIds(answer: string): string {
  return answer
    .replaceAll(
      /"(request_id|batch_id|interaction_id)": "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"/g,
      '"$1"',
    )
    .replaceAll(/^ {2}"[0-9a-f-]{36}"$/gm, '  "id"')
    .replaceAll(/"key_id": "\w{11}"/g, '"key_id"')
    .replaceAll(/"(cursor|next_cursor)": "\d+-\d+-\d+-[0-9a-f]{8}-[\w-]{22}"/g, '"$1"')
    .replaceAll(/"duration_ms": \d+/g, '"duration_ms"')
    .replaceAll(/"(created|received|last_upload)": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z"/g, '"$1"');
}

const here = ({ command }: Step) => command.replaceAll('127.0.0.1:8080', address);

it('the commands of docs/getting-started.md, pasted one after the other, print what it shows', async () => {
  const steps = stepsOf('docs/getting-started.md');
  expect(steps.map(({ answer }) => answer !== undefined)).toEqual([false, ...Array(11).fill(true)]);
  // This page continues in the same shell.
  const later = stepsOf('docs/uploading/recommendations.md');
  expect(later.map(({ answer }) => answer !== undefined)).toEqual([true]);
  const all = [...steps, ...later];
  const printed = await paste(all.map(here));
  for (const [at, { command, answer }] of all.entries()) {
    expect(withoutIds(printed[at] ?? ''), command).toBe(withoutIds(answer ?? ''));
  }
  expect(printed.join()).toContain('"code": "reference_not_found"');
  for (const path of [
    '/v1/changes',
    '/v1/reports/recommendations',
    '/v1/requests?',
    '?dry_run=true',
    '/v1/rejections/replay',
    'application/x-ndjson',
    '.intake/privacy-key',
  ])
    expect(all.map(({ command }) => command).join()).toContain(path);

  const [first, upload] = steps;
  const batch = steps.findIndex(({ command }) => command.includes('/user-interactions/batch'));
  const again = await paste([first, upload, steps[batch]].flatMap((step) => (step ? here(step) : [])));
  expect(printed[1]).toContain('"created": 1');
  expect(again[1], 'a shop that is sent again').toContain('"unchanged": 1');
  expect(again[2], 'interactions that are sent again').toBe(printed[batch]);
});

it('the first upload of the README works with curl, with the command and with the library', async () => {
  const steps = stepsOf('README.md');
  expect(steps).toHaveLength(2);
  // The program is already built. Building it again would remove it while other tests use it.
  const [uploaded = '', files = ''] = await paste(
    steps.map((step) => here(step).replace('npm run build\n', '')),
  );
  expect(JSON.parse(uploaded).batches[0].data.counts).toMatchObject({ received: 1, created: 1 });
  expect(files).toMatch(/transactions\.csv +transactions +60 +60 +0\n/);
  const [program, ...others] = blocksOf('README.md').filter(({ kind }) => kind === 'js');
  expect(others).toEqual([]);
  writeFileSync(join(folder, 'first.mjs'), program?.text ?? '');
  const env = {
    INTAKE_URL: `http://${address}`,
    INTAKE_KEY: readFileSync(join(folder, '.intake/key'), 'utf8').trim(),
  };
  const { stdout } = await promisify(execFile)(process.execPath, ['first.mjs'], { cwd: folder, env });
  expect(stdout).toBe('1 0\n');
});

it('after the demo of docs/getting-started.md, intake report shows what recommendations earn', async () => {
  const page = readFileSync(join(root, 'docs/getting-started.md'), 'utf8');
  const [demo = ''] = /(?<=`)INTAKE_KEY=[^`]* npm run demo(?=`)/.exec(page) ?? [];
  const report = 'INTAKE_KEY=$(cat .intake/key) node client/dist/command/main.js report --json';
  const [sent = '', printed = ''] = await paste([
    // Fewer customers than by default, to save time.
    `export INTAKE_URL=http://${address}\n${demo} -- --customers 500\n`,
    `${report}\n`,
  ]);
  expect(sent).toMatch(/^interactions +5000 sent/m);
  const { groups, total } = JSON.parse(printed);
  for (const figure of ['touches', 'students', 'discount_codes', 'transactions', 'revenue', 'savings'])
    expect(total.recommendations[figure], figure).toBeGreaterThan(0);
  const bought = groups.filter((group: typeof total) => group.recommendations.transactions > 0);
  expect(bought.length).toBeGreaterThan(1);
});
