// lake/: writes each organisation's data to Delta tables. Copies the stored rows first, and then follows the change log.

import { type LogAsked, LogReader, type Part } from '../changes/read-changes.ts';
import { limits } from '../limits.ts';
import { joinUuidRanges, uuidAt, uuidsOf } from '../postgres/binary/encoded-rows.ts';
import type { Pool } from '../postgres/pool.ts';
import { charactersMax } from '../records/read-records.ts';
import { sentFields, type UploadType } from '../registry/upload-types.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { takeByIds } from './interaction-lines.ts';
import type { InteractionTable } from './interaction-table.ts';
import type { LakeProgress } from './lake-progress.ts';
import type { LakeTables } from './lake-tables.ts';
import { type LastChange, lastChangeIn } from './last-change.ts';
import { lakeLimits } from './limits.ts';
import type { Spool } from './spool.ts';
import { lakeTypes } from './table/lake-schema.ts';
import { readChanged } from './versions/version-lines.ts';

/** Never stops in the middle of a change, so that a change number is enough to resume. */
export async function readLog(
  pool: Pool,
  organisationId: string,
  { number, epoch }: LakeProgress,
  tables: LakeTables,
  spool: Spool,
  stopping: AbortSignal,
): Promise<LastChange & { readonly expiredBelow: string; readonly hasMore: boolean }> {
  const asked: LogAsked = {
    organisationId,
    types: new Set(lakeTypes),
    records: { charactersMax: charactersCounted },
  };
  const from = { number: number + 1, offset: 0, size: 0, epoch };
  const log = new LogReader(pool, asked, from, limits.changeIdsPerLook);
  const seen = new Set<string>();
  let expiredBelow = firstUuid;
  const isEnough = () => spool.isFull || stopping.aborted;
  for (;;) {
    const { offset, size } = log.next;
    const page = await log.nextPage(isEnough() ? size - offset : lakeLimits.rowsPerRead);
    const stored = page.parts.filter(({ isExpiry }) => !isExpiry);
    for (const [type, parts] of Map.groupBy(stored, (part) => part.type as UploadType))
      if (type === 'interactions')
        await readAdded(pool, organisationId, parts, seen, await tables.interactions(), spool);
      else {
        const { number: known } = lastChangeIn((await tables.versions(type)).delta);
        const missing = parts.filter((part) => part.number > known);
        await readChanged(pool, organisationId, type, missing, spool);
      }
    await spool.drain();
    for (const { ids: cut } of page.parts.filter(({ isExpiry }) => isExpiry))
      if (uuidAt(cut, 0) > expiredBelow) expiredBelow = uuidAt(cut, 0);
    const { next, hasMore } = page;
    if (next.offset === 0 && (!hasMore || isEnough()))
      return { number: next.number - 1, epoch: next.epoch, expiredBelow, hasMore };
  }
}

/**
 * Few records come close to their maximum length, so a quarter of it is counted. At the maximum, a page takes up 16 MB.
 * Interactions are short and are not counted.
 */
function charactersCounted(type: string): number {
  return type === 'interactions' ? 0 : charactersMax(sentFields(type as UploadType)) / 4;
}

/** Skips rows that the table has: the log repeats an interaction's id when its person is erased. */
async function readAdded(
  pool: Pool,
  organisationId: string,
  parts: readonly Part[],
  seen: Set<string>,
  table: InteractionTable,
  spool: Spool,
): Promise<void> {
  const { count, ids } = joinUuidRanges(parts);
  const added = (uuidsOf(ids, count) as string[]).filter(
    (id) => id !== firstUuid && !seen.has(id) && table.recent.has(id) !== true,
  );
  for (const id of added) seen.add(id);
  await takeByIds(pool, organisationId, added, (id, line) =>
    spool.add(id, line, table.recent.has(id) === false),
  );
}
