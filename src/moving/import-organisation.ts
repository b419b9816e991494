import { createHash } from 'node:crypto';
import { KnownReferences } from '../interactions/known-ids.ts';
import { limits } from '../limits.ts';
import { makeAllPartitions } from '../maintenance/chores.ts';
import type { Operator } from '../operator/audit-log.ts';
import { freeMemory } from '../postgres/binary/encoded-rows.ts';
import { isDuplicate, type Pool } from '../postgres/pool.ts';
import type { BatchAnswer } from '../receipts/batch-answer.ts';
import { findReceipt } from '../receipts/receipts.ts';
import { inOrderOfReference } from '../registry/upload-types.ts';
import { uuidV7Words } from '../registry/uuid-v7.ts';
import { addFileClaims } from '../runs/move-file-claims.ts';
import { Suppressions } from '../suppression/suppressions.ts';
import { UploadChecker } from '../uploads/read/upload-checker.ts';
import { commitBatch, type Progress } from '../uploads/store/commit-batch.ts';
import { type BegunImport, beginImport, importedSoFar, importKeyId, noteImported } from './begin-import.ts';
import type { MovePools, Report } from './export-organisation.ts';
import { moveLimits } from './limits.ts';
import { type Manifest, MoveRefused, type Part, readManifest, verifyParts } from './manifest.ts';
import { type RequestLines, requestsOf } from './part-reader.ts';

interface ImportResult {
  readonly manifest: Manifest;
  /** Whether an earlier run has already stored everything. */
  readonly wasDone: boolean;
  readonly failed: number;
}

/**
 * Uses the same checks and transactions as uploads. Each batch has a receipt whose id is derived from the export and
 * from the batch's position in it. A batch and its receipt commit together, and receipt ids are unique, so no batch is
 * stored twice, no matter when the import is interrupted and when it continues.
 */
export async function importOrganisation(
  pools: MovePools,
  by: Operator,
  { slug, folder, erasureKeys }: { slug: string; folder: string; erasureKeys: readonly string[] },
  { onRows, onFile }: { onRows: Report; onFile: (file: string) => void },
): Promise<ImportResult> {
  const { manifest, sha256 } = await readManifest(folder);
  await verifyParts(folder, manifest, onFile);
  await makeAllPartitions(pools.serving);
  const begun = await beginImport(pools, by, { slug, manifest, sha256 });
  if (!begun) return { manifest, wasDone: true, failed: 0 };
  const checker = new UploadChecker();
  try {
    const run = new ImportRun(pools.serving, { ...begun, folder, sha256 }, checker, erasureKeys);
    for (const type of inOrderOfReference()) {
      const parts = manifest.files.filter((part) => part.type === type);
      let rows = 0;
      for (const part of parts)
        await run.storePart(part, (stored) => {
          rows += stored;
          onRows(type, rows);
        });
    }
  } finally {
    await checker.close();
  }
  await addFileClaims(pools.serving, begun.organisationId, manifest.file_claims ?? []);
  const { failed } = await importedSoFar(pools.serving, begun);
  await noteImported(pools.admin, by, begun.organisationId, { manifest, sha256, failed });
  return { manifest, wasDone: false, failed };
}

interface Running extends BegunImport {
  readonly folder: string;
  readonly sha256: string;
}

class ImportRun {
  readonly #pool: Pool;
  readonly #import: Running;
  readonly #checker: UploadChecker;
  readonly #references: KnownReferences;
  #failed = 0;

  constructor(pool: Pool, running: Running, checker: UploadChecker, erasureKeys: readonly string[]) {
    this.#pool = pool;
    this.#import = running;
    this.#checker = checker;
    this.#references = new KnownReferences(new Suppressions(erasureKeys));
  }

  /** Returns when the whole part is stored, because the next part may refer to it. */
  async storePart(part: Part, onStored: (rows: number) => void): Promise<void> {
    const running = new Set<Promise<void>>();
    try {
      for await (const request of requestsOf(this.#import.folder, part)) {
        const { rows } = request;
        const stored: Promise<void> = this.#storeRequest(part, request).then(() => {
          running.delete(stored);
          onStored(rows);
        });
        stored.catch(() => {});
        running.add(stored);
        if (running.size === moveLimits.requestsAtOnce) await Promise.race(running);
      }
      await Promise.all(running);
    } finally {
      await Promise.allSettled(running);
    }
  }

  async #storeRequest(part: Part, { number, body, rows }: RequestLines): Promise<void> {
    const { organisationId, isContinued } = this.#import;
    const requestId = requestIdOf(this.#import, part, number);
    const batchCount = Math.ceil(rows / limits.recordsPerBatch);
    const receipt = isContinued ? await findReceipt(this.#pool, organisationId, requestId) : undefined;
    if (receipt?.batches.length === batchCount) return;
    const progress: Progress = {
      organisationId,
      keyId: importKeyId,
      type: part.type,
      mode: null,
      run: null,
      bodyBytes: body.length,
      batchCount,
      startedMs: performance.now(),
      idempotency: undefined,
      references: this.#references,
      requestId,
    };
    const { batches } = await this.#checker.check({
      organisationId,
      type: part.type,
      mode: 'replace',
      body,
      recordsMax: rows,
      isLines: true,
      wantsHash: false,
    });
    for (const [at, checked] of batches.entries()) {
      if (receipt?.batches.includes(at + 1)) continue;
      const written = await commitBatch(this.#pool, progress, at + 1, checked).catch((error: unknown) => {
        throw isDuplicate(error) ? alreadyRunning : error;
      });
      freeMemory(checked.sample);
      if (written.counts.failed > 0) this.#noteFailed(part, written.text);
    }
  }

  #noteFailed({ file }: Part, answer: string): void {
    const { data }: BatchAnswer = JSON.parse(answer);
    this.#failed += data.counts.failed;
    const [first] = data.errors;
    if (this.#failed > moveLimits.failedMax)
      throw new MoveRefused(
        `more than ${moveLimits.failedMax} rows failed, the last of them in ${file}: ` +
          `${first?.field ?? 'the row'} ${first?.message}`,
      );
  }
}

const alreadyRunning = new MoveRefused(
  'another process is importing the same export; wait until it has ended, and run the command again',
);

/** The same batch of an export always gets the same id. */
function requestIdOf({ beganMs, sha256 }: Running, { file }: Part, number: number): string {
  const hash = createHash('sha256').update(`${sha256} ${file} ${number}`).digest();
  const counter = hash.readUInt16BE(8) & 0xfff;
  const words = uuidV7Words(beganMs, counter, [hash.readInt32BE(0), hash.readInt32BE(4)]);
  const hex = words.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
