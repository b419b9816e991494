import { constants, setPriority } from 'node:os';
import { Piscina } from 'piscina';
import type { Detail } from '../../errors.ts';
import { RequestError, type RequestErrorCode } from '../../errors.ts';
import { freeMemory } from '../../postgres/binary/free-memory.ts';
import type { UploadType } from '../../registry/upload-types.ts';
import { makeBuilders } from './batch-builder.ts';
import { checkUpload, hashBatches } from './check-upload.ts';
import { type PackedBatch, packBatch } from './packed-batch.ts';

export interface CheckTask {
  readonly type: UploadType;
  readonly body: Uint8Array;
  readonly recordsMax: number;
  /** Whether it is NDJSON. */
  readonly isLines: boolean;
  /** Whether it will be compared with an earlier upload. */
  readonly wantsHash: boolean;
}

/** A refusal is returned as a value: an error would lose its class between threads. */
export type CheckResult =
  | { readonly batches: readonly PackedBatch[]; readonly bodySha256: Uint8Array | undefined }
  | { readonly refused: { code: RequestErrorCode; message: string; details: readonly Detail[] | undefined } };

/** One set per thread. */
const builders = makeBuilders();

// Lowers this thread's priority, so that short requests go first. With four uploaders this takes a third off the 99th
// percentile of interactions and costs uploads nothing. Only Linux sets the priority of a single thread.
if (process.platform === 'linux') {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A sandbox may forbid it; uploads are then checked at normal priority.
  }
}

/** Runs in a worker thread. Buffers are transferred both ways, and freed when no longer needed. */
export default function check({ type, body, recordsMax, isLines, wantsHash }: CheckTask): CheckResult {
  try {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
    const checked = checkUpload(builders, type, bytes, recordsMax, { isLines, wantsHash });
    freeMemory(body);
    const bodySha256 = wantsHash ? hashBatches(checked) : undefined;
    const batches = checked.map(packBatch);
    return Piscina.move({
      [Piscina.transferableSymbol]: batches.map(({ memory }) => memory),
      [Piscina.valueSymbol]: { batches, bodySha256 },
    } as never) as unknown as CheckResult;
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    const { code, message, details } = error;
    return { refused: { code, message, details } };
  }
}
