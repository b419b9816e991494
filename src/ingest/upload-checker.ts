import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { ResourceType } from '../registry/resources.ts';
import type { CheckedBatch } from './batch-builder.ts';
import { checkUpload, hashBody } from './check-upload.ts';
import type { CheckResult, CheckTask } from './check-upload-worker.ts';
import { unpackBatch } from './packed-batch.ts';

export interface CheckedUpload {
  readonly batches: readonly CheckedBatch[];
  readonly bodySha256: Buffer | undefined;
}

/**
 * Checks uploads, large ones in worker threads: parsing 5,000 records takes long enough to be felt by everyone else's
 * requests, and what it leaves behind is collected in a heap of its own.
 */
export class UploadChecker {
  readonly #threads: Piscina<CheckTask, CheckResult>;

  constructor() {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    this.#threads = new Piscina({
      filename: fileURLToPath(new URL(`./check-upload-worker.${extension}`, import.meta.url)),
      minThreads: 0,
      maxThreads: Math.max(1, availableParallelism() - 1),
      idleTimeout: limits.workerIdleMs,
      resourceLimits: { maxYoungGenerationSizeMb: limits.workerYoungGenerationMb },
    });
  }

  /** With `wantsHash` also what two bodies are compared by. */
  async check(
    type: ResourceType,
    body: Buffer | undefined,
    recordsMax: number,
    wantsHash: boolean,
  ): Promise<CheckedUpload> {
    if (body === undefined || body.length < limits.bodyBytesForWorker) {
      const batches = checkUpload(type, body, recordsMax);
      return { batches, bodySha256: wantsHash ? hashBody(body) : undefined };
    }
    const transferList = [body.buffer as ArrayBuffer];
    const result = await this.#threads.run({ type, body, recordsMax, wantsHash }, { transferList });
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
