import { type JobKind, jobKind } from '../jobs/job.ts';
import { limits } from '../limits.ts';
import type { Pool } from '../postgres/pool.ts';
import { databaseTime } from '../postgres/transactions.ts';
import { accessLimits } from './limits.ts';

/** Requests that were cancelled, or done before the time in a parameter. */
const isOver = (parameter: string) => `state = 'done' and (done_at < ${parameter} or done_at is null)`;
const keptSince = async (client: Pick<Pool, 'query'>) =>
  new Date((await databaseTime(client)).getTime() - accessLimits.recordsKeptMs);

/** The requests and their counts are kept. */
export const expireCollected: JobKind = jobKind<'delete'>({
  name: 'expired access requests',
  first: 'delete',
  async find(pool) {
    const { rows } = await pool.query<{ organisation_id: string }>(
      `select distinct organisation_id from access_requests where ${isOver('$1')}`,
      [await keptSince(pool)],
    );
    return rows.map(({ organisation_id }) => organisation_id);
  },
  steps: {
    delete: {
      async work(client, { organisationId }) {
        const { rows } = await client.query<{ access_request_id: string }>(
          `select access_request_id from access_requests where organisation_id = $1 and ${isOver('$2')} limit 1`,
          [organisationId, await keptSince(client)],
        );
        const [request] = rows;
        if (!request) return { next: 'ended' };
        const values = [organisationId, request.access_request_id];
        const { rowCount } = await client.query(
          `delete from access_request_records r using (
             select type, id from access_request_records
             where organisation_id = $1 and access_request_id = $2 order by type, id limit ${limits.purgeRowsMax}) as old
           where r.organisation_id = $1 and r.access_request_id = $2 and r.type = old.type and r.id = old.id`,
          values,
        );
        if (rowCount === 0)
          await client.query(
            `update access_requests set state = 'expired' where organisation_id = $1 and access_request_id = $2`,
            values,
          );
        return { next: { step: 'delete' } };
      },
    },
  },
});
