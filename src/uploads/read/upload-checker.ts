import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { FairQueue } from '../../admission/fair-queue.ts';
import { RequestError } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { type Builders, type CheckedBatch, makeBuilders } from './batch-builder.ts';
import { checkUpload, hashBatches } from './check-upload.ts';
import type { CheckResult, CheckTask } from './check-upload-worker.ts';
import { unpackBatch } from './packed-batch.ts';

export interface CheckedUpload {
  readonly batches: readonly CheckedBatch[];
  readonly bodySha256: Buffer | undefined;
}

export interface Unchecked extends Omit<CheckTask, 'body'> {
  readonly organisationId: string;
  readonly body: Buffer | undefined;
}

/**
 * Large uploads are checked in worker threads, because reading 5,000 records would block the event loop. Small ones are
 * checked one per event-loop turn, so that a hundred of them that arrive together do not block it either.
 */
export class UploadChecker {
  readonly #threads: Piscina<CheckTask, CheckResult>;
  readonly #threadTurns: FairQueue;
  readonly #builders = makeBuilders();
  readonly #loopTurns = new FairQueue({ atOnce: 1, waitingMax: limits.uploadsWaitingMax });

  constructor() {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const maxThreads = Math.max(1, availableParallelism() - 1);
    this.#threads = new Piscina({
      filename: fileURLToPath(new URL(`./check-upload-worker.${extension}`, import.meta.url)),
      minThreads: 0,
      maxThreads,
      idleTimeout: limits.workerIdleMs,
      resourceLimits: { maxYoungGenerationSizeMb: limits.workerYoungGenerationMb },
    });
    this.#threadTurns = new FairQueue({ atOnce: maxThreads, waitingMax: limits.uploadsWaitingMax });
  }

  async check(upload: Unchecked): Promise<CheckedUpload> {
    const { organisationId, body } = upload;
    return body === undefined || body.length < limits.bodyBytesForWorker
      ? this.#loopTurns.take(organisationId, () => checkHere(this.#builders, upload))
      : this.#threadTurns.take(organisationId, () => this.#checkInThread(upload, body));
  }

  async #checkInThread(
    { type, mode, recordsMax, isLines, wantsHash }: Unchecked,
    body: Buffer,
  ): Promise<CheckedUpload> {
    const transferList = [body.buffer as ArrayBuffer];
    const result = await this.#threads.run(
      { type, mode, body, recordsMax, isLines, wantsHash },
      { transferList },
    );
    if ('batches' in result) {
      const { batches, bodySha256 } = result;
      return { batches: batches.map(unpackBatch), bodySha256: bodySha256 && Buffer.from(bodySha256) };
    }
    const { code, message, details } = result.refused;
    throw new RequestError(code, { message, ...(details && { details }) });
  }

  async close(): Promise<void> {
    await this.#threads.close();
  }
}

async function checkHere(
  builders: Builders,
  { type, mode, body, recordsMax, isLines, wantsHash }: Unchecked,
): Promise<CheckedUpload> {
  await setImmediate();
  const batches = checkUpload(builders, type, body, recordsMax, { mode, isLines, wantsHash });
  return { batches, bodySha256: wantsHash ? hashBatches(batches) : undefined };
}
