import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { createTestDatabase } from '../support/database.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/adding-a-record-type.md'), 'utf8');
const lastLineOfRegistry = '} satisfies Record<string, Resource>;';

/** The code block that follows a marker of the page. */
function snippet(name: string): string {
  const found = new RegExp(`<!-- snippet: ${name} -->\\n\`\`\`\\w+\\n(.*?)^\`\`\`$`, 'ms').exec(page)?.[1];
  if (found === undefined) throw new Error(`docs/adding-a-record-type.md has no snippet called ${name}`);
  return found;
}

let folder: string;
let server: ChildProcess | undefined;
let environment: NodeJS.ProcessEnv;
let migrationName: string;

/** Runs a program in the copy; returns what it printed. */
async function run(program: string, ...args: string[]): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)(program, args, { cwd: folder, env: environment });
    return stdout;
  } catch (error) {
    // The compiler complains on its standard output, which the error's own message leaves out.
    const { stdout, message } = error as { stdout: string; message: string };
    throw new Error(`${message}\n${stdout}`);
  }
}

const intake = (...args: string[]) => run(process.execPath, 'dist/main.js', ...args);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'intake-new-type-'));
  environment = {
    ...process.env,
    DATABASE_URL: await createTestDatabase(),
    PORT: '0',
    HOST: '127.0.0.1',
    LOG_LEVEL: 'info',
  };
  const copied = ['src', 'migrations', 'scripts', 'package.json', 'openapi.json'];
  for (const name of [...copied, 'tsconfig.json', 'tsconfig.build.json']) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  addEntry();
  addMigration();
  await run(process.execPath, 'scripts/generate-openapi.ts');
  await run(join(root, 'node_modules/.bin/tsc'), '-p', 'tsconfig.build.json');
});

afterAll(async () => {
  if (server?.exitCode === null && server.signalCode === null) {
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
  rmSync(folder, { recursive: true, force: true });
});

function addEntry(): void {
  const file = join(folder, 'src/registry/resources.ts');
  const source = readFileSync(file, 'utf8');
  expect(source.split(lastLineOfRegistry)).toHaveLength(2);
  expect(page).toContain(lastLineOfRegistry);
  writeFileSync(
    file,
    source.replace(lastLineOfRegistry, () => snippet('registry-entry') + lastLineOfRegistry),
  );
}

function addMigration(): void {
  const migrations = join(folder, 'migrations');
  const numbers = readdirSync(migrations).map((file) => Number.parseInt(file, 10));
  migrationName = `${String(Math.max(...numbers) + 1).padStart(4, '0')}_vouchers`;
  writeFileSync(join(migrations, `${migrationName}.sql`), snippet('migration'));
}

async function serve(): Promise<string> {
  const started = spawn(process.execPath, ['dist/main.js', 'serve'], {
    cwd: folder,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  server = started;
  return new Promise((resolve, reject) => {
    started.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    createInterface({ input: started.stdout }).on('line', (line) => {
      const address = /Server listening at (https?:\/\/[^"\s]+)/.exec(line)?.[1];
      if (address) resolve(address);
    });
  });
}

async function apiOfCopy(): Promise<Api> {
  await intake('organisations', 'create', 'acme');
  const { key } = JSON.parse(
    await intake(
      'keys',
      'issue',
      '--organisation',
      'acme',
      '--scope',
      'data:write:shops',
      '--scope',
      'data:write:vouchers',
      '--json',
    ),
  );
  return apiOf(await serve(), key);
}

/** The bodies that the page sends, in order. */
function bodiesSent(): { type: string; records: Record<string, unknown>[] }[] {
  const commands = snippet('try-it').matchAll(/\/v1\/data\/(\S+) .*?-d '(.*?)'/gs);
  return [...commands].map(([, type = '', body = '']) => ({ type, ...JSON.parse(body) }));
}

it('a type is one entry and one migration, as the page says', async () => {
  expect(await intake('migrate')).toContain(`applied ${migrationName}`);
  const api = await apiOfCopy();
  const [shops, vouchers] = bodiesSent();
  expect([shops?.type, vouchers?.type]).toEqual(['shops', 'vouchers']);
  expect((await api.batch('shops', shops?.records ?? [])).counts).toMatchObject({ created: 1, failed: 0 });

  const answer = await api.batch('vouchers', vouchers?.records ?? []);
  expect(answer).toMatchObject({ http: 207, status: 'partial', counts: { created: 1, failed: 1 } });
  expect(answer.errors).toMatchObject([{ index: 1, field: 'shop_id', code: 'reference_not_found' }]);
  expect(page).toContain(`\n${answer.error}\n`);

  const [voucher] = vouchers?.records ?? [];
  const wrong = await api.batch('vouchers', [
    { ...voucher, value: 0 },
    { ...voucher, code: '' },
    { ...voucher, expires: '30 February' },
    { ...voucher, offer_id: '99999999-9999-4999-8999-999999999999' },
  ]);
  expect(wrong.errors).toMatchObject([
    { index: 0, field: 'value', code: 'out_of_range' },
    { index: 1, field: 'code', code: 'required' },
    { index: 2, field: 'expires', code: 'invalid_format' },
    { index: 3, field: 'offer_id', code: 'reference_not_found' },
  ]);
});

it('the description of the API has the type without being told', () => {
  const { paths, components } = JSON.parse(readFileSync(join(folder, 'openapi.json'), 'utf8'));
  expect(paths['/v1/data/vouchers'].post.operationId).toBe('upload-vouchers');
  expect(components.schemas.Voucher.required).toEqual(['voucher_id', 'shop_id', 'code', 'value']);
});
