import { limits } from '../limits.ts';
import { idFieldOf, type ResourceType, referencesOf, resources } from '../registry/resources.ts';
import { type Instant, instantOf } from '../registry/times.ts';
import { compileCheck, type FieldProblem, type Row, sentId } from '../registry/validate.ts';
import { type Warning, WarningCounter } from '../registry/warnings.ts';
import { uuidArray } from '../store/binary-array.ts';
import { type EncodedRows, encodeRows } from '../store/encoded-rows.ts';
import { perType } from '../store/tables.ts';

/** A record that is bad in itself. */
export interface RefusedRecord {
  readonly index: number;
  readonly id: string | null;
  readonly problems: readonly FieldProblem[];
}

/** A batch after the checks that need no database. It holds nothing of what was sent but what will be stored. */
export interface CheckedBatch {
  readonly received: number;
  readonly refused: readonly RefusedRecord[];
  /** The records that passed, and the index of each in the batch. */
  readonly rows: EncodedRows;
  readonly indices: readonly number[];
  /** The ids that they refer to, each once: an array per reference of the type. */
  readonly referenced: readonly Buffer[];
  /** A few of their own ids. */
  readonly sample: Buffer;
  /** Places in `rows`; see wavesOf. */
  readonly waves: readonly (readonly number[])[];
  readonly warnings: readonly Warning[];
}

const checkOf = perType((type) => ({
  check: compileCheck(resources[type].fields),
  idField: idFieldOf(type),
  updatedAt: Object.keys(resources[type].fields).indexOf('updated'),
  references: referencesOf(type),
}));

export function checkBatch(
  type: ResourceType,
  records: readonly unknown[],
  now: Date,
  warnings = new WarningCounter(),
): CheckedBatch {
  const { check, idField, updatedAt, references } = checkOf(type);
  const aheadFrom = instantOf(now.getTime() + limits.updatedAheadMs) ?? Number.POSITIVE_INFINITY;
  const refused: RefusedRecord[] = [];
  const indices: number[] = [];
  const rows: Row[] = [];
  for (const [index, record] of records.entries()) {
    const { row, problems } = check(record, warnings.unknownField);
    if (problems) {
      refused.push({ index, id: sentId(record, idField), problems });
      continue;
    }
    const updated = row[updatedAt] as Instant | null;
    if (updated !== null && updated > aheadFrom) warnings.updatedInFuture();
    indices.push(index);
    rows.push(row);
  }
  const ids = rows.map((row) => row[0] as string);
  const step = Math.ceil(ids.length / limits.recordsPerSample);
  const waves = wavesOf(ids);
  return {
    received: records.length,
    refused,
    rows: encodeRows(type, rows),
    indices,
    referenced: references.map(({ position }) => uuidArray(distinct(rows, position))),
    sample: uuidArray(ids.filter((_, at) => at % step === 0)),
    waves,
    warnings: [...warnings.list(), ...repeatedIds(idField, ids.length - (waves[0]?.length ?? 0))],
  };
}

/** The ids in one column, each once; a reference that is left out refers to nothing. */
function distinct(rows: readonly Row[], position: number): Set<string> {
  const ids = new Set<string>();
  for (const row of rows) {
    const id = row[position] as string | null;
    if (id !== null) ids.add(id);
  }
  return ids;
}

function repeatedIds(field: string, count: number): Warning[] {
  const message = 'came more than once in this batch; each record took effect in the order sent';
  return count > 0 ? [{ code: 'repeated_id', field, count, message }] : [];
}

/**
 * PostgreSQL's `on conflict` cannot meet one id twice in a statement, and keeping only the last would be wrong (stored
 * T5, then T3, none, T4 must end at T4). So the k-th occurrence of an id goes into the k-th wave. Nearly always there
 * is one.
 */
function wavesOf(ids: readonly string[]): number[][] {
  const waves: number[][] = [];
  const seen = new Map<string, number>();
  for (const [place, id] of ids.entries()) {
    const wave = seen.get(id) ?? 0;
    seen.set(id, wave + 1);
    if (waves[wave]) waves[wave].push(place);
    else waves[wave] = [place];
  }
  return waves;
}
