import { Round } from '../jobs/round.ts';
import { runLong } from '../jobs/time-partitions.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { msOfUuidV7 } from '../registry/uuid-v7.ts';

export async function partitionDaysAhead(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ last: string | null }>(
    'select max(end_id::text) as last from interaction_partitions',
  );
  const last = rows[0]?.last;
  return last ? (msOfUuidV7(last) - Date.now()) / dayMs : 0;
}

const dayMs = 24 * 3_600_000;

export function indexPartitions(pool: Pool, round = new Round()): Promise<'more' | 'all'> {
  const build = { text: 'select index_interaction_partition() as is_built' };
  return round.repeat(async () => {
    const done = await runLong<{ is_built: boolean }>(pool, build, limits.indexBuildMsMax, round.stopping);
    return done?.is_built;
  });
}

/** A range of adjacent partitions that either all have the indexes for past days or all lack them. */
export interface Span {
  readonly firstId: string;
  readonly isIndexed: boolean;
}

export async function spanBelow(pool: Pick<Pool, 'query'>, below: string): Promise<Span | undefined> {
  const { rows } = await pool.query<{ first_id: string; is_indexed: boolean }>({
    name: 'interaction partitions',
    text: `select first_id, is_indexed from interaction_partitions where first_id < $1
           order by first_id desc limit ${limits.interactionDaysPerLookMax}`,
    values: [below],
  });
  const [newest] = rows;
  if (!newest) return undefined;
  const end = rows.findIndex(({ is_indexed }) => is_indexed !== newest.is_indexed);
  const oldest = rows.at(end === -1 ? -1 : end - 1) ?? newest;
  return { firstId: oldest.first_id, isIndexed: newest.is_indexed };
}
