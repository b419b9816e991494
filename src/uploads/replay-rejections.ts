import { storeInTransaction, type Work } from '../bookkeeping/store.ts';
import { RequestError } from '../errors.ts';
import type { KnownReferences } from '../interactions/known-ids.ts';
import type { CursorSigner } from '../keys/signed-cursors.ts';
import { limits } from '../limits.ts';
import { type Client, isUnavailable, type Pool } from '../postgres/pool.ts';
import { CommitUnconfirmed } from '../postgres/transactions.ts';
import { optionalForm } from '../registry/fields.ts';
import { inOrderOfReference, type UploadType, uploadTypes } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { countRejections } from '../rejections/find-rejections.ts';
import { KindList } from '../rejections/kind-list.ts';
import { countChange, hasAllKinds, listKinds, storeKinds } from '../rejections/rejection-kinds.ts';
import {
  changeKinds,
  deleteLocked,
  kindsOfRejections,
  listIds,
  lockRejections,
  type RejectionFilter,
  type RejectionRange,
  readRejections,
  type StoredRejection,
  typesRejected,
} from '../rejections/rejections.ts';
import { settleBatchesOf, settleOrganisation } from '../rejections/unsettled-batches.ts';
import { batchAnswer, type WrittenBatch } from './answer/answer.ts';
import { notStored, type Outcome, outcomeUnknownOf } from './answer/outcome.ts';
import type { CheckedBatch } from './read/batch-builder.ts';
import type { UploadChecker } from './read/upload-checker.ts';
import { additionOf, enterBatch, storeChecked, storedOf, waitForTurn } from './store/commit-batch.ts';
import { isOfErased } from './store/leave-out-erased.ts';
import { outcomesOf } from './store/store-batch.ts';

export interface Replay {
  readonly organisationId: string;
  readonly requestId: string;
  readonly keyId: string;
  readonly startedMs: number;
  readonly filter: RejectionFilter;
  readonly cursor: string | undefined;
}

interface ReplayParts {
  readonly pool: Pool;
  readonly checker: UploadChecker;
  readonly references: KnownReferences;
  readonly signer: CursorSigner;
}

export interface Replayed {
  readonly batches: readonly ReplayedBatch[];
  /** Null if they could not be counted. */
  readonly remaining: number | null;
  /** Null when every matching rejection has been tried. */
  readonly nextCursor: string | null;
}

interface ReplayedBatch extends WrittenBatch {
  readonly type: UploadType;
}

/** A type and a rejection id, up to which everything has been tried, followed by their signature. */
const form = new RegExp(
  `^((?:${uploadTypes.join('|')})\\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\\.([0-9A-Za-z_-]{22})$`,
);

const notACursor = {
  code: 'invalid_format',
  message:
    'must be the `next_cursor` of the answer to a replay; leave it out to begin with the oldest rejection',
} as const;

export const replayCursor = optionalForm(form, notACursor, {
  description: 'the `next_cursor` of the previous replay: rejections that it tried are skipped',
});

interface Place {
  readonly type: UploadType;
  readonly after: string;
}

function placeOf(cursor: string, signer: CursorSigner): Place {
  const [type, after = ''] = signer.read(cursor, notACursor.message).split('.');
  return { type: type as UploadType, after };
}

/** Types that other types refer to come first, so that records that failed together can be fixed in one run. */
export async function replayRejections(
  parts: ReplayParts,
  replay: Replay,
  onError: (error: unknown) => void,
): Promise<Replayed> {
  const { pool } = parts;
  const { organisationId, filter, cursor } = replay;
  const from = cursor === undefined ? undefined : placeOf(cursor, parts.signer);
  const ordered = inOrderOfReference();
  const asked = ordered
    .slice(from ? ordered.indexOf(from.type) : 0)
    .filter((type) => filter.type === undefined || filter.type === type);
  await settleOrganisation(pool, organisationId);
  const types = await typesRejected(pool, organisationId, asked);
  const run = new ReplayRun(parts, replay);
  for (const type of types) {
    await run.replayType(type, type === from?.type ? from.after : firstUuid, onError);
    if (run.hasStopped) break;
  }
  // The batches are already stored, so an error here must not fail the whole replay.
  const remaining = await countRejections(pool, organisationId, filter).catch((error: unknown) => {
    onError(error);
    return null;
  });
  return { batches: run.batches, nextCursor: run.stoppedAt, remaining };
}

class ReplayRun {
  readonly batches: ReplayedBatch[] = [];
  stoppedAt: string | null = null;
  hasStopped = false;
  readonly #parts: ReplayParts;
  readonly #replay: Replay;
  readonly #deadlineMs = performance.now() + limits.replayMs;
  #received = 0;
  #batchMax: number = limits.recordsPerBatch;

  constructor(parts: ReplayParts, replay: Replay) {
    this.#parts = parts;
    this.#replay = replay;
  }

  async replayType(type: UploadType, from: string, onError: (error: unknown) => void): Promise<void> {
    for (let after: string | undefined = from; after !== undefined; ) {
      if (this.#received === limits.rejectionsPerReplayMax || performance.now() > this.#deadlineMs)
        return this.#stop(`${type}.${after}`);
      try {
        const next: string | 'busy' | undefined = await this.#replayNext(type, after);
        if (next === 'busy') return this.#stop(`${type}.${after}`);
        after = next;
      } catch (error) {
        // After a batch is stored, the replay must not fail, because the response has to report the batch.
        const isRefusal = error instanceof RequestError || isUnavailable(error);
        if (this.batches.length === 0 && isRefusal) throw error;
        onError(error);
        this.batches.push(this.#brokenOff(type, error));
        return this.#stop(`${type}.${after}`);
      }
    }
  }

  #stop(at: string): void {
    this.stoppedAt = this.#parts.signer.write(at);
    this.hasStopped = true;
  }

  /**
   * Reads and checks the records before the transaction, which would otherwise hold its locks while the check waits for
   * a thread. If a rejection has changed meanwhile, the batch is read again at half the size.
   */
  async #replayNext(type: UploadType, after: string): Promise<string | 'busy' | undefined> {
    const { organisationId, filter } = this.#replay;
    for (let attempt = 1; ; attempt++) {
      const limit = Math.min(limits.rejectionsPerReplayMax - this.#received, this.#batchMax);
      try {
        const range = { after, limit };
        const found = await listReplayable(this.#parts.pool, organisationId, { ...filter, type }, range);
        const rejections = ofOneMode(found).filter(({ record }) => record !== null);
        if (rejections.length > 0)
          await this.#storeBatch(type, rejections, await this.#check(type, rejections));
        if (attempt === 1) this.#batchMax = Math.min(2 * this.#batchMax, limits.recordsPerBatch);
        return ofOneMode(found).at(-1)?.rejection_id;
      } catch (error) {
        if (error instanceof Busy) return 'busy';
        if (!(error instanceof ChangedMeanwhile)) throw error;
        if (performance.now() > this.#deadlineMs) return 'busy';
        this.#batchMax = Math.ceil(limit / 2);
      }
    }
  }

  async #storeBatch(
    type: UploadType,
    rejections: readonly StoredRejection[],
    checked: CheckedBatch,
  ): Promise<void> {
    const { organisationId, requestId, keyId, startedMs } = this.#replay;
    const store = async (client: Client, attempt: number): Promise<Work<ReplayedBatch>> => {
      if (!(await waitForTurn(client, organisationId, type))) throw new Busy();
      await enterBatch(client, attempt, organisationId, type);
      await expectUnchanged(client, organisationId, rejections);
      const ids = rejections.map(({ record_id }) => record_id);
      const { references } = this.#parts;
      const stored = await storeChecked(client, organisationId, type, checked, references, ids);
      const outcomes = outcomesOf(stored.checked, (row) => stored.outcomes[row] as Outcome);
      const rejected = await settle(client, organisationId, type, rejections, outcomes);
      const answer = batchAnswer({
        number: this.batches.length + 1,
        requestId,
        type,
        start: this.#received,
        outcomes,
        warnings: checked.warnings,
        interactionIds: stored.interactionIds,
      });
      const operation = 'replay' as const;
      const body = { mode: null, run: null, idempotencyKey: null, bodyBytes: 0, batchCount: answer.batch };
      const head = { organisationId, requestId, operation, type, keyId, ...body };
      const receipt = { head, added: additionOf(startedMs, answer) };
      return {
        result: { status: answer.status, text: receipt.added.answer, type, counts: answer.data.counts },
        done: [{ organisationId, stored: storedOf(type, checked, stored, answer), rejected, receipt }],
      };
    };
    const batch = await storeInTransaction(this.#parts.pool, store);
    this.batches.push(batch);
    this.#received += batch.counts.received;
  }

  /** Applies an upload's limits, and runs in a worker thread if there are many records. */
  async #check(type: UploadType, rejections: readonly StoredRejection[]): Promise<CheckedBatch> {
    const { batches } = await this.#parts.checker.check({
      organisationId: this.#replay.organisationId,
      type,
      mode: rejections[0]?.mode ?? 'replace',
      body: Buffer.from(`{"records":[${rejections.map(({ record }) => record).join(',')}]}`),
      recordsMax: limits.recordsPerBatch,
      isLines: false,
      wantsHash: false,
    });
    return batches[0] as CheckedBatch;
  }

  #brokenOff(type: UploadType, error: unknown): ReplayedBatch {
    const answer = batchAnswer({
      number: this.batches.length + 1,
      requestId: this.#replay.requestId,
      type,
      start: 0,
      outcomes: [],
      warnings: [],
      broken: error instanceof CommitUnconfirmed ? outcomeUnknownOf(type) : notStored,
    });
    return { status: answer.status, text: JSON.stringify(answer), type, counts: answer.data.counts };
  }
}

/** Another replay of the type has not finished its batch in time. */
class Busy extends Error {}

/** An upload or another replay has stored one of the records, or a client has discarded it, so this replay must not. */
class ChangedMeanwhile extends Error {}

/** Up to the first one that is to be stored in another way. */
function ofOneMode(rejections: readonly StoredRejection[]): readonly StoredRejection[] {
  const other = rejections.findIndex(({ mode }) => mode !== rejections[0]?.mode);
  return other < 0 ? rejections : rejections.slice(0, other);
}

/** These records are not kept, so they cannot be replayed. */
const notKept: readonly string[] = ['record_too_large', 'nested_too_deeply'];

async function listReplayable(
  pool: Pool,
  organisationId: string,
  filter: RejectionFilter,
  range: RejectionRange,
): Promise<StoredRejection[]> {
  await settleOrganisation(pool, organisationId);
  const kinds = await listKinds(pool, organisationId, filter);
  const kindIds = kinds
    .filter(({ codes }) => !notKept.includes(codes[0] ?? ''))
    .map(({ kind_id }) => kind_id);
  const ids = await listIds(pool, organisationId, filter, kindIds, range);
  const found = await readRejections(pool, organisationId, ids, limits.replayBatchBytesMax);
  // An empty result would mean that there is nothing left to replay.
  if (found.length === 0 && ids.length > 0) throw new ChangedMeanwhile();
  return found;
}

/** No other replay changes these rejections, because replays take turns. `settle` detects removals by anything else. */
async function expectUnchanged(
  client: Client,
  organisationId: string,
  rejections: readonly StoredRejection[],
): Promise<void> {
  const ids = rejections.map(({ rejection_id }) => rejection_id);
  const kinds = await kindsOfRejections(client, organisationId, ids);
  if (rejections.some(({ rejection_id, kind_id }) => kinds.get(rejection_id) !== kind_id))
    throw new ChangedMeanwhile();
}

/** If a record failed again and its rejection is gone, another transaction has counted that. */
async function settle(
  client: Client,
  organisationId: string,
  type: UploadType,
  rejections: readonly StoredRejection[],
  outcomes: readonly Outcome[],
): Promise<Map<string, number>> {
  const changes = new Map<string, number>();
  // An upload may have stored one of the records since they were read, and removed its rejection.
  const recordIds = rejections.flatMap(({ record_id }) => record_id ?? []);
  await settleBatchesOf(client, organisationId, type, recordIds, changes);
  const kinds = new KindList(type, await hasAllKinds(client, organisationId));
  const tried = rejections.flatMap(({ rejection_id: id, kind_id }, at) => {
    const outcome = outcomes[at] as Outcome;
    const isKept = outcome.kind === 'failed' && !isOfErased(outcome);
    const newKind = isKept ? kinds.idOf(outcome.problems) : null;
    return newKind === kind_id ? [] : { id, kind: kind_id, newKind };
  });
  if (tried.length === 0) return changes;
  const idsOf = (some: typeof tried) => some.map(({ id }) => id);
  // In one statement, because with two, an upload could lock the rows in another order and cause a deadlock.
  const there = await lockRejections(client, organisationId, idsOf(tried));
  const leaving = tried.filter(({ newKind }) => newKind === null);
  if (leaving.some(({ id }) => !there.has(id))) throw new ChangedMeanwhile();
  const changed = tried.filter(({ id, newKind }) => newKind !== null && there.has(id));
  for (const { kind, newKind } of [...leaving, ...changed]) {
    countChange(changes, kind, -1);
    if (newKind !== null) countChange(changes, newKind, 1);
  }
  if (leaving.length > 0) await deleteLocked(client, organisationId, idsOf(leaving));
  if (changed.length > 0) {
    await storeKinds(client, organisationId, type, kinds.all);
    const newKinds = changed.map(({ newKind }) => newKind as string);
    await changeKinds(client, organisationId, idsOf(changed), newKinds);
  }
  return changes;
}
