import { randomUUIDv7 } from 'node:crypto';
import { limits } from '../limits.ts';
import { type Field, isUuid, optional, text } from '../registry/fields.ts';
import { type ResourceType, referencesOf, resourceTypes } from '../registry/resources.ts';
import { WarningCounter } from '../registry/warnings.ts';
import { type Client, CommitUnconfirmed, inTransaction, type Pool } from '../store/pool.ts';
import { addToReceipt, type ReceiptHead } from '../store/receipts.ts';
import { addCountChange } from '../store/record-counts.ts';
import {
  changeReasons,
  closeIfNone,
  countRejections,
  listReplayable,
  type RejectionFilter,
  type RejectionRange,
  removeSettled,
  type Settled,
  type StoredRejection,
  tryToReplay,
  typesRejected,
} from '../store/rejections.ts';
import { type BatchAnswer, batchAnswer } from './answer.ts';
import { builderOf, type CheckedBatch } from './batch-builder.ts';
import { additionOf, changeOf } from './commit-batch.ts';
import { notStored, type Outcome, outcomeUnknown } from './outcome.ts';
import { parseRecord } from './parse-body.ts';
import { reasonsOf } from './settle-rejections.ts';
import { BeginAgain, outcomesOf, retryConflicts, storeRows } from './store-batch.ts';

export interface Replay {
  readonly organisationId: string;
  readonly requestId: string;
  readonly keyId: string;
  readonly startedMs: number;
}

export interface ReplayAnswer {
  readonly request_id: string;
  /** Null where there are records of several types, or of none. */
  readonly type: ResourceType | null;
  readonly batches: readonly BatchAnswer[];
  /** How many of those asked for are among the rejections afterwards; null where the database was lost on the way. */
  readonly remaining: number | null;
  /** Where the next replay can go on; null where each of those asked for has had its turn. */
  readonly next_cursor: string | null;
}

/** A type and one of its rejections: what comes before has had its turn. */
export const replayCursor = {
  ...optional(
    text({ description: 'the `next_cursor` of the replay before: what that one tried is passed over' }),
  ),
  read(value) {
    return typeof value === 'string' && placeOf(value)
      ? value
      : { code: 'invalid_format', message: 'must be the `next_cursor` of the answer to a replay' };
  },
} satisfies Field;

interface Place {
  readonly type: ResourceType;
  readonly after: string;
}

function placeOf(cursor: string): Place | undefined {
  const [type, after, ...rest] = cursor.split('.');
  return resourceTypes.includes(type as ResourceType) && isUuid(after) && rest.length === 0
    ? { type: type as ResourceType, after }
    : undefined;
}

/** Comes before every other. */
const firstId = '00000000-0000-0000-0000-000000000000';

/**
 * Tries rejections again: what passes now is stored and leaves the list, what does not stays with its new reason. Types
 * that others refer to come first, so that what was refused together can be put right together.
 */
export async function replayRejections(
  pool: Pool,
  replay: Replay,
  filter: RejectionFilter,
  cursor: string | undefined,
  onError: (error: unknown) => void,
): Promise<ReplayAnswer> {
  const { organisationId, requestId } = replay;
  const from = cursor === undefined ? undefined : placeOf(cursor);
  const marked = new Set(await typesRejected(pool, organisationId));
  const ordered = inOrderOfReference();
  const types = ordered
    .slice(from ? ordered.indexOf(from.type) : 0)
    .filter((type) => marked.has(type) && (filter.type === undefined || filter.type === type));
  const batches: BatchAnswer[] = [];
  let next: string | null = null;
  let broken = false;
  let trying = types[0] as ResourceType;
  try {
    for (const type of types) {
      trying = type;
      const after = type === from?.type ? from.after : firstId;
      const stoppedAt = await replayType(pool, replay, { ...filter, type }, after, batches);
      next = stoppedAt === undefined ? null : `${type}.${stoppedAt}`;
      if (next !== null) break;
    }
  } catch (error) {
    // Before anything is stored the whole of it can be refused; from then on what is stored has to be told.
    if (batches.length === 0 && !(error instanceof CommitUnconfirmed)) throw error;
    onError(error);
    batches.push(brokenOff(requestId, trying, batches, error));
    broken = true;
  }
  for (const type of broken ? [] : types) await closeIfNone(pool, organisationId, type);
  const remaining = broken ? null : await countRejections(pool, organisationId, filter);
  const [type = null, ...others] = new Set(batches.map(({ data }) => data.type));
  return {
    request_id: requestId,
    type: others.length === 0 ? type : null,
    batches,
    remaining,
    next_cursor: next,
  };
}

/** Returns the last one that was tried where there is no room for more. */
async function replayType(
  pool: Pool,
  replay: Replay,
  filter: TypeFilter,
  from: string,
  batches: BatchAnswer[],
): Promise<string | undefined> {
  for (let after = from; ; ) {
    const done = batches.reduce((sum, { data }) => sum + data.counts.received, 0);
    const limit = Math.min(limits.rejectionsPerReplayMax - done, limits.recordsPerBatch);
    if (limit === 0) return after;
    const tried = await replayBatch(pool, replay, filter, { after, limit }, batches);
    if (!tried) return undefined;
    batches.push(tried.answer);
    after = tried.last;
  }
}

/** The batch at which a replay ended early: which records it would have held is not known. */
function brokenOff(
  requestId: string,
  type: ResourceType,
  before: readonly BatchAnswer[],
  error: unknown,
): BatchAnswer {
  return batchAnswer({
    number: before.length + 1,
    batchId: randomUUIDv7(),
    requestId,
    type,
    start: 0,
    outcomes: [],
    warnings: [],
    broken: error instanceof CommitUnconfirmed ? outcomeUnknown : notStored,
  });
}

type TypeFilter = RejectionFilter & { readonly type: ResourceType };

async function replayBatch(
  pool: Pool,
  replay: Replay,
  filter: TypeFilter,
  range: RejectionRange,
  before: readonly BatchAnswer[],
): Promise<{ answer: BatchAnswer; last: string } | undefined> {
  const { organisationId } = replay;
  const { type } = filter;
  return retryConflicts((mayGuess) =>
    inTransaction(pool, async (client, sendLast) => {
      if (!(await tryToReplay(client, organisationId, type))) return undefined;
      const rejections = await listReplayable(client, organisationId, filter, range);
      const last = rejections.at(-1)?.rejection_id;
      if (last === undefined) return undefined;
      const checked = checkAgain(type, rejections);
      const stored = await storeRows(client, organisationId, type, checked, mayGuess);
      const outcomes = outcomesOf(checked, (place) => stored.outcomes[place] as Outcome);
      const left = await settle(client, organisationId, type, rejections, outcomes);
      const answer = batchAnswer({
        number: before.length + 1,
        batchId: randomUUIDv7(),
        requestId: replay.requestId,
        type,
        start: before.reduce((sum, { data }) => sum + data.counts.received, 0),
        outcomes,
        warnings: checked.warnings,
        broken: undefined,
      });
      const change = { ...changeOf(type, checked, stored.outcomes, answer, -left), lastUpload: null };
      sendLast((end) => addCountChange(end, organisationId, type, change));
      const added = additionOf(replay.startedMs, answer);
      for (const statement of addToReceipt(headOf(replay, type, answer.batch), added)) sendLast(statement);
      return { answer, last };
    }),
  );
}

function checkAgain(type: ResourceType, rejections: readonly StoredRejection[]): CheckedBatch {
  const builder = builderOf(type);
  builder.start(new Date(), new WarningCounter());
  for (const { record } of rejections) builder.add(parseRecord(Buffer.from(record as string)), () => record);
  return builder.finish();
}

/** Lets go of those that did not fail, and gives the others their new reasons. Returns how many left. */
async function settle(
  client: Client,
  organisationId: string,
  type: ResourceType,
  rejections: readonly StoredRejection[],
  outcomes: readonly Outcome[],
): Promise<number> {
  const leaving: Settled[] = [];
  const staying = [];
  for (const [at, { rejection_id, record_id }] of rejections.entries()) {
    const outcome = outcomes[at] as Outcome;
    if (outcome.kind === 'failed') staying.push({ rejection_id, ...reasonsOf(outcome.problems) });
    else leaving.push({ rejection_id, record_id: outcome.kind === 'stale' ? null : record_id });
  }
  const gone =
    leaving.length > 0 ? await removeSettled(client, organisationId, type, leaving) : new Set<string>();
  // An upload stored one of them meanwhile, or somebody discarded it: what we stored of it was not ours to store.
  if (leaving.some(({ rejection_id }) => !gone.has(rejection_id))) throw new BeginAgain();
  if (staying.length > 0) await changeReasons(client, organisationId, staying);
  return gone.size;
}

function headOf(
  { organisationId, requestId, keyId }: Replay,
  type: ResourceType,
  batchCount: number,
): ReceiptHead {
  const operation = 'replay';
  return {
    organisationId,
    requestId,
    operation,
    type,
    keyId,
    idempotencyKey: null,
    bodyBytes: 0,
    batchCount,
  };
}

/** The types, each after those that it refers to. */
function inOrderOfReference(): ResourceType[] {
  const ordered = new Set<ResourceType>();
  const place = (type: ResourceType) => {
    if (ordered.has(type)) return;
    for (const reference of referencesOf(type)) if (reference.type !== type) place(reference.type);
    ordered.add(type);
  };
  for (const type of resourceTypes) place(type);
  return [...ordered];
}
