import { randomBytes } from 'node:crypto';
import type { ChangedIds } from '../../bookkeeping/store.ts';
import { type ArrayType, ArrayWriter, viewOf } from '../../postgres/binary/array-writer.ts';
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
import { uuidAfter, uuidV7Words } from '../../registry/uuid-v7.ts';
import { keepRejections, type NewRejections } from '../../rejections/keep-rejections.ts';
import { KindList } from '../../rejections/kind-list.ts';
import { recordWriter } from '../../rejections/record-json.ts';
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
import {
  type Failure,
  type Folded,
  foldRejections,
  type RecordEvent,
  type Rewritten,
} from './fold-rejections.ts';
import { hasPeople, isOfErased, leaveOutErased } from './leave-out-erased.ts';
import { lookUp, type RejectedIds } from './look-up.ts';
import { lackingIn, sentOf, withoutSent } from './sent-fields.ts';
import { lockStored, updateStored, writeLocked } from './update-stored.ts';
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
  const lacking = lackingAmong(target, rows, all);
  const asked = manyStored ? all : [...lacking.keys()];
  const compared = await compareWithStored(asked);
  for (const row of compared.absent)
    outcomes[row] = lacking.has(row) ? failed(idAt(rows, row), lacking.get(row) ?? []) : created;
  const absent = manyStored ? compared.absent : all;
  const stored = await insert(
    target,
    rows,
    absent.filter((row) => !lacking.has(row)),
  );
  const second = await compareWithStored(stored);
  beginAgainUnless(second.absent.length === 0, 'a row is neither written nor stored');
  const changed = [...compared.changed, ...second.changed].sort((a, b) => a - b);
  await update(target, rows, changed, outcomes);
  return outcomes;
}

/** The rows that can only be merged with a stored record, with the fields that they lack otherwise. */
function lackingAmong(
  { type, mode }: Target,
  rows: EncodedRows,
  asked: readonly number[],
): Map<number, FieldProblem[]> {
  const lacking = new Map<number, FieldProblem[]>();
  if (mode === 'replace') return lacking;
  for (const row of asked) {
    const problems = lackingIn(type, sentOf(rows, row));
    if (problems.length > 0) lacking.set(row, problems);
  }
  return lacking;
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
  const { client, organisationId, type, mode } = target;
  const picked = pickRows(mode === 'merge' ? withoutSent(rows) : rows, asked);
  const { rows: written } = await client.query<{ id: string }>({
    ...insertNew(type),
    values: [organisationId, ...picked.arrays, new Date()],
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
  if (target.mode === 'merge') {
    const locked = await lockStored(target, picked);
    beginAgainUnless(locked.size === picked.count, 'a row was removed before it was locked');
  }
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
  const all = allRows(rows.count);
  const ids = all.map((row) => idAt(rows, row));
  const lacking = lackingAmong(target, rows, all);
  const wholeRows = all.filter((row) => !lacking.has(row));
  const firsts = [...new Map(wholeRows.map((row) => [ids[row], row] as const).reverse()).values()].sort(
    (a, b) => a - b,
  );
  const stored = new Set((await insert(target, rows, firsts)).map((row) => ids[row]));
  const insertedIds = new Set(firsts.map((row) => ids[row]).filter((id) => !stored.has(id)));
  const toLock = all.filter((row) => !insertedIds.has(ids[row]));
  const locked = toLock.length > 0 ? await lockStored(target, pickRows(idsOf(rows), toLock)) : new Set();
  const compared = await compare(target, rows);
  const absent = new Set(compared.absent);
  beginAgainUnless(
    all.every((row) => {
      const id = ids[row] as string;
      return absent.has(row)
        ? !stored.has(id) && !insertedIds.has(id)
        : insertedIds.has(id) || locked.has(id);
    }),
    'a row was written or removed meanwhile',
  );
  const versions = new Versions(target.type, target.mode);
  const outcomes = all.map(versions.against(rows, compared, (id) => insertedIds.has(id)));
  const changedIds = [...new Set(ids.filter((_, row) => outcomes[row] === updated))];
  if (changedIds.length > 0) await writeLocked(target, versions.lastOf(changedIds, rows));
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
  const events = eventsOf(type, checked, stored.outcomes, earlier.length > 0).filter(
    (one) => !one.failure || ((one.failure.isRow || !where.isFromBrowser) && !isOfErased(one.failure)),
  );
  const { failures, rewritten, settled } =
    checked.mode === 'merge'
      ? await foldRejections(client, where, checked, events, earlier)
      : { failures: openFailures(events, earlier), rewritten: [], settled: earlier };
  await deleteSettled(client, organisationId, settled, rejected);
  if (failures.length + rewritten.length > 0)
    await keep(client, where, checked, { failures, rewritten }, rejected);
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
  { mode, rows, failed, failedIds: failedIdsArray, failedUpdated }: CheckedBatch,
  { outcomes, rejectedIds }: StoredRows,
  failedIds: ReadonlySet<string>,
): (() => Promise<EarlierRejection[]>) | undefined {
  if (rejectedIds !== 'many' && rejectedIds.size === 0) return undefined;
  // Whether a merged record settles a rejection depends on its fields, so it cannot be left for later.
  const isAskedId = (id: string) =>
    rejectedIds === 'many' ? mode === 'merge' || failedIds.has(id) : rejectedIds.has(id);
  const isAsked = (row: number) => outcomes[row]?.kind !== 'stale' && isAskedId(idAt(rows, row));
  const sent = [...outcomes.keys()].filter(isAsked);
  const bad = [...failed.keys()].filter((at) => isAskedId(failed[at]?.id ?? ''));
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
  { mode, rows }: CheckedBatch,
  { outcomes, rejectedIds }: StoredRows,
  failedIds: ReadonlySet<string>,
): readonly Write[] {
  if (rejectedIds !== 'many' || mode === 'merge') return [];
  const isLeft = (row: number) =>
    isStored(outcomes[row] as Outcome) && !(failedIds.size > 0 && failedIds.has(idAt(rows, row)));
  const left = [...outcomes.keys()].filter(isLeft);
  return noteUnsettled(organisationId, type, pickRows(idsAndUpdated(type, rows), left));
}

function idsAndUpdated(type: UploadType, { count, arrays }: EncodedRows): EncodedRows {
  const updated = Object.keys(sentFields(type)).indexOf('updated');
  return { count, arrays: [arrays[0] as Buffer, arrays[updated] as Buffer] };
}

/** In the order sent. Of what is stored, only what comes after the first failure is included, or if there was an earlier one. */
function eventsOf(
  type: UploadType,
  { mode, rows, indices, failed }: CheckedBatch,
  outcomes: readonly Outcome[],
  hasEarlier: boolean,
): RecordEvent[] {
  const events: RecordEvent[] = failed.map(({ id, index, problems }, at) => ({
    id,
    index,
    failure: { id, index, problems, at, isRow: false },
  }));
  // Before the first failure there is nothing to replace, so the id need not be decoded.
  let hasFailed = (mode === 'merge' && hasEarlier) || failed.length > 0;
  for (const [row, outcome] of outcomes.entries()) {
    const index = indices[row] as number;
    if (outcome.kind === 'failed') {
      hasFailed = true;
      const { id, problems } = outcome;
      events.push({ id, index, failure: { id, index, problems, at: row, isRow: true } });
    } else if (hasFailed && isStored(outcome)) events.push({ id: idOfRow(type, rows, row), index, row });
  }
  return events.sort((a, b) => a.index - b.index);
}

/** The last failure of each record, unless the record was stored later in the batch, or its earlier rejection is newer. */
function openFailures(events: readonly RecordEvent[], earlier: readonly EarlierRejection[]): Failure[] {
  const newer = new Set(earlier.flatMap((one) => (one.is_settled ? [] : one.record_id)));
  const last = new Map<string | RecordEvent, Failure>();
  for (const event of events) {
    if (event.id !== null && newer.has(event.id)) continue;
    last.delete(event.id ?? event);
    if (event.failure) last.set(event.id ?? event, event.failure);
  }
  return [...last.values()];
}

interface Kept {
  readonly failures: readonly Failure[];
  readonly rewritten: readonly Rewritten[];
}

async function keep(
  client: Client,
  { organisationId, type, requestId, start }: Where,
  checked: CheckedBatch,
  { failures, rewritten }: Kept,
  changes: Map<string, number>,
): Promise<void> {
  const kinds = new KindList(type, await hasAllKinds(client, organisationId));
  const kindIds = failures.map(({ problems }) => kinds.idOf(problems));
  if (failures.length > 0) await storeKinds(client, organisationId, type, kinds.all);
  for (const kindId of [...kindIds, ...rewritten.map(({ earlier }) => earlier.kind_id)])
    countChange(changes, kindId, 1);
  const rejections = newRejections({ type, requestId, start }, checked, { failures, rewritten }, kindIds);
  await keepRejections(client, organisationId, type, rejections);
}

/**
 * Their ids ascend in the order of the records, which is also the order in which they are replayed. What was rewritten gets the
 * next id, so that a replay or an erasure that has read the earlier text notices.
 */
function newRejections(
  { type, requestId, start }: Pick<Where, 'type' | 'requestId' | 'start'>,
  { mode, rows, failed, failedTexts, failedUpdated }: CheckedBatch,
  { failures, rewritten }: Kept,
  kindIdsOfFailures: readonly string[],
): NewRejections {
  const array = (type: ArrayType) => new ArrayWriter(type);
  const [rejectionIds, kindIds, requestIds] = [array('uuid'), array('uuid'), array('uuid')];
  const [indices, recordIds, updated] = [array('int4'), array('uuid'), array('timestamptz')];
  const [texts, modes] = [array('text'), array('text')];
  const bad = new IndexedRows({ count: failed.length, arrays: [failedTexts, failedUpdated] });
  const indexed = new IndexedRows(rows);
  const updatedAt = Object.keys(sentFields(type)).indexOf('updated');
  const write = recordWriter(type, rows);
  // All rejections get the same time, so that their ids are ordered by index alone.
  const nowMs = Date.now();
  const random = viewOf(randomBytes(8 * failures.length));
  const appendFolded = (folded: Folded) => {
    texts.append(folded.text);
    updated.append(folded.updated);
    modes.append(folded.mode);
  };
  for (const [number, { id, index, at, isRow, folded }] of failures.entries()) {
    const words = [random.getInt32(8 * number), random.getInt32(8 * number + 4)] as const;
    rejectionIds.appendWords(...uuidV7Words(nowMs, index, words));
    kindIds.append(kindIdsOfFailures[number] as string);
    requestIds.append(requestId);
    indices.append(start + index);
    recordIds.append(id);
    if (folded) {
      appendFolded(folded);
      continue;
    }
    const time = isRow ? updatedAt >= 0 && indexed.instantAt(updatedAt, at) : bad.instantAt(1, at);
    updated.append(time === false || time === undefined ? null : time);
    if (isRow) texts.append(write(at));
    else if (bad.isNullAt(0, at)) texts.append(null);
    else {
      const value = bad.valueAt(0, at);
      texts.appendBytes(value, 4, value.length);
    }
    modes.append(mode);
  }
  for (const { earlier, ...folded } of rewritten) {
    rejectionIds.append(uuidAfter(earlier.rejection_id));
    kindIds.append(earlier.kind_id);
    requestIds.append(earlier.request_id);
    indices.append(earlier.index);
    recordIds.append(earlier.record_id);
    appendFolded(folded);
  }
  return {
    count: failures.length + rewritten.length,
    rejectionIds: rejectionIds.finish(),
    kindIds: kindIds.finish(),
    requestIds: requestIds.finish(),
    indices: indices.finish(),
    recordIds: recordIds.finish(),
    updated: updated.finish(),
    texts: texts.finish(),
    modes: modes.finish(),
  };
}
