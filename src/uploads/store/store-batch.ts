import type { ChangedIds } from '../../bookkeeping/store.ts';
import {
  type EncodedRows,
  IndexedRows,
  idAt,
  pickRows,
  uuidsOf,
} from '../../postgres/binary/encoded-rows.ts';
import { beginAgainUnless } from '../../postgres/transactions.ts';
import { insertRows, tableOf } from '../../records/tables.ts';
import { perType, referenceNotFound } from '../../registry/resources.ts';
import { sentReferencesOf, type UploadType } from '../../registry/upload-types.ts';
import type { FieldProblem } from '../../registry/validate.ts';
import type { Suppressions } from '../../suppression/suppressions.ts';
import { created, failed, type Outcome, stale, unchanged, updated } from '../answer/outcome.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';
import { compare, type Target } from './compare.ts';
import { hasPeople, leaveOutErased } from './leave-out-erased.ts';
import { lookUp, type RejectedIds } from './look-up.ts';
import { lockStored, replaceLocked, updateStored } from './update-stored.ts';
import { Versions } from './versions.ts';

export function outcomesOf(batch: CheckedBatch, outcomeOf: (row: number) => Outcome): Outcome[] {
  const outcomes: Outcome[] = new Array(batch.received);
  for (const { index, id, problems } of batch.failed) outcomes[index] = failed(id, problems);
  for (const [row, index] of batch.indices.entries()) outcomes[index] = outcomeOf(row);
  return outcomes;
}

export interface StoredRows {
  readonly outcomes: readonly Outcome[];
  readonly changed: ChangedIds;
  readonly rejectedIds: RejectedIds;
  readonly checked: CheckedBatch;
  /** The id of each interaction by its index, or null if it failed. Undefined for records. */
  readonly interactionIds?: readonly (string | null)[];
}

/**
 * Inserts new rows before it updates stored ones, both in id order, as every transaction does. So no two can deadlock:
 * while inserting, a transaction holds no lock on a row that was stored before, and all updates queue in the same
 * order.
 */
export async function storeRows(
  target: Target,
  sent: CheckedBatch,
  suppressions: Suppressions,
): Promise<StoredRows> {
  const { outcomes, checked, manyStored, rejectedIds } = await checkRows(target, sent, suppressions);
  const { rows, hasRepeatedIds } = checked;
  const good = allRows(rows.count).filter((row) => outcomes[row] === undefined);
  if (good.length > 0) {
    const picked = pickRows(rows, good);
    const stored = hasRepeatedIds
      ? await storeRepeated(target, picked)
      : await storeDistinct(target, picked, manyStored);
    for (const [position, row] of good.entries()) outcomes[row] = stored[position] as Outcome;
  }
  return { outcomes, changed: changedAmong(rows, outcomes), rejectedIds, checked };
}

/** Gives outcomes to the rows that may not be stored, because of a missing reference or an erased person. */
export async function checkRows(target: Target, sent: CheckedBatch, suppressions: Suppressions) {
  const { client, organisationId, type } = target;
  const { missing, manyStored, rejectedIds, suppressionsVersion } = await lookUp(target, sent);
  const version = hasPeople(type) ? suppressionsVersion : 0;
  const check = await suppressions.check(client, organisationId, version);
  const { checked, erased } = await leaveOutErased(type, sent, check);
  const outcomes: Outcome[] = new Array(checked.rows.count);
  failMissing(type, checked.rows, missing, outcomes);
  for (const [row, outcome] of erased) outcomes[row] = outcome;
  return { outcomes, checked, manyStored, rejectedIds };
}

function changedAmong(rows: EncodedRows, outcomes: readonly Outcome[]): ChangedIds {
  const isWritten = (row: number) => outcomes[row] === created || outcomes[row] === updated;
  const { count, arrays } = pickRows(idsOf(rows), allRows(rows.count).filter(isWritten));
  return { count, ids: arrays[0] as Buffer };
}

async function storeDistinct(target: Target, rows: EncodedRows, manyStored: boolean): Promise<Outcome[]> {
  const outcomes: Outcome[] = new Array(rows.count).fill(created);
  const compareWithStored = async (asked: readonly number[]) => {
    const compared = await compare(target, pickRows(rows, asked));
    for (const row of asked) outcomes[row] = unchanged;
    for (const at of compared.stale) outcomes[asked[at] as number] = stale;
    return { absent: compared.absent.map(of(asked)), changed: compared.changed.map(of(asked)) };
  };
  // Comparing costs a lookup for each new row, and inserting costs one for each stored row, so the sample decides.
  const all = allRows(rows.count);
  const first = manyStored ? await compareWithStored(all) : { absent: all, changed: [] };
  for (const row of first.absent) outcomes[row] = created;
  const stored = await insert(target, rows, first.absent);
  const second = await compareWithStored(stored);
  beginAgainUnless(second.absent.length === 0, 'a row is neither written nor stored');
  const changed = [...first.changed, ...second.changed].sort((a, b) => a - b);
  await update(target, rows, changed, outcomes);
  return outcomes;
}

/** Skips stored records without locking or logging them. */
const insertNew = perType((type) => ({
  name: `insert new ${type}`,
  text: `${insertRows(tableOf(type))}
      on conflict do nothing returning ${tableOf(type).id} as id`,
}));

/** Returns the rows that were already stored. */
async function insert(target: Target, rows: EncodedRows, asked: readonly number[]): Promise<number[]> {
  if (asked.length === 0) return [];
  const { client, organisationId, type } = target;
  const { rows: written } = await client.query<{ id: string }>({
    ...insertNew(type),
    values: [organisationId, ...pickRows(rows, asked).arrays, new Date()],
  });
  if (written.length === asked.length) return [];
  const ids = new Set(written.map(({ id }) => id));
  return asked.filter((row) => !ids.has(idAt(rows, row)));
}

/** A row that is not updated must be stale, because a newer version is stored. */
async function update(
  target: Target,
  rows: EncodedRows,
  changed: readonly number[],
  outcomes: Outcome[],
): Promise<void> {
  if (changed.length === 0) return;
  const picked = pickRows(rows, changed);
  for (const row of changed) outcomes[row] = updated;
  if (await updateStored(target, picked)) return;
  const now = await compare(target, picked);
  beginAgainUnless(now.absent.length + now.changed.length === 0, 'a row is neither written nor stale');
  for (const at of now.stale) outcomes[changed[at] as number] = stale;
}

/**
 * Has the result of storing the rows one after another. Once the first row with each id is inserted and every id is
 * locked, each row's outcome can be computed here, and only the last version of an id has to be written.
 */
async function storeRepeated(target: Target, rows: EncodedRows): Promise<Outcome[]> {
  const ids = allRows(rows.count).map((row) => idAt(rows, row));
  const firsts = [...new Map(ids.map((id, row) => [id, row] as const).reverse()).values()].sort(
    (a, b) => a - b,
  );
  const stored = await insert(target, rows, firsts);
  const inserted = new Set(firsts);
  for (const row of stored) inserted.delete(row);
  if (stored.length > 0) await lockStored(target, pickRows(idsOf(rows), stored));
  const compared = await compare(target, rows);
  beginAgainUnless(compared.absent.length === 0, 'a row is neither written nor stored');
  const againstStored: Outcome[] = new Array(rows.count).fill(unchanged);
  for (const row of compared.changed) againstStored[row] = updated;
  for (const row of compared.stale) againstStored[row] = stale;
  for (const row of inserted) againstStored[row] = created;
  const versions = new Versions(target.type);
  const indexed = new IndexedRows(rows);
  const outcomes = ids.map((id, row) =>
    versions.apply(id, { rows: indexed, row }, againstStored[row] as Outcome),
  );
  const changedIds = new Set(ids.filter((_, row) => outcomes[row] === updated));
  const written = [...changedIds].map((id) => versions.lastOf(id)?.row as number).sort((a, b) => a - b);
  if (written.length > 0) await replaceLocked(target, pickRows(rows, written));
  return outcomes;
}

function idsOf({ count, arrays }: EncodedRows): EncodedRows {
  return { count, arrays: arrays.slice(0, 1) };
}

function allRows(count: number): number[] {
  return Array.from({ length: count }, (_, row) => row);
}

function of(picked: readonly number[]): (at: number) => number {
  return (at) => picked[at] as number;
}

const referencesOfType = perType((type: UploadType) =>
  sentReferencesOf(type).map(({ field, position, where, type: referenced }) => ({
    position,
    where,
    problem: { field, ...referenceNotFound(referenced) } satisfies FieldProblem,
  })),
);

/** Null for interactions, which are sent without an id. */
export function idOfRow(type: UploadType, rows: EncodedRows, row: number): string | null {
  return type === 'interactions' ? null : idAt(rows, row);
}

export function failMissing(
  type: UploadType,
  rows: EncodedRows,
  missing: readonly ReadonlySet<string>[],
  outcomes: Outcome[],
): void {
  if (missing.every((ids) => ids.size === 0)) return;
  const indexed = new IndexedRows(rows);
  const columns = referencesOfType(type).map(({ position }) =>
    uuidsOf(rows.arrays[position] as Buffer, rows.count),
  );
  for (let row = 0; row < rows.count; row++) {
    const problems = referencesOfType(type).flatMap(({ problem, where }, at) => {
      const id = columns[at]?.[row] ?? null;
      if (id === null || !missing[at]?.has(id)) return [];
      return where && indexed.textAt(where.position, row) !== where.value ? [] : [problem];
    });
    if (problems.length > 0) outcomes[row] = failed(idOfRow(type, rows, row), problems);
  }
}
