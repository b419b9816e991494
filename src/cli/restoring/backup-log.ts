import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type AuditEntry, entriesInLog, noteBackup, readAuditLog } from '../../operator/audit-log.ts';
import { ledgerLines } from '../../operator/erasure-ledger.ts';
import type { Pool } from '../../postgres/pool.ts';
import { databaseTime } from '../../postgres/transactions.ts';
import { commandError } from '../arguments/help.ts';
import { withPool } from '../database/with-pool.ts';

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
  await refuseNewer(pool, join(to, auditFile));
  const writtenAt = await databaseTime(pool);
  await mkdir(to, { recursive: true, mode: 0o700 });
  const entries = await writeWhole(join(to, auditFile), auditLines(pool));
  const hashes = await writeWhole(join(to, ledgerFile), ledgerLines(pool));
  await noteBackup(pool, writtenAt);
  console.log(`Wrote ${entries} entries of the audit log and ${hashes - 1} of the ledger to ${to}.`);
}

/** Refuses to replace a file whose newest entry the audit log lacks. */
async function refuseNewer(pool: Pool, file: string): Promise<void> {
  const line = await readFirstLine(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw commandError(`${file} cannot be read: ${error.message}`);
  });
  if (line === '') return;
  let isOurs = false;
  try {
    isOurs = (await entriesInLog(pool, [JSON.parse(line) as AuditEntry])).size > 0;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (isOurs) return;
  throw commandError(
    `${file} has entries that this database lacks, because it was restored or is another one. Run intake-server after-restore with this file first, or write to another folder`,
  );
}

/** No entry is longer than this. */
const entryBytesMax = 1024 * 1024;

async function readFirstLine(name: string): Promise<string> {
  await using file = await open(name);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(entryBytesMax), 0, entryBytesMax, 0);
  const [line = ''] = buffer.toString('utf8', 0, bytesRead).split('\n', 1);
  return line;
}

async function* auditLines(pool: Pool): AsyncGenerator<string> {
  for await (const entries of readAuditLog(pool, {}))
    yield entries.map((entry) => `${JSON.stringify(entry)}\n`).join('');
}

/** Writes a file next to its target, flushes it and renames it. Returns the number of lines. */
async function writeWhole(target: string, parts: AsyncIterable<string>): Promise<number> {
  const written = `${target}.${process.pid}.unfinished`;
  let lines = 0;
  try {
    const file = await open(written, 'w', 0o600);
    try {
      for await (const part of parts) {
        await file.appendFile(part);
        lines += part.split('\n').length - 1;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(written, target);
    return lines;
  } catch (error) {
    await rm(written, { force: true });
    const { code = '', syscall, message } = error as NodeJS.ErrnoException;
    if (/^E[A-Z]+$/.test(code) && syscall !== undefined)
      throw commandError(`${target} cannot be written: ${message}`);
    throw error;
  }
}
