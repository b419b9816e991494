import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { BeginAgain, expectRows, inTransaction, retryConflicts } from '../postgres/transactions.ts';
import { uuidFloor } from '../registry/uuid-v7.ts';
import { ChangeCursors } from './change-cursor.ts';

/** How far the change log of an organisation reaches. */
export interface LogState {
  readonly last: number;
  /** Changes up to this number may have been dropped. */
  readonly forgotten: number;
  /** Whether there are changes that have no number yet. */
  readonly hasUnnumbered: boolean;
}

/** Lets the planner prune the partitions that were made ahead. */
export const beforeTomorrow = () => `change_id < '${uuidFloor(Date.now() + 24 * 3_600_000)}'`;

/** The states of several logs in one query; on Citus the coordinator sends it on to the workers. */
export async function statesOf(
  pool: Pool,
  organisationIds: readonly string[],
): Promise<Map<string, LogState>> {
  const { rows } = await pool.query<{
    organisation_id: string;
    last: string;
    forgotten: string;
    has_unnumbered: boolean;
  }>(
    `select t.organisation_id, coalesce(c.last_number, 0) as last, coalesce(c.forgotten_number, 0) as forgotten,
       exists (select from changes u where u.organisation_id = t.organisation_id and u.number is null
               and u.${beforeTomorrow()}) as has_unnumbered
     from tenants t left join change_counters c on c.organisation_id = t.organisation_id
     where t.organisation_id = any ($1::uuid[])`,
    [organisationIds],
  );
  return new Map(
    rows.map(({ organisation_id, last, forgotten, has_unnumbered }) => [
      organisation_id,
      { last: Number(last), forgotten: Number(forgotten), hasUnnumbered: has_unnumbered },
    ]),
  );
}

export async function stateOf(pool: Pool, organisationId: string): Promise<LogState> {
  const { rows } = await pool.query<{ last: string; forgotten: string; has_unnumbered: boolean }>(
    `select coalesce(c.last_number, 0) as last, coalesce(c.forgotten_number, 0) as forgotten,
       exists (select from changes u where u.organisation_id = $1 and u.number is null
               and u.${beforeTomorrow()}) as has_unnumbered
     from tenants t left join change_counters c on c.organisation_id = $1
     where t.organisation_id = $1`,
    [organisationId],
  );
  const [state] = rows;
  if (!state) throw new BeginAgain('the state of a change log was not read');
  return {
    last: Number(state.last),
    forgotten: Number(state.forgotten),
    hasUnnumbered: state.has_unnumbered,
  };
}

/**
 * Numbers the committed changes that have no number yet, up to a limit; returns how many, and the last number then. It locks
 * the organisation's counter until the numbers are committed, and selects the changes in a statement that begins after it has
 * the lock. So numbers become visible in order, and a reader that has seen one never meets a smaller one later. A change that
 * commits meanwhile gets its number the next time. Uploads never wait for the lock.
 */
export function numberChanges(
  pool: Pool,
  organisationId: string,
): Promise<{ readonly count: number; readonly last: number }> {
  return retryConflicts(() =>
    inTransaction(pool, async (client, sendLast) => {
      const { last, ids } = await lockAndSelect(client, organisationId);
      if (ids.length === 0) return { count: 0, last };
      sendLast(async () => {
        const numbered = await client.query(
          `update changes set number = $3::bigint + array_position($2::uuid[], change_id)
           where organisation_id = $1 and change_id = any ($2::uuid[])
             and change_id >= '${ids[0]}' and change_id <= '${ids.at(-1)}'`,
          [organisationId, ids, last],
        );
        expectRows(numbered, ids.length, 'changes to number');
      });
      sendLast(async () => {
        const counted = await client.query({
          name: 'count numbered changes',
          text: 'update change_counters set last_number = last_number + $2 where organisation_id = $1',
          values: [organisationId, ids.length],
        });
        expectRows(counted, 1, 'the counter of changes');
      });
      return { count: ids.length, last: last + ids.length };
    }),
  );
}

/** Both statements are sent at once; PostgreSQL begins the second when the first has the lock. */
async function lockAndSelect(
  client: Client,
  organisationId: string,
): Promise<{ last: number; ids: readonly string[] }> {
  const ask = () =>
    Promise.all([
      client.query<{ last_number: string }>({
        name: 'lock change counter',
        text: 'select last_number from change_counters where organisation_id = $1 for update',
        values: [organisationId],
      }),
      client.query<{ change_id: string }>(
        `select change_id from changes where organisation_id = $1 and number is null and ${beforeTomorrow()}
         order by change_id limit ${limits.changesNumberedAtOnce}`,
        [organisationId],
      ),
    ]);
  let [counter, unnumbered] = await ask();
  if (counter.rows.length === 0) {
    await client.query(
      `insert into change_counters (organisation_id, last_number, forgotten_number) values ($1, 0, 0)
       on conflict do nothing`,
      [organisationId],
    );
    [counter, unnumbered] = await ask();
  }
  const [locked] = counter.rows;
  if (!locked) throw new BeginAgain('the counter of changes was not written');
  return { last: Number(locked.last_number), ids: unnumbered.rows.map(({ change_id }) => change_id) };
}

/** A cursor behind everything that is committed now. */
export async function freshCursor(pool: Pool, organisationId: string): Promise<string> {
  const { last } = await numberAllChanges(pool, organisationId);
  return new ChangeCursors(organisationId).write({ number: last + 1, offset: 0 });
}

/** Numbers every change that is committed now; returns the state afterwards. */
export async function numberAllChanges(pool: Pool, organisationId: string): Promise<LogState> {
  for (;;) {
    const state = await retryConflicts(() => stateOf(pool, organisationId));
    if (!state.hasUnnumbered) return state;
    await numberChanges(pool, organisationId);
  }
}
