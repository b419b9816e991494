import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { ResourceType } from '../registry/resources.ts';
import type { CheckedBatch } from './batch-builder.ts';
import { checkUpload } from './check-upload.ts';
import type { CheckResult, CheckTask } from './check-upload-worker.ts';
import { unpackBatch } from './packed-batch.ts';

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

  async check(type: ResourceType, body: Buffer | undefined, recordsMax: number): Promise<CheckedBatch[]> {
    if (body === undefined || body.length < limits.bodyBytesForWorker)
      return checkUpload(type, body, recordsMax);
    const transferList = [body.buffer as ArrayBuffer];
    const result = await this.#threads.run({ type, body, recordsMax }, { transferList });
    if ('batches' in result) return result.batches.map(unpackBatch);
    const { code, message, details } = result.refused;
    throw new RequestError(code, { message, ...(details && { details }) });
  }

  async close(): Promise<void> {
    await this.#threads.close();
  }
}
