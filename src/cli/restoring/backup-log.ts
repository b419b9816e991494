import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  type AuditEntry,
  entriesInLog,
  lastBackup,
  noteBackup,
  readAuditLog,
} from '../../operator/audit-log.ts';
import { type LedgerEnd, ledgerLines } from '../../operator/erasure-ledger.ts';
import type { Pool } from '../../postgres/pool.ts';
import { databaseTime } from '../../postgres/transactions.ts';
import { commandError } from '../arguments/help.ts';
import { withPool } from '../database/with-pool.ts';
import { linesFromEnd } from './saved-files.ts';

const auditFile = 'audit.ndjson';
const ledgerFile = 'erasures.ndjson';

export async function run(args: string[]): Promise<void> {
  const { to } = parseArgs({ args, options: { to: { type: 'string' } } }).values;
  if (to === undefined)
    throw commandError('--to is missing; it should be a folder that is outside the database server');
  await withPool((pool) => backUp(pool, to), { usesClock: false });
}

async function backUp(pool: Pool, to: string): Promise<void> {
  // A restored database lacks what the files are for, so they must not be replaced.
  await pool.query('select keys_can_be_trusted()');
  const [audit, ledger] = [join(to, auditFile), join(to, ledgerFile)];
  await refuseNewer(pool, audit, ledger);
  const writtenAt = await databaseTime(pool);
  await mkdir(to, { recursive: true, mode: 0o700 });
  const lines = await writeWhole(
    [
      [audit, auditLines(pool)],
      [ledger, ledgerLines(pool, writtenAt)],
    ],
    // Before the files are replaced: otherwise, an interruption would leave files that this database does not know.
    () => noteBackup(pool, writtenAt),
  );
  const [entries = 0, hashes = 0] = lines;
  console.log(`Wrote ${entries} entries of the audit log and ${hashes - 1} of the ledger to ${to}.`);
}

/**
 * Refuses to replace an audit log whose newest entry this database lacks, and a ledger that is newer than the last backup
 * that it knows. A ledger may be newer although the audit log is not, because erasures are not in the audit log.
 */
async function refuseNewer(pool: Pool, audit: string, ledger: string): Promise<void> {
  const entry = await valueIn<AuditEntry>(audit, firstLine);
  const isOurs = async () => (await entriesInLog(pool, [entry as AuditEntry])).size > 0;
  if (entry === 'unreadable' || (entry && !(await isOurs()))) throw notOurs(audit, 'entries');
  const end = await valueIn<Partial<LedgerEnd>>(ledger, lastLine);
  const knownUntil = (await lastBackup(pool))?.getTime() ?? 0;
  const isKnown = ({ written_at = '' }: Partial<LedgerEnd>) => Date.parse(written_at) <= knownUntil;
  if (end === 'unreadable' || (end && !isKnown(end))) throw notOurs(ledger, 'erasures');
}

function notOurs(file: string, what: string): Error {
  return commandError(
    `${file} has ${what} that this database lacks, because it was restored or is another one. Run intake-server after-restore with this file first, or write to another folder`,
  );
}

/** Undefined if the file is missing or empty. */
async function valueIn<T extends object>(
  name: string,
  lineOf: (file: FileHandle) => Promise<string>,
): Promise<T | 'unreadable' | undefined> {
  try {
    await using file = await open(name);
    const line = await lineOf(file);
    if (line === '') return undefined;
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as T) : 'unreadable';
  } catch (error) {
    if (error instanceof SyntaxError) return 'unreadable';
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw commandError(`${name} cannot be read: ${message}`);
  }
}

/** No entry is longer than this. */
const entryBytesMax = 1024 * 1024;

async function firstLine(file: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(entryBytesMax), 0, entryBytesMax, 0);
  const [line = ''] = buffer.toString('utf8', 0, bytesRead).split('\n', 1);
  return line;
}

async function lastLine(file: FileHandle): Promise<string> {
  for await (const line of linesFromEnd(file)) return line;
  return '';
}

async function* auditLines(pool: Pool): AsyncGenerator<string> {
  for await (const entries of readAuditLog(pool, {}))
    yield entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

/** Writes files next to their targets, flushes them and renames them. Returns the number of lines of each. */
async function writeWhole(
  files: readonly (readonly [target: string, parts: AsyncIterable<string>])[],
  beforeRenaming: () => Promise<void>,
): Promise<number[]> {
  const unfinished = (target: string) => `${target}.${process.pid}.unfinished`;
  const lines: number[] = [];
  try {
    for (const [target, parts] of files) lines.push(await naming(target, write(unfinished(target), parts)));
    await beforeRenaming();
    for (const [target] of files) await naming(target, rename(unfinished(target), target));
    return lines;
  } catch (error) {
    for (const [target] of files) await rm(unfinished(target), { force: true });
    throw error;
  }
}

async function write(name: string, parts: AsyncIterable<string>): Promise<number> {
  await using file = await open(name, 'w', 0o600);
  let lines = 0;
  for await (const part of parts) {
    await file.appendFile(part);
    lines += part.split('\n').length - 1;
  }
  await file.sync();
  return lines;
}

async function naming<T>(target: string, work: Promise<T>): Promise<T> {
  return work.catch((error: NodeJS.ErrnoException) => {
    const { code = '', syscall, message } = error;
    if (/^E[A-Z]+$/.test(code) && syscall !== undefined)
      throw commandError(`${target} cannot be written: ${message}`);
    throw error;
  });
}
