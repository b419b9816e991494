import { mapInTurns } from '../../json/map-in-turns.ts';
import { arrayHeaderBytes, viewOf } from '../../postgres/binary/array-writer.ts';
import { IndexedRows, replaceTexts, uuidsOf } from '../../postgres/binary/encoded-rows.ts';
import type { FieldProblem } from '../../registry/fields.ts';
import { erasedPerson } from '../../registry/personal.ts';
import { perType } from '../../registry/resources.ts';
import { sentFields, type UploadType } from '../../registry/upload-types.ts';
import { type FailedRecord, idsInFailed, withoutErased } from '../../suppression/ids-in-text.ts';
import type { IdCheck } from '../../suppression/suppressions.ts';
import { failed, type Outcome } from '../answer/outcome.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';

interface IdentifyingField {
  readonly position: number;
  readonly isText: boolean;
  readonly isAlone: boolean;
  readonly problem: FieldProblem;
}

const identifyingFields = perType((type: UploadType) =>
  Object.entries(sentFields(type)).flatMap(([field, { personal, column }], position): IdentifyingField[] =>
    personal === 'identifies' || personal === 'identifies alone'
      ? [
          {
            position,
            isText: column === 'text',
            isAlone: personal === 'identifies alone',
            problem: { field, ...erasedPerson },
          },
        ]
      : [],
  ),
);

export function hasPeople(type: UploadType): boolean {
  return identifyingFields(type).length > 0;
}

interface Remaining {
  /** Without erased people's ids, and without the other errors of their records that had already failed. */
  readonly checked: CheckedBatch;
  /** The outcomes of skipped rows. */
  readonly erased: ReadonlyMap<number, Outcome>;
}

const nothing: ReadonlyMap<number, Outcome> = new Map();

/** The response and the receipt report erased people's records without an id. */
export async function leaveOutErased(
  type: UploadType,
  checked: CheckedBatch,
  check: IdCheck,
): Promise<Remaining> {
  const fields = identifyingFields(type);
  if (check.isEmpty || fields.length === 0) return { checked, erased: nothing };
  const suspects = fields.flatMap((field) => suspectsIn(field, checked, check));
  const failedRecords = failedIn(type, checked);
  const mayBeErased = (id: string) => check.mayBeErased(id);
  const inFailed = await mapInTurns(failedRecords, (record) => idsInFailed(record).filter(mayBeErased));
  const erasedIds = await check.erasedAmong(new Set([...suspects.map(({ id }) => id), ...inFailed.flat()]));
  if (erasedIds.size === 0) return { checked, erased: nothing };
  const found = suspects.filter(({ id }) => erasedIds.has(id));
  const isOfAnother = namesOwner(type, checked);
  const erased = new Map<number, Outcome>();
  for (const { row, field } of found)
    if (!erased.has(row) && !(field.isAlone && isOfAnother(row)))
      erased.set(row, failed(null, [field.problem]));
  const mentioned = found.filter(({ row }) => !erased.has(row));
  return {
    checked: await withoutFailed(withoutMentions(checked, mentioned), failedRecords, erasedIds),
    erased,
  };
}

function namesOwner(type: UploadType, { rows: { count, arrays } }: CheckedBatch): (row: number) => boolean {
  const owners = identifyingFields(type).filter(({ isAlone }) => !isAlone);
  const columns = owners.map(({ position }) => arrays[position] as Buffer);
  const rows = new IndexedRows({ count, arrays: columns });
  return (row) => columns.some((_, column) => !rows.isNullAt(column, row));
}

/** Clears ids in records of other people. */
function withoutMentions(checked: CheckedBatch, mentioned: readonly Suspect[]): CheckedBatch {
  if (mentioned.length === 0) return checked;
  const { count, arrays } = checked.rows;
  const left = [...arrays];
  for (const [position, of] of Map.groupBy(mentioned, ({ field }) => field.position))
    left[position] = replaceTexts(
      arrays[position] as Buffer,
      count,
      new Map(of.map(({ row }) => [row, null])),
    );
  return { ...checked, rows: { count, arrays: left } };
}

function failedIn(type: UploadType, { failed, failedTexts }: CheckedBatch): FailedRecord[] {
  const texts = new IndexedRows({ count: failed.length, arrays: [failedTexts] });
  return failed.map(({ id }, at) => ({
    type,
    record_id: id,
    record: texts.isNullAt(0, at) ? null : texts.textAt(0, at),
  }));
}

async function withoutFailed(
  checked: CheckedBatch,
  records: readonly FailedRecord[],
  erasedIds: ReadonlySet<string>,
): Promise<CheckedBatch> {
  const problems: readonly FieldProblem[] = [{ field: null, ...erasedPerson }];
  const left = await mapInTurns(records, (record) => withoutErased(record, erasedIds));
  const others = checked.failed.map((one, at) => (left[at] ? one : { index: one.index, id: null, problems }));
  const changed = left.flatMap((record, at) =>
    record && record !== records[at] ? [[at, record.record] as const] : [],
  );
  const failedTexts =
    changed.length === 0
      ? checked.failedTexts
      : replaceTexts(checked.failedTexts, records.length, new Map(changed));
  return { ...checked, failed: others, failedTexts };
}

export function isOfErased({
  problems,
}: {
  readonly problems: readonly { readonly code: string }[];
}): boolean {
  return problems[0]?.code === 'erased';
}

interface Suspect {
  readonly row: number;
  readonly id: string;
  readonly field: IdentifyingField;
}

/** For UUIDs, it creates strings only for values that may be an erased person's id. */
function suspectsIn(
  field: IdentifyingField,
  { rows: { count, arrays } }: CheckedBatch,
  check: IdCheck,
): Suspect[] {
  const array = arrays[field.position] as Buffer;
  const view = viewOf(array);
  const found: Suspect[] = [];
  let at = arrayHeaderBytes;
  for (let row = 0; row < count; row++) {
    const length = view.getInt32(at);
    at += 4;
    if (length < 0) continue;
    if (field.isText) {
      const id = array.toString('utf8', at, at + length);
      if (check.mayBeErased(id)) found.push({ row, id, field });
    } else if (check.mayBeErasedAt(view, at)) {
      const id = uuidsOf(
        Buffer.concat([array.subarray(0, arrayHeaderBytes), array.subarray(at - 4, at + 16)]),
        1,
      );
      found.push({ row, id: id[0] as string, field });
    }
    at += length;
  }
  return found;
}
