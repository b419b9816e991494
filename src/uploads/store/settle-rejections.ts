import { randomBytes } from 'node:crypto';
import { ArrayWriter, viewOf } from '../../postgres/binary/array-writer.ts';
import {
  type EncodedRows,
  idAt,
  joinArrays,
  pickElements,
  pickRows,
} from '../../postgres/binary/encoded-rows.ts';
import type { Write } from '../../postgres/pipelined-insert.ts';
import type { Client } from '../../postgres/pool.ts';
import { sentFields, type UploadType } from '../../registry/upload-types.ts';
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
import type { Outcome } from '../answer/outcome.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';
import { isOfErased } from './leave-out-erased.ts';
import { idOfRow, type StoredRows } from './store-batch.ts';

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
