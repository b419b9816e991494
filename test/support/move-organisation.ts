import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createZstdDecompress } from 'node:zlib';
import { expect } from 'vitest';
import { adminDatabaseUrl } from './admin-server.ts';
import { servingUrl, throughPooler } from './database.ts';
import { queryDatabase } from './query-database.ts';
import { type CommandResult, runCommand } from './run-command.ts';
import { startTcpProxy } from './tcp-proxy.ts';

const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

/** Returns an environment with only the two logins for exporting and importing an organisation. */
export async function moveEnvironment(databaseUrl: string): Promise<Record<string, string>> {
  return {
    DATABASE_URL: throughPooler(servingUrl(databaseUrl)),
    ADMIN_DATABASE_URL: await adminDatabaseUrl(databaseUrl),
    ERASURE_KEYS: 'a key of 32 characters or more for tests',
  };
}

/** Runs the `organisations` command with these arguments. */
export async function runMove(databaseUrl: string, ...args: string[]): Promise<CommandResult> {
  return runCommand(['organisations', ...args], await moveEnvironment(databaseUrl));
}

/** Creates an organisation without data. */
export async function createEmpty(databaseUrl: string, slug: string): Promise<void> {
  const { ADMIN_DATABASE_URL = '' } = await moveEnvironment(databaseUrl);
  const created = await runCommand(['organisations', 'create', slug], { DATABASE_URL: ADMIN_DATABASE_URL });
  expect(created).toMatchObject({ exitCode: 0 });
}

/** Checks that the command failed, and that its last line gives the reason. */
export function expectRefused({ exitCode, stdout, stderr }: CommandResult, help: RegExp): void {
  const [last = ''] = stderr.trim().split('\n').slice(-1);
  expect({ exitCode, stdout, last }).toEqual({ exitCode: 1, stdout: '', last: expect.stringMatching(help) });
  expect(stderr).not.toMatch(/^\s+at /m);
}

/** Returns the audit log entries about moves, oldest first. */
export const auditOf = (databaseUrl: string, slug: string) =>
  queryDatabase<{ act: string; actor: string; details: Record<string, unknown> }>(
    databaseUrl,
    `select act, actor, details from audit_log join organisations using (organisation_id)
     where slug = $1 and act ~ '(port|ported)$' order by audit_id`,
    [slug],
  );

/**
 * Runs `organisations export` or `import`. Kills the process or cuts its connection before or after it sends a
 * statement to the database.
 */
export async function runKilled(
  args: readonly string[],
  databaseUrl: string,
  momentOf: (sent: string) => 'before' | 'after' | 'cut' | undefined,
): Promise<CommandResult> {
  const env = await moveEnvironment(databaseUrl);
  const proxy = await startTcpProxy(databaseUrl);
  const through = new URL(env.DATABASE_URL as string);
  const { host } = new URL(proxy.databaseUrl);
  through.host = host;
  let child: ChildProcess | undefined;
  proxy.watch((bytes, link) => {
    if (child?.killed) return false;
    const moment = momentOf(bytes.toString('latin1'));
    if (moment === 'cut') link.cut();
    else if (moment) child?.kill('SIGKILL');
    return moment === undefined || moment === 'after';
  });
  child = spawn(process.execPath, [main, ...args], { env: { ...env, DATABASE_URL: through.href } });
  const [[exitCode], stdout, stderr] = await Promise.all([
    once(child, 'exit'),
    text(child.stdout as NodeJS.ReadableStream & AsyncIterable<Buffer>),
    text(child.stderr as NodeJS.ReadableStream & AsyncIterable<Buffer>),
  ]);
  await proxy.close();
  return { exitCode, stdout, stderr };
}

/**
 * Returns all of an organisation's rows, by table, without the values that an import assigns: interaction ids and
 * storage times.
 */
export async function rowsOf(
  databaseUrl: string,
  slug: string,
  tables: readonly string[],
): Promise<Record<string, string[]>> {
  const rows: Record<string, string[]> = {};
  for (const table of tables) {
    const order = table === 'interactions' ? 'interaction_id' : 'kept';
    const found = await queryDatabase<{ kept: string }>(
      databaseUrl,
      `select (to_jsonb(t) - '{organisation_id,stored_at,interaction_id}'::text[])::text as kept from ${table} t
       join organisations o using (organisation_id) where o.slug = $1 order by ${order}`,
      [slug],
    );
    rows[table] = found.map(({ kept }) => kept);
  }
  return rows;
}

// biome-ignore lint/suspicious/noExplicitAny: tests check the shape, which a type would only assume.
export function manifestOf(folder: string): any {
  return JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
}

/** Returns the lines of all exported files, by type. */
export async function linesIn(folder: string): Promise<Record<string, string[]>> {
  const lines: Record<string, string[]> = {};
  for (const name of readdirSync(folder)
    .filter((file) => file.endsWith('.zst'))
    .toSorted()) {
    const type = name.replace(/-\d{6}\.ndjson\.zst$/, '');
    const all = await text(createReadStream(join(folder, name)).pipe(createZstdDecompress()));
    lines[type] = [...(lines[type] ?? []), ...all.split('\n').slice(0, -1)];
  }
  return lines;
}
