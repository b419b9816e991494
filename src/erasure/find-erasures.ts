import { exactTime } from '../postgres/iso-time.ts';
import { type AskedPage, newestFirst } from '../postgres/keyset-page.ts';
import type { Pool } from '../postgres/pool.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';

export const erasureModes = ['anonymise', 'delete'] as const;
export type ErasureMode = (typeof erasureModes)[number];

type ErasureState = 'pending' | 'running' | 'swept' | 'done';

/** True while rows of an erasure's people may be left in a table. */
export const isUnswept = `state in ('requested', 'sweeping')`;

export interface Erasure {
  readonly erasure_id: string;
  readonly mode: ErasureMode;
  readonly state: ErasureState;
  readonly requested: string;
  readonly key_id: string;
  /** Ids in the request, and how many of them belonged to stored customers. */
  readonly people: number;
  readonly known: number;
  readonly rows: Readonly<Record<string, number>>;
  readonly started: string | null;
  readonly swept: string | null;
  readonly done: string | null;
  /** Null before the sweep is done, and if the organisation has no lake. */
  readonly lake: 'pending' | 'done' | null;
  readonly lake_done: string | null;
}

/** As the API returns them, except for the time of the request. */
const erasureColumns = `erasure_id, mode,
  case state when 'requested' then 'pending' when 'sweeping' then 'running' else state end as state, key_id, people, known, rows, ${exactTime('started_at')} as started,
  ${exactTime('swept_at')} as swept, ${exactTime('done_at')} as done,
  case lake_state when 'running' then 'pending' else lake_state end as lake, ${exactTime('lake_done_at')} as lake_done`;

type StoredErasure = Omit<Erasure, 'requested'>;

function withTime(stored: StoredErasure): Erasure {
  const { erasure_id, mode, state, ...rest } = stored;
  return { erasure_id, mode, state, requested: timeOfUuidV7(erasure_id), ...rest };
}

export async function findErasure(
  pool: Pick<Pool, 'query'>,
  organisationId: string,
  erasureId: string,
): Promise<Erasure | undefined> {
  const { rows } = await pool.query<StoredErasure>({
    name: 'find erasure',
    text: `select ${erasureColumns} from erasures where organisation_id = $1 and erasure_id = $2`,
    values: [organisationId, erasureId],
  });
  return rows[0] && withTime(rows[0]);
}

export async function erasurePage(pool: Pool, organisationId: string, asked: AskedPage) {
  const table = { name: 'erasures', id: 'erasure_id', columns: erasureColumns };
  const { rows, next } = await newestFirst<StoredErasure>(pool, table, organisationId, {}, asked);
  return { erasures: rows.map(withTime), next_cursor: next };
}
