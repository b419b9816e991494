import { randomBytes } from 'node:crypto';
import type { ChangedIds } from '../../bookkeeping/store.ts';
import { ArrayWriter, viewOf } from '../../postgres/binary/array-writer.ts';
import {
  type EncodedRows,
  IndexedRows,
  idAt,
  joinArrays,
  pickElements,
  pickRows,
  uuidsOf,
} from '../../postgres/binary/encoded-rows.ts';
import type { Write } from '../../postgres/pipelined-insert.ts';
import type { Client } from '../../postgres/pool.ts';
import { beginAgainUnless } from '../../postgres/transactions.ts';
import { insertRows, tableOf } from '../../records/tables.ts';
import type { FieldProblem } from '../../registry/fields.ts';
import { perType, referenceNotFound } from '../../registry/resources.ts';
import { sentFields, sentReferencesOf, type UploadType } from '../../registry/upload-types.ts';
import { uuidV7Words } from '../../registry/uuid-v7.ts';
import { keepFailed, keepMissing, type NewRejections } from '../../rejections/keep-rejections.ts';
import { KindList, type Problems } from '../../rejections/kind-list.ts';
import { countChange, hasAllKinds, storeKinds } from '../../rejections/rejection-kinds.ts';
import {
  deleteSettled,
  type EarlierRejection,
  findRejectionsOf,
  lockFound,
} from '../../rejections/rejections.ts';
import { noteUnsettled, settleBatchesOf } from '../../rejections/unsettled-batches.ts';
import type { Suppressions } from '../../suppression/suppressions.ts';
import { created, failed, type Outcome, stale, unchanged, updated } from '../answer/outcome.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';
import { compare, type Target } from './compare.ts';
import { hasPeople, isOfErased, leaveOutErased } from './leave-out-erased.ts';
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

interface Where {
  readonly organisationId: string;
  readonly type: UploadType;
  readonly requestId: string;
  readonly start: number;
  /** Only records with missing references are kept for a browser key. */
  readonly isFromBrowser?: boolean;
}

interface Settled {
  readonly rejected: Map<string, number>;
  readonly writes: readonly Write[];
}

/** A failed record's rejection replaces its earlier one, unless that belongs to a newer version. */
export async function settleRejections(client: Client, where: Where, stored: StoredRows): Promise<Settled> {
  const { checked } = stored;
  const { organisationId, type } = where;
  const rejected = new Map<string, number>();
  const failedIds = idsThatFailed(checked, stored.outcomes);
  await settleBatchesOf(client, organisationId, type, [...failedIds], rejected);
  const find = findEarlier(client, where, checked, stored, failedIds);
  const earlier = find ? await lockFound(client, organisationId, find) : [];
  await deleteSettled(client, organisationId, earlier, rejected);
  const kept = new Set(earlier.filter(({ is_settled }) => !is_settled).map(({ record_id }) => record_id));
  const failures = openFailures(type, checked, stored.outcomes)
    .filter(({ isRow, problems }) => (isRow || !where.isFromBrowser) && !isOfErased({ problems }))
    .filter(({ id }) => id === null || !kept.has(id));
  if (failures.length > 0) await keep(client, where, checked, failures, rejected);
  return { rejected, writes: leaveForLater(where, checked, stored, failedIds) };
}

const isStored = ({ kind }: Outcome) => kind !== 'failed' && kind !== 'stale';

function idsThatFailed({ failed }: CheckedBatch, outcomes: readonly Outcome[]): ReadonlySet<string> {
  const rows = outcomes.flatMap((outcome) => (outcome.kind === 'failed' ? [outcome.id] : []));
  const ids = [...failed.map(({ id }) => id), ...rows];
  return new Set(ids.filter((id) => id !== null));
}

/** If a type has too many rejections to know their records, only failed records are looked up. */
function findEarlier(
  client: Client,
  { organisationId, type }: Where,
  { rows, failed, failedIds: failedIdsArray, failedUpdated }: CheckedBatch,
  { outcomes, rejectedIds }: StoredRows,
  failedIds: ReadonlySet<string>,
): (() => Promise<EarlierRejection[]>) | undefined {
  const asked = rejectedIds === 'many' ? failedIds : rejectedIds;
  if (asked.size === 0) return undefined;
  const isAsked = (row: number) => outcomes[row]?.kind !== 'stale' && asked.has(idAt(rows, row));
  const sent = [...outcomes.keys()].filter(isAsked);
  const bad = [...failed.keys()].filter((at) => asked.has(failed[at]?.id ?? ''));
  if (sent.length + bad.length === 0) return undefined;
  const picked = pickRows(idsAndUpdated(type, rows), sent);
  const arrays = [
    joinArrays(picked.arrays[0] as Buffer, pickElements(failedIdsArray, bad)),
    joinArrays(picked.arrays[1] as Buffer, pickElements(failedUpdated, bad)),
  ];
  return () => findRejectionsOf(client, organisationId, type, { count: sent.length + bad.length, arrays });
}

function leaveForLater(
  { organisationId, type }: Where,
  { rows }: CheckedBatch,
  { outcomes, rejectedIds }: StoredRows,
  failedIds: ReadonlySet<string>,
): readonly Write[] {
  if (rejectedIds !== 'many') return [];
  const isLeft = (row: number) =>
    isStored(outcomes[row] as Outcome) && !(failedIds.size > 0 && failedIds.has(idAt(rows, row)));
  const left = [...outcomes.keys()].filter(isLeft);
  return noteUnsettled(organisationId, type, pickRows(idsAndUpdated(type, rows), left));
}

function idsAndUpdated(type: UploadType, { count, arrays }: EncodedRows): EncodedRows {
  const updated = Object.keys(sentFields(type)).indexOf('updated');
  return { count, arrays: [arrays[0] as Buffer, arrays[updated] as Buffer] };
}

interface Failure {
  readonly id: string | null;
  readonly index: number;
  readonly problems: Problems;
  /** The position among the failed records or, if a reference is missing, the row. */
  readonly at: number;
  readonly isRow: boolean;
}

/** The last failure of each record, unless the record was stored later in the batch. */
function openFailures(
  type: UploadType,
  { rows, indices, failed }: CheckedBatch,
  outcomes: readonly Outcome[],
): Failure[] {
  const storedLast = new Map<string, number>();
  const last = new Map<string, Failure>();
  const withoutId: Failure[] = [];
  const take = (failure: Failure) => {
    if (failure.id === null) withoutId.push(failure);
    else if ((last.get(failure.id)?.index ?? -1) < failure.index) last.set(failure.id, failure);
  };
  for (const [at, { id, index, problems }] of failed.entries())
    take({ id, index, problems, at, isRow: false });
  for (const [row, outcome] of outcomes.entries()) {
    const index = indices[row] as number;
    if (outcome.kind === 'failed')
      take({ id: outcome.id, index, problems: outcome.problems, at: row, isRow: true });
    // Before the first failure there is nothing to replace, so the id need not be decoded.
    else if (isStored(outcome) && failed.length + last.size > 0) {
      const id = idOfRow(type, rows, row);
      if (id !== null) storedLast.set(id, index);
    }
  }
  const open = [...last.values()].filter(({ id, index }) => (storedLast.get(id as string) ?? -1) < index);
  return [...withoutId, ...open].sort((a, b) => a.index - b.index);
}

async function keep(
  client: Client,
  { organisationId, type, requestId, start }: Where,
  { rows, failedTexts, failedUpdated }: CheckedBatch,
  failures: readonly Failure[],
  changes: Map<string, number>,
): Promise<void> {
  // All rejections get the same time, so that their ids are ordered by index alone.
  const nowMs = Date.now();
  const kinds = new KindList(type, await hasAllKinds(client, organisationId));
  const withKinds = failures.map((failure) => ({ ...failure, kindId: kinds.idOf(failure.problems) }));
  await storeKinds(client, organisationId, type, kinds.all);
  for (const { kindId } of withKinds) countChange(changes, kindId, 1);
  const bad = withKinds.filter(({ isRow }) => !isRow);
  if (bad.length > 0) {
    const wanted = bad.map(({ at }) => at);
    const kept = { texts: pickElements(failedTexts, wanted), updated: pickElements(failedUpdated, wanted) };
    await keepFailed(client, organisationId, type, requestId, kept, newRejections(start, nowMs, bad));
  }
  const missing = withKinds.filter(({ isRow }) => isRow);
  if (missing.length > 0) {
    const picked: EncodedRows = pickRows(
      rows,
      missing.map(({ at }) => at),
    );
    await keepMissing(client, organisationId, type, requestId, picked, newRejections(start, nowMs, missing));
  }
}

/** Their ids ascend in the order of the records, which is also the order in which they are replayed. */
function newRejections(
  start: number,
  nowMs: number,
  failures: readonly (Failure & { readonly kindId: string })[],
): NewRejections {
  const ids = new ArrayWriter('uuid');
  const kindIds = new ArrayWriter('uuid');
  const indices = new ArrayWriter('int4');
  const recordIds = new ArrayWriter('uuid');
  const random = viewOf(randomBytes(8 * failures.length));
  for (const [at, { id, index, kindId }] of failures.entries()) {
    ids.appendWords(...uuidV7Words(nowMs, index, [random.getInt32(8 * at), random.getInt32(8 * at + 4)]));
    kindIds.append(kindId);
    indices.append(start + index);
    recordIds.append(id);
  }
  return {
    count: failures.length,
    rejectionIds: ids.finish(),
    kindIds: kindIds.finish(),
    indices: indices.finish(),
    recordIds: recordIds.finish(),
  };
}
