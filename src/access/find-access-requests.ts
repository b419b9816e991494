import { exactTime } from '../postgres/iso-time.ts';
import { type AskedPage, newestFirst } from '../postgres/keyset-page.ts';
import type { Pool } from '../postgres/pool.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import { accessLimits } from './limits.ts';

/** For stored states, which differ from the states that the API returns. */
export const isUncollected = (state: string) => `${state} in ('requested', 'collecting')`;

export interface AccessRequest {
  readonly access_request_id: string;
  readonly state: 'pending' | 'running' | 'done' | 'expired' | 'cancelled';
  readonly requested: string;
  readonly key_id: string;
  readonly people: number;
  /** Numbers of collected records by type. */
  readonly records: Readonly<Record<string, number>>;
  readonly started: string | null;
  readonly done: string | null;
  /** The records can be downloaded until then. */
  readonly expires: string | null;
}

type StoredAccessRequest = Omit<AccessRequest, 'requested' | 'expires'> & {
  readonly is_cancelled: boolean;
  readonly is_expired: boolean | null;
};

const accessRequestColumns = `access_request_id,
  case state when 'requested' then 'pending' when 'collecting' then 'running' else state end as state, key_id, people, records, ${exactTime('started_at')} as started,
  ${exactTime('done_at')} as done, cancelled_at is not null as is_cancelled,
  done_at <= now() - make_interval(secs => ${accessLimits.recordsKeptMs / 1_000}) as is_expired`;

/** Whether a request has expired depends on the time alone, not on whether its records are already deleted. */
function shownAccessRequest({
  access_request_id,
  state,
  done,
  is_cancelled,
  is_expired,
  ...rest
}: StoredAccessRequest): AccessRequest {
  return {
    access_request_id,
    state: is_cancelled ? 'cancelled' : is_expired ? 'expired' : state,
    requested: timeOfUuidV7(access_request_id),
    ...rest,
    done,
    expires: done === null ? null : new Date(Date.parse(done) + accessLimits.recordsKeptMs).toISOString(),
  };
}

export async function findAccessRequest(
  pool: Pick<Pool, 'query'>,
  organisationId: string,
  id: string,
): Promise<AccessRequest | undefined> {
  const { rows } = await pool.query<StoredAccessRequest>({
    name: 'find access request',
    text: `select ${accessRequestColumns} from access_requests where organisation_id = $1 and access_request_id = $2`,
    values: [organisationId, id],
  });
  return rows[0] && shownAccessRequest(rows[0]);
}

export async function accessRequestPage(pool: Pool, organisationId: string, asked: AskedPage) {
  const table = { name: 'access_requests', id: 'access_request_id', columns: accessRequestColumns };
  const { rows, next } = await newestFirst<StoredAccessRequest>(pool, table, organisationId, {}, asked);
  return { access_requests: rows.map(shownAccessRequest), next_cursor: next };
}
