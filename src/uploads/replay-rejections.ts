import { randomUUIDv7 } from 'node:crypto';
import { addChange } from '../changes/add-change.ts';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { type Client, isUnavailable, type Pool } from '../postgres/pool.ts';
import { CommitUnconfirmed, inTransaction, retryConflicts } from '../postgres/transactions.ts';
import { addToReceipt, type ReceiptHead } from '../receipts/receipts.ts';
import { addCountChange } from '../records/record-counts.ts';
import { type Field, optional, text } from '../registry/fields.ts';
import { sentReferencesOf, type UploadType, uploadTypes } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { countRejections } from '../rejections/find-rejections.ts';
import { KindList } from '../rejections/kind-list.ts';
import {
  addKindChanges,
  countChange,
  hasAllKinds,
  listKinds,
  storeKinds,
} from '../rejections/rejection-kinds.ts';
import {
  changeKinds,
  deleteLocked,
  listIds,
  lockRejections,
  type RejectionFilter,
  type RejectionRange,
  readRejections,
  type StoredRejection,
  typesRejected,
} from '../rejections/rejections.ts';
import type { CursorSigner } from '../signed-cursors.ts';
import { batchAnswer, type WrittenBatch } from './answer.ts';
import { notStored, type Outcome, outcomeUnknownOf } from './outcome.ts';
import type { CheckedBatch } from './read/batch-builder.ts';
import type { UploadChecker } from './read/upload-checker.ts';
import { enterBatch, waitForTurn } from './store/batch-locks.ts';
import { additionOf, changeOf, storeChecked } from './store/commit-batch.ts';
import { outcomesOf } from './store/store-batch.ts';
import type { KnownReferences } from './store/store-interactions.ts';

export interface Replay {
  readonly organisationId: string;
  readonly requestId: string;
  readonly keyId: string;
  readonly startedMs: number;
  readonly filter: RejectionFilter;
  readonly cursor: string | undefined;
}

export interface ReplayParts {
  readonly pool: Pool;
  readonly checker: UploadChecker;
  readonly references: KnownReferences;
  readonly signer: CursorSigner;
}

export interface Replayed {
  readonly batches: readonly ReplayedBatch[];
  /** How many matching rejections are left; null if they could not be counted. */
  readonly remaining: number | null;
  /** Where the next replay continues; null when every matching rejection has been tried. */
  readonly nextCursor: string | null;
}

export interface ReplayedBatch extends WrittenBatch {
  readonly type: UploadType;
}

/** A type and the id of a rejection: everything up to it has been tried. And their signature. */
const form = new RegExp(
  `^((?:${uploadTypes.join('|')})\\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\\.([0-9A-Za-z_-]{22})$`,
);

export const replayCursor = {
  ...optional({
    ...text(),
    schema: {
      type: 'string',
      pattern: form.source,
      description: 'the `next_cursor` of the replay before: what that one tried is passed over',
    },
  }),
  read(value) {
    return typeof value === 'string' && form.test(value) ? value : notACursor;
  },
} satisfies Field;

const notACursor = {
  code: 'invalid_format',
  message:
    'must be the `next_cursor` of the answer to a replay; leave it out to begin with the oldest rejection',
} as const;

interface Place {
  readonly type: UploadType;
  readonly after: string;
}

function placeOf(cursor: string, signer: CursorSigner): Place {
  const [, place = '', signature = ''] = form.exec(cursor) ?? [];
  if (!signer.isSigned(place, signature))
    throw new RequestError('invalid_request', { details: [{ field: 'cursor', ...notACursor }] });
  const [type, after = ''] = place.split('.');
  return { type: type as UploadType, after };
}

/**
 * Replays rejections: those that pass now are stored and removed, the others stay with their new errors. Types that
 * others refer to come first, so that records which failed together can be repaired in one run.
 */
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
  const types = await typesRejected(pool, organisationId, asked);
  const run = new ReplayRun(parts, replay);
  for (const type of types) {
    await run.replayType(type, type === from?.type ? from.after : firstUuid, onError);
    if (run.hasStopped) break;
  }
  // Batches are stored by now: an error here must not make the replay look as if it had failed.
  const remaining = await countRejections(pool, organisationId, filter).catch((error: unknown) => {
    onError(error);
    return null;
  });
  return { batches: run.batches, nextCursor: run.stoppedAt, remaining };
}

/** One replay request, batch by batch. */
class ReplayRun {
  readonly batches: ReplayedBatch[] = [];
  /** Set if it stopped early: where to continue. */
  stoppedAt: string | null = null;
  hasStopped = false;
  readonly #parts: ReplayParts;
  readonly #replay: Replay;
  readonly #deadlineMs = performance.now() + limits.replayMs;
  #received = 0;

  constructor(parts: ReplayParts, replay: Replay) {
    this.#parts = parts;
    this.#replay = replay;
  }

  /** Replays the rejections of a type after the given id. */
  async replayType(type: UploadType, from: string, onError: (error: unknown) => void): Promise<void> {
    for (let after: string | undefined = from; after !== undefined; ) {
      if (this.#received === limits.rejectionsPerReplayMax || performance.now() > this.#deadlineMs)
        return this.#stop(`${type}.${after}`);
      try {
        const next: string | 'busy' | undefined = await this.#replayNext(type, after);
        if (next === 'busy') return this.#stop(`${type}.${after}`);
        after = next;
      } catch (error) {
        // While nothing is stored, the whole replay can fail; afterwards the answer must report the stored batches.
        const isRefusal = error instanceof RequestError || isUnavailable(error);
        if (this.batches.length === 0 && isRefusal) throw error;
        onError(error);
        this.batches.push(this.#brokenOff(type, error));
        return this.#stop(`${type}.${after}`);
      }
    }
  }

  #stop(at: string): void {
    this.stoppedAt = `${at}.${this.#parts.signer.sign(at)}`;
    this.hasStopped = true;
  }

  /**
   * Replays the next batch and returns the last id tried. An upload may remove one of the rejections before the batch
   * commits; the batch is then retried with half as many.
   */
  async #replayNext(type: UploadType, after: string): Promise<string | 'busy' | undefined> {
    const most = Math.min(limits.rejectionsPerReplayMax - this.#received, limits.recordsPerBatch);
    for (let limit = most; ; limit = Math.ceil(limit / 2)) {
      try {
        return await retryConflicts((attempt) => this.#replayBatch(type, after, limit, attempt));
      } catch (error) {
        if (!(error instanceof LeftMeanwhile) || limit === 1) throw error;
      }
    }
  }

  async #replayBatch(
    type: UploadType,
    after: string,
    limit: number,
    attempt: number,
  ): Promise<string | 'busy' | undefined> {
    const { organisationId, requestId, startedMs, filter } = this.#replay;
    const made = await inTransaction(this.#parts.pool, async (client, sendLast) => {
      if (!(await waitForTurn(client, organisationId, type))) throw new Busy();
      await enterBatch(client, attempt, organisationId, type);
      const found = await listReplayable(client, organisationId, { ...filter, type }, { after, limit });
      const last = found.at(-1)?.rejection_id;
      if (last === undefined) return undefined;
      const rejections = found.filter(({ record }) => record !== null);
      if (rejections.length === 0) return { batch: undefined, last };
      const checked = await this.#check(type, rejections);
      const ids = rejections.map(({ record_id }) => record_id);
      const { references } = this.#parts;
      const stored = await storeChecked(client, organisationId, type, checked, references, ids);
      const outcomes = outcomesOf(checked, (row) => stored.outcomes[row] as Outcome);
      const rejected = await settle(client, organisationId, type, rejections, outcomes);
      sendLast((end) => addKindChanges(end, organisationId, rejected));
      const { changed } = stored;
      if (changed.count > 0) sendLast((end) => addChange(end, { organisationId, type, ...changed }));
      const answer = batchAnswer({
        number: this.batches.length + 1,
        batchId: randomUUIDv7(),
        requestId,
        type,
        start: this.#received,
        outcomes,
        warnings: checked.warnings,
        interactionIds: stored.interactionIds,
        broken: undefined,
      });
      const change = changeOf(type, checked, stored.outcomes, answer);
      sendLast((end) => addCountChange(end, { organisationId, type, ...change }));
      const added = additionOf(startedMs, answer);
      for (const statement of addToReceipt(headOf(this.#replay, type, answer.batch), added))
        sendLast(statement);
      const batch = { status: answer.status, text: added.answer, type, counts: answer.data.counts };
      return { batch, last };
    }).catch((error: unknown) => {
      if (error instanceof Busy) return 'busy' as const;
      throw error;
    });
    if (made === undefined || made === 'busy') return made;
    if (made.batch) {
      this.batches.push(made.batch);
      this.#received += made.batch.counts.received;
    }
    return made.last;
  }

  /** Checks the records as an upload would: the same limits, and a worker thread if there are many. */
  async #check(type: UploadType, rejections: readonly StoredRejection[]): Promise<CheckedBatch> {
    const { batches } = await this.#parts.checker.check({
      organisationId: this.#replay.organisationId,
      type,
      body: Buffer.from(`{"records":[${rejections.map(({ record }) => record).join(',')}]}`),
      recordsMax: limits.recordsPerBatch,
      isLines: false,
      wantsHash: false,
    });
    return batches[0] as CheckedBatch;
  }

  /** The batch at which a replay stopped early; its records are unknown. */
  #brokenOff(type: UploadType, error: unknown): ReplayedBatch {
    const answer = batchAnswer({
      number: this.batches.length + 1,
      batchId: randomUUIDv7(),
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

/** Another replay of the type is running and does not finish its batch. */
class Busy extends Error {}

/** An upload stored one of the records meanwhile, or a client discarded it: this replay must not store it. */
class LeftMeanwhile extends Error {}

/** Records with these codes are not kept, so they cannot be replayed. */
const notKept: readonly string[] = ['record_too_large', 'nested_too_deeply'];

/** The next rejections that can be replayed, up to `limit` or a total size in bytes. */
async function listReplayable(
  client: Client,
  organisationId: string,
  filter: RejectionFilter,
  range: RejectionRange,
): Promise<StoredRejection[]> {
  const kinds = await listKinds(client, organisationId, filter);
  const kindIds = kinds
    .filter(({ codes }) => !notKept.includes(codes[0] ?? ''))
    .map(({ kind_id }) => kind_id);
  const ids = await listIds(client, organisationId, filter, kindIds, range);
  return readRejections(client, organisationId, ids, limits.replayBatchBytesMax);
}

/**
 * Deletes the rejections whose records did not fail and gives the others their new errors. Returns the change in count
 * of each kind. A rejection that failed again may be gone meanwhile: whoever removed it has counted that.
 */
async function settle(
  client: Client,
  organisationId: string,
  type: UploadType,
  rejections: readonly StoredRejection[],
  outcomes: readonly Outcome[],
): Promise<Map<string, number>> {
  const changes = new Map<string, number>();
  const kinds = new KindList(type, await hasAllKinds(client, organisationId));
  const tried = rejections.flatMap(({ rejection_id: id, kind_id }, at) => {
    const outcome = outcomes[at] as Outcome;
    const newKind = outcome.kind === 'failed' ? kinds.idOf(outcome.problems) : null;
    return newKind === kind_id ? [] : { id, kind: kind_id, newKind };
  });
  if (tried.length === 0) return changes;
  // Locks all in one statement: with two, an upload could lock them in another order and deadlock.
  const there = await lockRejections(
    client,
    organisationId,
    tried.map(({ id }) => id),
  );
  const leaving = tried.filter(({ newKind }) => newKind === null);
  if (leaving.some(({ id }) => !there.has(id))) throw new LeftMeanwhile();
  const changed = tried.filter(({ id, newKind }) => newKind !== null && there.has(id));
  for (const { kind, newKind } of [...leaving, ...changed]) {
    countChange(changes, kind, -1);
    if (newKind !== null) countChange(changes, newKind, 1);
  }
  if (leaving.length > 0) {
    await deleteLocked(
      client,
      organisationId,
      leaving.map(({ id }) => id),
    );
  }
  if (changed.length > 0) {
    await storeKinds(client, organisationId, type, kinds.all);
    await changeKinds(
      client,
      organisationId,
      changed.map(({ id }) => id),
      changed.map(({ newKind }) => newKind as string),
    );
  }
  return changes;
}

function headOf(
  { organisationId, requestId, keyId }: Replay,
  type: UploadType,
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

/** The types, each after those it refers to. */
function inOrderOfReference(): UploadType[] {
  const ordered = new Set<UploadType>();
  const place = (type: UploadType) => {
    if (ordered.has(type)) return;
    for (const reference of sentReferencesOf(type)) if (reference.type !== type) place(reference.type);
    ordered.add(type);
  };
  for (const type of uploadTypes) place(type);
  return [...ordered];
}
