import { arrayHeaderBytes, viewOf } from '../../postgres/binary/array-writer.ts';
import { IndexedRows, uuidsOf } from '../../postgres/binary/encoded-rows.ts';
import { erasedPerson } from '../../registry/personal.ts';
import { perType } from '../../registry/resources.ts';
import { sentFields, type UploadType } from '../../registry/upload-types.ts';
import type { FieldProblem } from '../../registry/validate.ts';
import { idsInText } from '../../suppression/ids-in-text.ts';
import type { IdCheck } from '../../suppression/suppressions.ts';
import { failed, type Outcome } from '../answer/outcome.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';

interface IdentifyingField {
  readonly position: number;
  readonly isText: boolean;
  readonly problem: FieldProblem;
}

const identifyingFields = perType((type: UploadType) =>
  Object.entries(sentFields(type)).flatMap(([field, { personal, column }], position): IdentifyingField[] =>
    personal === 'identifies'
      ? [{ position, isText: column === 'text', problem: { field, ...erasedPerson } }]
      : [],
  ),
);

export function hasPeople(type: UploadType): boolean {
  return identifyingFields(type).length > 0;
}

/** A batch without erased people's records. */
export interface Remaining {
  /** The batch without the ids and errors of erased people's records that had already failed. */
  readonly checked: CheckedBatch;
  /** The outcome of each row that is skipped because its person was erased. */
  readonly erased: ReadonlyMap<number, Outcome>;
}

const nothing: ReadonlyMap<number, Outcome> = new Map();

/** Finds erased people's records in a batch. The response and the receipt report these records without an id. */
export async function leaveOutErased(
  type: UploadType,
  checked: CheckedBatch,
  check: IdCheck,
): Promise<Remaining> {
  const fields = identifyingFields(type);
  if (check.isEmpty || fields.length === 0) return { checked, erased: nothing };
  const suspects = fields.flatMap((field) => suspectsIn(field, checked, check));
  const texts = new IndexedRows({ count: checked.failed.length, arrays: [checked.failedTexts] });
  const idsOfFailed = checked.failed.map(({ id }, at) => {
    const text = texts.textAt(0, at);
    return [...(id === null ? [] : [id]), ...(text === '' ? [] : idsInText(type, text))];
  });
  const erasedIds = await check.erasedAmong(
    new Set([...suspects.map(({ id }) => id), ...idsOfFailed.flat()]),
  );
  if (erasedIds.size === 0) return { checked, erased: nothing };
  const erased = new Map<number, Outcome>();
  for (const { row, id, problem } of suspects)
    if (erasedIds.has(id) && !erased.has(row)) erased.set(row, failed(null, [problem]));
  const isErased = (at: number) => idsOfFailed[at]?.some((id) => erasedIds.has(id));
  const problems: readonly FieldProblem[] = [{ field: null, ...erasedPerson }];
  const others = checked.failed.map((one, at) =>
    isErased(at) ? { index: one.index, id: null, problems } : one,
  );
  return { checked: { ...checked, failed: others }, erased };
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
  readonly problem: FieldProblem;
}

/**
 * Returns the rows whose value in a field may be an erased person's id. For UUIDs, it creates strings only for those
 * values.
 */
function suspectsIn(
  { position, isText, problem }: IdentifyingField,
  { rows: { count, arrays } }: CheckedBatch,
  check: IdCheck,
): Suspect[] {
  const array = arrays[position] as Buffer;
  const view = viewOf(array);
  const found: Suspect[] = [];
  let at = arrayHeaderBytes;
  for (let row = 0; row < count; row++) {
    const length = view.getInt32(at);
    at += 4;
    if (length < 0) continue;
    if (isText) {
      const id = array.toString('utf8', at, at + length);
      if (check.mayBeErased(id)) found.push({ row, id, problem });
    } else if (check.mayBeErasedAt(view, at)) {
      const id = uuidsOf(
        Buffer.concat([array.subarray(0, arrayHeaderBytes), array.subarray(at - 4, at + 16)]),
        1,
      );
      found.push({ row, id: id[0] as string, problem });
    }
    at += length;
  }
  return found;
}
