import { closeBrace, comma, endOfName, endOfValue, openBrace, skipSpace } from '../../json/json-bytes.ts';
import { nameAt } from '../../json/object-reader.ts';
import { limits } from '../../limits.ts';
import { IndexedRows } from '../../postgres/binary/encoded-rows.ts';
import type { Client } from '../../postgres/pool.ts';
import type { Mode } from '../../registry/fields.ts';
import { type Instant, readDateTime } from '../../registry/times.ts';
import { sentFields, type UploadType } from '../../registry/upload-types.ts';
import type { Problems } from '../../rejections/kind-list.ts';
import { recordWriter } from '../../rejections/record-json.ts';
import { type EarlierRejection, type KeptRecord, readKept } from '../../rejections/rejections.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';
import { sentOf } from './sent-fields.ts';

/** What is kept of a record. */
export interface Folded {
  readonly mode: Mode;
  readonly text: string | null;
  readonly updated: Instant | null;
}

/** An earlier rejection whose record has changed, because some of its fields were stored. */
export interface Rewritten extends Folded {
  readonly earlier: KeptRecord;
}

export interface Failure {
  readonly id: string | null;
  readonly index: number;
  readonly problems: Problems;
  /** The position among the failed records or, if only the database shows that it fails, the row. */
  readonly at: number;
  readonly isRow: boolean;
  /** What is kept, if it was put together from several records. */
  readonly folded?: Folded;
}

/** What happened to a record. If it was stored, `failure` is undefined. */
export interface RecordEvent {
  readonly id: string | null;
  readonly index: number;
  readonly row?: number;
  readonly failure?: Failure;
}

/** Fields with their JSON, in the order sent. A name may be repeated. Null if the record was not kept. */
type Members = readonly (readonly [name: string, json: string])[] | null;

/** What a record says: its fields, and its `updated` if it has one. */
interface Version {
  readonly members: Members;
  readonly updated: Instant | null;
}

interface Rejected extends Version {
  readonly mode: Mode;
  readonly isFolded: boolean;
}

interface FoldedRejections {
  readonly failures: readonly Failure[];
  readonly rewritten: readonly Rewritten[];
  /** To be deleted, because the failures and what was rewritten replace them, or nothing is left of them. */
  readonly settled: readonly EarlierRejection[];
}

/**
 * A merged record has only some fields. So if it fails, its fields are added to those of the record's earlier rejection. If it is
 * stored, its fields are taken out of that rejection, so that a replay never writes over something newer.
 */
export async function foldRejections(
  client: Client,
  { organisationId, type }: { readonly organisationId: string; readonly type: UploadType },
  checked: CheckedBatch,
  events: readonly RecordEvent[],
  earlier: readonly EarlierRejection[],
): Promise<FoldedRejections> {
  const kept = await readKept(client, organisationId, earlier);
  const earlierOf = new Map(earlier.map((one) => [one.record_id, one]));
  const failedIds = new Set(events.map(({ failure }) => failure?.id));
  const read = versionReader(type, checked);
  const failures: Failure[] = events.flatMap(({ failure }) => (failure?.id === null ? [failure] : []));
  const rewritten: Rewritten[] = [];
  const settled: EarlierRejection[] = [];
  const byId = Map.groupBy(
    events.filter(({ id }) => id !== null && (failedIds.has(id) || earlierOf.has(id))),
    ({ id }) => id as string,
  );
  for (const [id, ofRecord] of byId) {
    const before = earlierOf.get(id);
    const stored = kept.get(before?.rejection_id ?? '');
    const original = stored && rejectedIn(stored);
    let rejected: Rejected | undefined = original;
    let failure: Failure | undefined;
    for (const event of ofRecord) {
      if (!rejected && !event.failure) continue;
      const next = read(event);
      if (isNewer(rejected, next)) continue;
      if (event.failure) {
        rejected = withFailed(rejected, next, event.failure.isRow);
        failure = event.failure;
      } else {
        rejected = rejected && withoutStored(type, rejected, next);
        if (!rejected) failure = undefined;
      }
    }
    if (rejected === original) continue;
    if (before) settled.push(before);
    if (rejected && failure)
      failures.push({
        ...failure,
        ...(rejected.isFolded && { folded: foldedOf(type, rejected, read({ failure })) }),
      });
    else if (rejected && stored) rewritten.push({ ...foldedOf(type, rejected), earlier: stored });
  }
  return { failures: failures.sort((a, b) => a.index - b.index), rewritten, settled };
}

function rejectedIn({ mode, record, updated }: KeptRecord): Rejected {
  const instant = updated === null ? undefined : readDateTime(updated);
  return { mode, members: membersIn(record), updated: instant ?? null, isFolded: false };
}

function versionReader(type: UploadType, { rows, failed, failedTexts, failedUpdated }: CheckedBatch) {
  const write = recordWriter(type, rows);
  const stored = new IndexedRows(rows);
  const bad = new IndexedRows({ count: failed.length, arrays: [failedTexts, failedUpdated] });
  const updatedAt = Object.keys(sentFields(type)).indexOf('updated');
  return ({ row, failure }: Pick<RecordEvent, 'row' | 'failure'>): Version => {
    if (failure?.isRow === false) {
      const { at } = failure;
      const members = membersIn(bad.isNullAt(0, at) ? null : bad.textAt(0, at));
      return { members, updated: bad.instantAt(1, at) ?? null };
    }
    const at = (failure?.at ?? row) as number;
    const members = membersIn(write(at, sentOf(rows, at)));
    return { members, updated: stored.instantAt(updatedAt, at) ?? null };
  };
}

function isNewer(rejected: Rejected | undefined, { updated }: Version): boolean {
  const known = rejected?.updated ?? null;
  return known !== null && updated !== null && known > updated;
}

function withFailed(rejected: Rejected | undefined, next: Version, isRow: boolean): Rejected {
  if (!rejected) return { ...next, mode: 'merge', isFolded: isRow };
  return overlaid(rejected, next);
}

/** In order, the fields of a rejection to be replaced would clear those that it lacks. So it gets the values that were stored. */
function withoutStored(type: UploadType, rejected: Rejected, next: Version): Rejected | undefined {
  const { members, mode } = rejected;
  if (members === null) return rejected;
  const left = without(members, next.members ?? []);
  if (!left.some(([name]) => Object.hasOwn(sentFields(type), name))) return undefined;
  if (mode === 'replace') return overlaid(rejected, next);
  const [id] = Object.keys(sentFields(type)) as [string];
  const ids = members.filter(([name]) => name === id);
  return { ...rejected, members: [...ids, ...left], updated: updatedOf(rejected, next), isFolded: true };
}

function overlaid(rejected: Rejected, next: Version): Rejected {
  const { mode, members } = rejected;
  return {
    mode,
    members: next.members && [...without(members ?? [], next.members), ...next.members],
    updated: updatedOf(rejected, next),
    isFolded: true,
  };
}

function without(members: Members & object, others: Members & object): Members & object {
  const names = new Set(others.map(([name]) => name));
  return members.filter(([name]) => !names.has(name));
}

function updatedOf(rejected: Version, { members, updated }: Version): Instant | null {
  return members?.some(([name]) => name === 'updated') === false ? rejected.updated : updated;
}

/** The values stay as they were sent, because parsing and serialising could change them. */
function membersIn(text: string | null): Members {
  if (text === null) return null;
  const bytes = Buffer.from(text);
  const members: [string, string][] = [];
  let at = skipSpace(bytes, 0);
  if (bytes[at] !== openBrace) return null;
  for (at = skipSpace(bytes, at + 1); at < bytes.length && bytes[at] !== closeBrace; ) {
    const from = endOfName(bytes, at);
    const end = endOfValue(bytes, from, limits.bodyDepthMax);
    members.push([nameAt(bytes, at), bytes.toString('utf8', from, end)]);
    at = skipSpace(bytes, end);
    if (bytes[at] === comma) at = skipSpace(bytes, at + 1);
  }
  return members;
}

/** If the fields are too large together, only the newest record is kept. */
function foldedOf(type: UploadType, { mode, members, updated }: Rejected, newest?: Version): Folded {
  const known = sentFields(type);
  const inFull = members && textOf(members);
  const texts = [inFull, members && textOf(members.filter(([name]) => Object.hasOwn(known, name)))];
  const text = texts.find((one) => one === null || Buffer.byteLength(one) <= limits.recordBytesMax);
  if (text !== undefined) return { mode, text, updated };
  if (!newest?.members) return { mode, text: null, updated };
  return { mode: 'merge', text: textOf(newest.members), updated: newest.updated };
}

function textOf(members: Members & object): string {
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
}
