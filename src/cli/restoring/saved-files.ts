import { type FileHandle, open } from 'node:fs/promises';
import type { AuditEntry } from '../../operator/audit-log.ts';
import type { Saved } from '../../operator/batches.ts';
import type { LedgerEnd, LedgerEntry } from '../../operator/erasure-ledger.ts';
import { isUuid } from '../../registry/fields.ts';
import { commandError } from '../arguments/help.ts';

/** A file is opened once and read several times. A backup that replaces it in the meantime has no effect. */
export async function openSaved(name: string): Promise<FileHandle> {
  const file = await open(name).catch((error: Error) => {
    throw commandError(`${name} cannot be read: ${error.message}`);
  });
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw commandError(`${name} cannot be read several times, because it is not a file; save it as a file`);
}

/** Skips empty lines. `readline` is not suitable, because it also splits at U+2028, which JSON may contain. */
export async function* linesFromEnd(file: FileHandle, blockBytes = 1024 * 1024): AsyncGenerator<string> {
  let { size: end } = await file.stat();
  // The end of a line whose beginning has not been read yet.
  let rest: Buffer = Buffer.alloc(0);
  while (end > 0) {
    const start = Math.max(0, end - blockBytes);
    const { bytesRead, buffer } = await file.read(Buffer.alloc(end - start), 0, end - start, start);
    if (bytesRead < end - start) throw new Error('the file was cut off while it was read');
    const bytes = Buffer.concat([buffer, rest]);
    const lineBreak = start === 0 ? -1 : bytes.indexOf('\n');
    const isInLine = start > 0 && lineBreak < 0;
    rest = isInLine ? bytes : bytes.subarray(0, Math.max(0, lineBreak));
    const lines = isInLine ? [] : bytes.toString('utf8', lineBreak + 1).split('\n');
    for (const line of lines.toReversed()) if (line !== '') yield line;
    end = start;
  }
}

async function* valuesFromEnd(file: FileHandle): AsyncGenerator<unknown> {
  for await (const line of linesFromEnd(file)) yield JSON.parse(line);
}

/** The entries of an audit log, oldest first. */
export async function auditLogIn(file: FileHandle, name: string): Promise<Saved<AuditEntry>> {
  const notLog = `${name} is not an audit log; write it with intake-server audit --json --since <day> on the old database`;
  const [first] = (await file.read(Buffer.alloc(1), 0, 1, 0)).buffer.toString();
  try {
    // Earlier versions wrote an array, whose length they limited.
    const entries: Saved<unknown> =
      first === '['
        ? (JSON.parse(await file.readFile('utf8')) as unknown[]).toReversed()
        : { [Symbol.asyncIterator]: () => valuesFromEnd(file) };
    for await (const entry of entries) if (!isAuditEntry(entry)) throw commandError(notLog);
    return entries as Saved<AuditEntry>;
  } catch (error) {
    throw error instanceof SyntaxError ? commandError(notLog) : error;
  }
}

function isAuditEntry(entry: unknown): entry is AuditEntry {
  const { audit_id, at, actor, act, organisation, details } = (entry ?? {}) as Partial<AuditEntry>;
  return (
    /^\d{1,15}$/.test(String(audit_id)) &&
    !Number.isNaN(Date.parse(String(at))) &&
    typeof actor === 'string' &&
    typeof act === 'string' &&
    (organisation === null || typeof organisation === 'string') &&
    typeof details === 'object' &&
    details !== null
  );
}

const anotherLedger = 'write it again with intake-server erasures on the old database, or use another copy';

export interface SavedLedger extends AsyncIterable<LedgerEntry> {
  /** Unknown for ledgers of earlier versions. */
  readonly writtenAt: Date | undefined;
}

/** The entries of a ledger, organisation by organisation. The whole file is checked before anything is applied. */
export async function ledgerIn(file: FileHandle, name: string): Promise<SavedLedger> {
  const { end, count, areEntries, areGrouped } = await readWhole(file).catch((error: unknown) => {
    if (!(error instanceof SyntaxError)) throw error;
    throw commandError(
      `${name} is not a complete ledger, because it has a line that is not JSON; ${anotherLedger}`,
    );
  });
  if (typeof end?.entries !== 'number')
    throw commandError(
      `${name} is cut off, because its last line is not the number of entries; ${anotherLedger}. Ledgers of earlier versions ` +
        `have no such line: if this one is complete, add {"entries":${count + (end ? 1 : 0)}} as the last line`,
    );
  if (end.entries !== count)
    throw commandError(
      `${name} is incomplete, because it has ${count} of ${end.entries} entries; ${anotherLedger}`,
    );
  const { written_at } = end;
  if (!areEntries || Number.isNaN(Date.parse(written_at ?? '1970-01-01')))
    throw commandError(`${name} is not a ledger; ${anotherLedger}`);
  if (!areGrouped)
    throw commandError(
      `${name} is not one ledger, because it has entries of an organisation in several places; ${anotherLedger}`,
    );
  const writtenAt = written_at === undefined ? undefined : new Date(written_at);
  return { writtenAt, [Symbol.asyncIterator]: () => entriesFromEnd(file) };
}

async function* entriesFromEnd(file: FileHandle): AsyncGenerator<LedgerEntry> {
  const values = valuesFromEnd(file);
  // The last line is the number of entries.
  await values.next();
  yield* values as AsyncGenerator<LedgerEntry>;
}

async function readWhole(file: FileHandle) {
  let end: Partial<LedgerEnd> | undefined;
  let [count, areEntries, areGrouped] = [0, true, true];
  const organisations = new Set<string>();
  let last: string | undefined;
  for await (const value of valuesFromEnd(file)) {
    if (end === undefined) {
      end = value ?? {};
      continue;
    }
    count++;
    if (!isLedgerEntry(value)) areEntries = false;
    else if (value.organisation_id !== last) {
      last = value.organisation_id;
      if (organisations.has(last)) areGrouped = false;
      organisations.add(last);
    }
  }
  return { end, count, areEntries, areGrouped };
}

function isLedgerEntry(entry: unknown): entry is LedgerEntry {
  const {
    organisation_id = '',
    erasure_id = '',
    hash = '',
    key_fingerprint: key,
    lifted_at: lifted,
  } = (entry ?? {}) as Partial<LedgerEntry>;
  return (
    isUuid(organisation_id) &&
    isUuid(erasure_id) &&
    /^[0-9a-f]{32}$/.test(hash) &&
    (key == null || /^[0-9a-f]{16}$/.test(key)) &&
    (lifted == null || !Number.isNaN(Date.parse(lifted)))
  );
}
