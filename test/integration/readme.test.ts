// @module-tag full

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { help } from '../../src/cli/arguments/help.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const readme = readFileSync(join(root, 'README.md'), 'utf8');

/** One command of the README and the answer that it shows, if it shows one. */
interface Step {
  readonly command: string;
  readonly answer: string | undefined;
}

/** Each shell block of the section, with the block that comes next unless that is a command too. */
function stepsOf(heading: string): Step[] {
  const section = readme.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, kind = '', text = '']) => ({
    kind,
    text,
  }));
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

// A copy, so that a developer's own .intake is left alone; open to the account that PostgreSQL runs as under root.
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'intake-readme-'));
  chmodSync(folder, 0o755);
  for (const name of ['src', 'migrations', 'package.json']) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
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

/** Runs the commands one after the other in one shell, as a reader pastes them; returns what each printed. */
async function paste(commands: readonly string[]): Promise<string[]> {
  const between = '--- next command ---\n';
  const script = commands.map((command) => `${command}printf '%s' '${between}'\n`).join('');
  const { stdout } = await promisify(execFile)('bash', ['-eu', '-o', 'pipefail', '-c', script], {
    cwd: folder,
    timeout: 100_000,
  });
  return stdout.split(between).slice(0, -1);
}

/** Ids and times differ from run to run; everything else is as the README has it. */
function withoutIds(answer: string): string {
  return answer
    .replaceAll(
      /"(request_id|batch_id|interaction_id)": "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"/g,
      '"$1"',
    )
    .replaceAll(/("interaction_ids": \[\s+)"[0-9a-f-]{36}"/g, '$1')
    .replaceAll(/"key_id": "\w{11}"/g, '"key_id"')
    .replaceAll(/"(cursor|next_cursor)": "\d+-\d+-\d+-[0-9a-f]{8}-[\w-]{22}"/g, '"$1"')
    .replaceAll(/"duration_ms": \d+/g, '"duration_ms"')
    .replaceAll(/"(created|received|last_upload)": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z"/g, '"$1"');
}

it('the first upload, pasted from the README, is answered as the README shows', {
  timeout: 240_000,
}, async () => {
  const steps = stepsOf('First upload');
  expect(steps.map(({ answer }) => answer !== undefined)).toEqual([false, ...Array(12).fill(true)]);
  expect(readme).toContain('127.0.0.1:8080/v1/data/shops');
  const printed = await paste(steps.map(({ command }) => command.replaceAll('127.0.0.1:8080', address)));
  for (const [at, { command, answer }] of steps.entries()) {
    expect(withoutIds(printed[at] ?? ''), command).toBe(withoutIds(answer ?? ''));
  }
  expect(printed.join()).toContain('"status": "partial"');
  expect(printed.join()).toContain('"code": "reference_not_found"');
  for (const path of [
    '/v1/changes',
    '/v1/reports/recommendations',
    '/v1/requests/',
    '?dry_run=true',
    '/v1/rejections/replay',
    'application/x-ndjson',
  ])
    expect(steps.map(({ command }) => command).join()).toContain(path);

  const [, shop = ''] = printed;
  const interaction = printed.at(-1);
  const again = await paste(
    steps.flatMap(({ command }, at) =>
      at < 2 || at === steps.length - 1 ? command.replaceAll('127.0.0.1:8080', address) : [],
    ),
  );
  expect(shop).toContain('"created": 1');
  expect(again[1], 'a shop that is sent again').toContain('"unchanged": 1');
  expect(again[2], 'an interaction that is sent again').toBe(interaction);
});

/** The names in the first column of its tables. */
function settingsIn(text: string): string[] {
  return [...text.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name),
  );
}

it('the settings in help settings and in the README are those in docs/settings.md', () => {
  const listed = settingsIn(readFileSync(join(root, 'docs/settings.md'), 'utf8'));
  const known = ((help('settings') ?? '').match(/^ {2}[A-Z][A-Z_]+ {2}/gm) ?? []).map((line) => line.trim());
  expect(listed.length).toBeGreaterThan(20);
  expect(known).toEqual(listed);
  expect(settingsIn(readme).length).toBeGreaterThan(3);
  expect(settingsIn(readme).filter((name) => !listed.includes(name))).toEqual([]);
});

it('the links from one document to another lead somewhere', () => {
  const documents = globSync('{*.md,docs/*.md}', { cwd: root });
  const anchorsOf = (document: string) =>
    [...readFileSync(join(root, document), 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
  const broken = documents.flatMap((document) =>
    [...readFileSync(join(root, document), 'utf8').matchAll(/\]\((?!https?:)([^)#]*)#?([^)]*)\)/g)].flatMap(
      ([link, file = '', anchor = '']) => {
        const target = file === '' ? document : join(dirname(document), file);
        const isThere =
          existsSync(join(root, target)) && (anchor === '' || anchorsOf(target).includes(anchor));
        return isThere ? [] : [`${document}: ${link}`];
      },
    ),
  );
  expect(broken).toEqual([]);
});
