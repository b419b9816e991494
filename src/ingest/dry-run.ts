import { randomUUIDv7 } from 'node:crypto';
import { limits } from '../limits.ts';
import { type ResourceType, resources } from '../registry/resources.ts';
import { arrayHeaderBytes } from '../store/array-writer.ts';
import { compare } from '../store/compare.ts';
import { type EncodedRows, latestInstant, pickRows } from '../store/encoded-rows.ts';
import { lookUp } from '../store/look-up.ts';
import { type Client, inTransaction, type Pool } from '../store/pool.ts';
import { batchAnswer, type UploadAnswer } from './answer.ts';
import type { CheckedBatch } from './batch-builder.ts';
import { created, type Outcome, stale, unchanged, updated } from './outcome.ts';
import { failDangling, idAt, outcomesOf } from './store-batch.ts';

export interface Rehearsal {
  readonly organisationId: string;
  readonly requestId: string;
  readonly type: ResourceType;
}

/** Says what an upload would come to. PostgreSQL is told that nothing may be written, so nothing is. */
export async function dryRun(
  pool: Pool,
  { organisationId, requestId, type }: Rehearsal,
  batches: readonly CheckedBatch[],
): Promise<UploadAnswer> {
  const applied: Applied = new Map();
  const repeated = repeatedIds(batches);
  const rehearse = async (client: Client) => {
    const answers = [];
    for (const [at, checked] of batches.entries()) {
      const stored = await outcomesFor(client, organisationId, type, checked, { repeated, applied });
      answers.push(
        batchAnswer({
          number: at + 1,
          batchId: randomUUIDv7(),
          requestId,
          type,
          start: at * limits.recordsPerBatch,
          outcomes: outcomesOf(checked, (place) => stored[place] as Outcome),
          warnings: checked.warnings,
          broken: undefined,
        }),
      );
    }
    return answers;
  };
  const answers = await inTransaction(pool, rehearse, 'begin read only');
  return { request_id: requestId, type, dry_run: true, batches: answers };
}

/** The ids that come more than once in the request. */
function repeatedIds(batches: readonly CheckedBatch[]): Set<string> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const { rows } of batches) {
    for (let place = 0; place < rows.count; place++) {
      const id = idAt(rows, place);
      if (seen.has(id)) repeated.add(id);
      seen.add(id);
    }
  }
  return repeated;
}

/** The last version of each such id that would have been stored by then. */
type Applied = Map<string, EncodedRows>;

async function outcomesFor(
  client: Client,
  organisationId: string,
  type: ResourceType,
  { rows, sample, referenced }: CheckedBatch,
  { repeated, applied }: { readonly repeated: ReadonlySet<string>; readonly applied: Applied },
): Promise<Outcome[]> {
  const outcomes: Outcome[] = new Array(rows.count);
  if (rows.count === 0) return outcomes;
  const { missing } = await lookUp(client, organisationId, type, sample, referenced);
  if (missing.some((ids) => ids.size > 0)) failDangling(type, rows, missing, outcomes);
  const againstStored = await compare(client, organisationId, type, rows);
  const fates: Outcome[] = new Array(rows.count).fill(unchanged);
  for (const place of againstStored.absent) fates[place] = created;
  for (const place of againstStored.changed) fates[place] = updated;
  for (const place of againstStored.stale) fates[place] = stale;
  for (let place = 0; place < rows.count; place++) {
    if (outcomes[place]) continue;
    const id = idAt(rows, place);
    if (!repeated.has(id)) {
      outcomes[place] = fates[place] as Outcome;
      continue;
    }
    const row = pickRows(rows, [place]);
    const before = applied.get(id);
    const outcome = before ? replaces(type, before, row) : (fates[place] as Outcome);
    outcomes[place] = outcome;
    if (outcome !== stale) applied.set(id, row);
  }
  return outcomes;
}

/** What becomes of a record that follows another with its id. */
function replaces(type: ResourceType, before: EncodedRows, after: EncodedRows): Outcome {
  const updatedAt = Object.keys(resources[type].fields).indexOf('updated');
  const [older, newer] = [before, after].map(({ arrays }) =>
    latestInstant(arrays[updatedAt] as Buffer, 1, () => false),
  );
  if (older !== undefined && newer !== undefined && newer < older) return stale;
  const same = before.arrays.every((array, at) =>
    elementOf(array).equals(elementOf(after.arrays[at] as Buffer)),
  );
  return same ? unchanged : updated;
}

/** The header says whether the array it was picked from had nulls, which is no part of the value. */
function elementOf(array: Buffer): Buffer {
  return array.subarray(arrayHeaderBytes);
}
