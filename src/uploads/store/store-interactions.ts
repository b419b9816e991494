import { randomBytes } from 'node:crypto';
import { insertEncoded } from '../../interactions/interaction-rows.ts';
import type { KnownReferences } from '../../interactions/known-ids.ts';
import { missingAmong } from '../../interactions/look-up-references.ts';
import { limits } from '../../limits.ts';
import { ArrayWriter, viewOf } from '../../postgres/binary/array-writer.ts';
import { pickRows, uuidsOf } from '../../postgres/binary/encoded-rows.ts';
import type { Client } from '../../postgres/pool.ts';
import { uuidFloor, uuidV7Words } from '../../registry/uuid-v7.ts';
import { created, type Outcome } from '../answer/outcome.ts';
import type { CheckedBatch } from '../read/batch-builder.ts';
import { leaveOutErased } from './leave-out-erased.ts';
import { failMissing, type StoredRows } from './store-batch.ts';

/** `givenIds` contains, by index, the ids of replayed interactions that were sent with an Idempotency-Key. */
export async function storeInteractions(
  client: Client,
  organisationId: string,
  sent: CheckedBatch,
  references: KnownReferences,
  givenIds: readonly (string | null)[] = [],
): Promise<StoredRows> {
  const { outcomes, checked } = await checkInteractions(client, organisationId, sent, references);
  const good = [...outcomes.keys()].filter((row) => outcomes[row] === created);
  const ids = idsFor(good.map((row) => givenIds[checked.indices[row] as number] ?? null));
  if (good.length > 0) {
    const { arrays } = pickRows(checked.rows, good);
    await insertEncoded(client, organisationId, { count: good.length, arrays: [ids, ...arrays] });
  }
  const interactionIds: (string | null)[] = new Array(checked.received).fill(null);
  const stored = uuidsOf(ids, good.length);
  for (const [at, row] of good.entries())
    interactionIds[checked.indices[row] as number] = stored[at] as string;
  return { outcomes, changed: { count: good.length, ids }, rejectedIds: new Set(), checked, interactionIds };
}

export async function checkInteractions(
  client: Client,
  organisationId: string,
  sent: CheckedBatch,
  references: KnownReferences,
): Promise<Pick<StoredRows, 'outcomes' | 'checked'>> {
  const { rows, referenced } = sent;
  const outcomes: Outcome[] = new Array(rows.count).fill(created);
  const { known, suppressions } = references;
  // If people were erased, references are looked up again, because a cached customer may be gone.
  const checking = suppressions.checkNow(client, organisationId);
  const [check, found] = await Promise.all([
    checking,
    missingAmong(client, organisationId, referenced, known, checking),
  ]);
  const isCurrent = references.known === known;
  const missing = isCurrent
    ? found
    : await missingAmong(client, organisationId, referenced, references.known, checking);
  const { checked, erased } = await leaveOutErased('interactions', sent, check);
  failMissing('interactions', rows, missing, outcomes);
  for (const [row, outcome] of erased) outcomes[row] = outcome;
  return { outcomes, checked };
}

/**
 * New ids share one timestamp and 62 random bits, and count up in the order sent. In the receipt, 1,000 of them take
 * PostgreSQL 0.5 ms and 4 KB. With separate random bits, which do not compress, they would take 1.1 ms and 24 KB.
 */
function idsFor(given: readonly (string | null)[]): Buffer {
  const nowMs = Date.now();
  const random = viewOf(randomBytes(8));
  const words = [random.getInt32(0), random.getInt32(4)] as const;
  const ids = new ArrayWriter('uuid');
  // Once the key has expired, no retry looks for the id, and the partition for the id's day may be gone.
  const oldest = uuidFloor(nowMs - limits.idempotencyKeyLifeMs);
  for (const [at, id] of given.entries())
    if (id !== null && id >= oldest) ids.append(id);
    else ids.appendWords(...uuidV7Words(nowMs, at, words));
  return ids.finish();
}
