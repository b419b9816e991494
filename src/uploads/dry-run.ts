// uploads/: processes uploads from their bytes to their responses, does dry runs, and replays rejections.

import { RequestError } from '../errors.ts';
import type { KnownReferences } from '../interactions/known-ids.ts';
import { limits } from '../limits.ts';
import { IndexedRows, idAt } from '../postgres/binary/encoded-rows.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import type { UploadType } from '../registry/upload-types.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import { batchAnswer, type UploadAnswer } from './answer/answer.ts';
import { created, type Outcome, stale, unchanged, updated } from './answer/outcome.ts';
import type { CheckedBatch } from './read/batch-builder.ts';
import type { Progress } from './store/commit-batch.ts';
import { compare, type Target } from './store/compare.ts';
import { checkRows, outcomesOf, type StoredRows } from './store/store-batch.ts';
import { checkInteractions } from './store/store-interactions.ts';
import { holderOf } from './store/upload-idempotency-keys.ts';
import { Versions } from './store/versions.ts';

type Rehearsal = Pick<Progress, 'organisationId' | 'requestId' | 'type' | 'idempotency' | 'references'>;

/** It runs in a read-only transaction, which guarantees that nothing is written. */
export async function dryRun(
  pool: Pool,
  rehearsal: Rehearsal,
  batches: readonly CheckedBatch[],
): Promise<UploadAnswer> {
  const { organisationId, requestId, type, references } = rehearsal;
  const rehearseBatch = batchRehearsal(organisationId, type, references);
  const rehearse = async (client: Client) => {
    await refuseReusedKey(client, rehearsal);
    const answers = [];
    for (const [at, sent] of batches.entries()) {
      const { outcomes: stored, checked } = await rehearseBatch(client, sent);
      answers.push(
        batchAnswer({
          number: at + 1,
          requestId,
          type,
          start: at * limits.recordsPerBatch,
          outcomes: outcomesOf(checked, (row) => stored[row] as Outcome),
          warnings: checked.warnings,
        }),
      );
    }
    return answers;
  };
  const answers = await inTransaction(pool, rehearse, 'begin read only');
  return { request_id: requestId, type, dry_run: true, batches: answers };
}

/** A dry run does not claim a key, and it does not replay the first response if the key was used with the same body. */
async function refuseReusedKey(
  client: Client,
  { organisationId, type, idempotency }: Rehearsal,
): Promise<void> {
  if (!idempotency) return;
  const holder = await holderOf(client, {
    organisationId,
    idempotencyKey: idempotency.key,
    type,
    bodySha256: idempotency.bodySha256,
    forgottenBefore: new Date(Date.now() - limits.idempotencyKeyLifeMs),
  });
  if (holder && !holder.sameBody) throw new RequestError('idempotency_key_reused');
}

type Rehearsed = Pick<StoredRows, 'outcomes' | 'checked'>;

function batchRehearsal(
  organisationId: string,
  type: UploadType,
  references: KnownReferences,
): (client: Client, sent: CheckedBatch) => Promise<Rehearsed> {
  if (type === 'interactions')
    return (client, sent) => checkInteractions(client, organisationId, sent, references);
  // So that an id sent twice gets the same response as in an upload.
  const versions = new Versions(type);
  return (client, sent) =>
    outcomesFor({ client, organisationId, type }, sent, versions, references.suppressions);
}

async function outcomesFor(
  target: Target,
  sent: CheckedBatch,
  versions: Versions,
  suppressions: Suppressions,
): Promise<Rehearsed> {
  const { outcomes, checked } = await checkRows(target, sent, suppressions);
  const { rows } = checked;
  const compared = await compare(target, rows);
  const againstStored: Outcome[] = new Array(rows.count).fill(unchanged);
  for (const row of compared.absent) againstStored[row] = created;
  for (const row of compared.changed) againstStored[row] = updated;
  for (const row of compared.stale) againstStored[row] = stale;
  const indexed = new IndexedRows(rows);
  for (let row = 0; row < rows.count; row++)
    outcomes[row] ??= versions.apply(idAt(rows, row), { rows: indexed, row }, againstStored[row] as Outcome);
  return { outcomes, checked };
}
