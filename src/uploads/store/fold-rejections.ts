import { closeBrace, comma, endOfName, endOfValue, openBrace, skipSpace } from '../../json/json-bytes.ts';
import { nameAt } from '../../json/object-reader.ts';
import { limits } from '../../limits.ts';
import { IndexedRows } from '../../postgres/binary/encoded-rows.ts';
import type { Client } from '../../postgres/pool.ts';
import type { Mode } from '../../registry/fields.ts';
import { sentFields, type UploadType } from '../../registry/upload-types.ts';
import type { Problems } from '../../rejections/kind-list.ts';
import { recordWriter } from '../../rejections/record-json.ts';
import { type EarlierRejection, readKept } from '../../rejections/rejections.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';
import { sentOf } from './sent-fields.ts';

/** A rejection's record. */
export interface Folded {
  readonly mode: Mode;
  readonly text: string | null;
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

interface Rejected {
  readonly mode: Mode;
  readonly members: Members;
  readonly isFolded: boolean;
}

/**
 * A merged record has only some fields. So if it fails, its fields are added to those of the record's earlier rejection,
 * and if it is stored, an earlier rejection is settled only if all of its fields were sent again.
 */
export async function foldRejections(
  client: Client,
  { organisationId, type }: { readonly organisationId: string; readonly type: UploadType },
  checked: CheckedBatch,
  events: readonly RecordEvent[],
  earlier: readonly EarlierRejection[],
): Promise<{ readonly failures: readonly Failure[]; readonly settled: readonly EarlierRejection[] }> {
  const kept = await readKept(client, organisationId, earlier);
  const earlierOf = new Map(earlier.map((one) => [one.record_id, one]));
  const failedIds = new Set(events.map(({ failure }) => failure?.id));
  const textOf = textReader(type, checked);
  const failures: Failure[] = events.flatMap(({ failure }) => (failure?.id === null ? [failure] : []));
  const settled: EarlierRejection[] = [];
  const byId = Map.groupBy(
    events.filter(({ id }) => id !== null && (failedIds.has(id) || earlierOf.has(id))),
    ({ id }) => id as string,
  );
  for (const [id, ofRecord] of byId) {
    const before = earlierOf.get(id);
    const stored = kept.get(before?.rejection_id ?? '');
    let rejected: Rejected | undefined = stored && {
      mode: stored.mode,
      members: membersIn(stored.record),
      isFolded: false,
    };
    let failure: Failure | undefined;
    for (const { row, failure: next } of ofRecord) {
      if (next) {
        const members = overlaid(rejected, membersIn(textOf(next)));
        rejected = {
          mode: rejected?.mode ?? 'merge',
          members,
          isFolded: rejected !== undefined || next.isRow,
        };
        failure = next;
      } else if (isCovered(type, rejected, sentOf(checked.rows, row as number))) {
        rejected = undefined;
        failure = undefined;
      }
    }
    if (before && (failure || !rejected)) settled.push(before);
    if (failure && rejected) failures.push({ ...failure, ...foldedOf(type, rejected) });
  }
  return { failures: failures.sort((a, b) => a.index - b.index), settled };
}

function textReader(type: UploadType, { rows, failed, failedTexts }: CheckedBatch) {
  const write = recordWriter(type, rows);
  const bad = new IndexedRows({ count: failed.length, arrays: [failedTexts] });
  return ({ at, isRow }: Failure): string | null => {
    if (isRow) return write(at, sentOf(rows, at));
    return bad.isNullAt(0, at) ? null : bad.textAt(0, at);
  };
}

function overlaid(before: Rejected | undefined, next: Members): Members {
  if (next === null) return null;
  const names = new Set(next.map(([name]) => name));
  return [...(before?.members ?? []).filter(([name]) => !names.has(name)), ...next];
}

/** A record that was not kept could have had any field. */
function isCovered(type: UploadType, rejected: Rejected | undefined, sent: number): boolean {
  if (!rejected) return false;
  const names = Object.keys(sentFields(type));
  return (
    rejected.members !== null &&
    names.every((name, at) => (sent & (1 << at)) !== 0 || !rejected.members?.some(([one]) => one === name))
  );
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

/** Nothing if the record is kept with the text that was sent. Records that are too large together keep only the newest one. */
function foldedOf(type: UploadType, { mode, members, isFolded }: Rejected): { readonly folded?: Folded } {
  if (!isFolded) return {};
  if (members === null) return { folded: { mode, text: null } };
  const known = sentFields(type);
  const texts = [members, members.filter(([name]) => Object.hasOwn(known, name))].map(
    (some) => `{${some.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`,
  );
  const text = texts.find((one) => Buffer.byteLength(one) <= limits.recordBytesMax);
  return text === undefined ? {} : { folded: { mode, text } };
}
