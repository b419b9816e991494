// uploads/: processes uploads from their bytes to their responses, does dry runs, and replays rejections.

import { RequestError } from '../errors.ts';
import type { KnownReferences } from '../interactions/known-ids.ts';
import { limits } from '../limits.ts';
import { IndexedRows } from '../postgres/binary/encoded-rows.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { resources } from '../registry/resources.ts';
import type { UploadType } from '../registry/upload-types.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import { batchAnswer, type UploadAnswer } from './answer/answer.ts';
import { type Outcome, updated } from './answer/outcome.ts';
import type { CheckedBatch } from './read/batch-builder.ts';
import type { Progress } from './store/commit-batch.ts';
import { compare, type Target } from './store/compare.ts';
import { withAllSent } from './store/sent-fields.ts';
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
  const cleared: Cleared = {};
  const rehearseBatch = batchRehearsal(organisationId, type, references, cleared);
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
  return { request_id: requestId, type, dry_run: true, cleared, batches: answers };
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

/** How many stored values would be lost, by field. */
type Cleared = Record<string, number>;

function batchRehearsal(
  organisationId: string,
  type: UploadType,
  references: KnownReferences,
  cleared: Cleared,
): (client: Client, sent: CheckedBatch) => Promise<Rehearsed> {
  if (type === 'interactions')
    return (client, sent) => checkInteractions(client, organisationId, sent, references);
  // So that an id sent twice gets the same response as in an upload.
  const versions = { replace: new Versions(type, 'replace'), merge: new Versions(type, 'merge') };
  return (client, sent) =>
    outcomesFor(
      { client, organisationId, type, mode: sent.mode },
      sent,
      versions[sent.mode],
      references.suppressions,
      cleared,
    );
}

async function outcomesFor(
  target: Target,
  sent: CheckedBatch,
  versions: Versions,
  suppressions: Suppressions,
  cleared: Cleared,
): Promise<Rehearsed> {
  const { outcomes, checked } = await checkRows(target, sent, suppressions);
  const { rows } = checked;
  // Only this comparison tells which fields differ.
  const compared = await compare(
    { ...target, mode: 'merge' },
    target.mode === 'merge' ? rows : withAllSent(rows),
  );
  const outcomeOf = versions.against(rows, compared);
  for (let row = 0; row < rows.count; row++) outcomes[row] ??= outcomeOf(row);
  const indexed = new IndexedRows(rows);
  const fields = Object.keys(resources[target.type].fields);
  // Replacing a record without `is_deleted` makes it false, as if the record had never been deleted.
  const undeletes = (field: string, column: number, row: number) =>
    target.mode === 'replace' && field === 'is_deleted' && indexed.valueAt(column, row).at(-1) === 0;
  const isLost = (field: string, column: number, row: number) =>
    indexed.isNullAt(column, row) || undeletes(field, column, row);
  for (const [row, differing] of compared.differing)
    for (const [column, field] of fields.entries())
      if (
        differing & (1 << column) &&
        isStoredOrWaits(outcomes[row] as Outcome) &&
        isLost(field, column, row)
      )
        cleared[field] = (cleared[field] ?? 0) + 1;
  return { outcomes, checked };
}

/** A missing reference may be in an earlier file of the same upload, which a dry run has not stored. */
function isStoredOrWaits(outcome: Outcome): boolean {
  return (
    outcome === updated ||
    (outcome.kind === 'failed' && outcome.problems.every(({ code }) => code === 'reference_not_found'))
  );
}
