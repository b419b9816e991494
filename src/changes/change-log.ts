// Transaction ids (`xid8`) and a snapshot, as in key polling, cannot replace the numbers: each node of a cluster and each new server
// counts its own, so after a shard move or a dump and restore new changes could come before the cursors of readers. One long
// writing transaction, even in another database of the server, would also hold back the feeds of all organisations.

import { randomBytes } from 'node:crypto';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import {
  beginAgainUnless,
  inTransaction,
  queryRow,
  queryRows,
  retryConflicts,
} from '../postgres/transactions.ts';
import { uuidFloor } from '../registry/uuid-v7.ts';
import { type ChangeCursors, type Epoch, startOf } from './change-cursor.ts';

/** How far the change log of an organisation reaches. */
export interface LogState {
  readonly last: number;
  /** Changes up to this number may have been dropped. */
  readonly forgotten: number;
  /** Whether there are changes that have no number yet. */
  readonly hasUnnumbered: boolean;
  readonly epochs: readonly Epoch[];
}

/** Lets the planner prune the partitions that were made ahead. */
export const beforeTomorrow = () => `change_id < '${uuidFloor(Date.now() + 24 * 3_600_000)}'`;

/**
 * The states of several logs in one query. If all of them are on one node of a cluster, the ids are repeated in the subquery:
 * otherwise it asks every node, and fails if any is away.
 */
export async function statesOf(
  pool: Pool,
  organisationIds: readonly string[],
  isOneNode: boolean,
): Promise<Map<string, Pick<LogState, 'last' | 'hasUnnumbered'>>> {
  const { rows } = await pool.query<{
    organisation_id: string;
    last: string;
    has_unnumbered: boolean;
  }>(
    `select t.organisation_id, coalesce(c.last_number, 0) as last,
       exists (select from changes u where u.organisation_id = t.organisation_id and u.number is null
               ${isOneNode ? 'and u.organisation_id = any ($1::uuid[])' : ''} and u.${beforeTomorrow()}) as has_unnumbered
     from tenants t left join change_counters c on c.organisation_id = t.organisation_id
     where t.organisation_id = any ($1::uuid[])`,
    [organisationIds],
  );
  return new Map(
    rows.map(({ organisation_id, last, has_unnumbered }) => [
      organisation_id,
      { last: Number(last), hasUnnumbered: has_unnumbered },
    ]),
  );
}

export async function stateOf(pool: Pool, organisationId: string): Promise<LogState> {
  const state = await queryRow<{
    last: string;
    forgotten: string;
    epochs: Epoch[];
    has_unnumbered: boolean;
  }>(pool, {
    text: `select coalesce(c.last_number, 0) as last, coalesce(c.forgotten_number, 0) as forgotten, coalesce(c.epochs, '[]') as epochs,
       exists (select from changes u where u.organisation_id = $1 and u.number is null
               and u.${beforeTomorrow()}) as has_unnumbered
     from tenants t left join change_counters c on c.organisation_id = $1
     where t.organisation_id = $1`,
    values: [organisationId],
  });
  return {
    last: Number(state.last),
    forgotten: Number(state.forgotten),
    hasUnnumbered: state.has_unnumbered,
    epochs: state.epochs,
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
      const { counter, ids } = await lockAndSelect(client, organisationId);
      const last = Number(counter.last_number);
      if (ids.length === 0) return { count: 0, last };
      const number = {
        text: `update changes set number = $3::bigint + array_position($2::uuid[], change_id)
           where organisation_id = $1 and change_id = any ($2::uuid[])
             and change_id >= '${ids[0]}' and change_id <= '${ids.at(-1)}'`,
        values: [organisationId, ids, last],
      };
      sendLast(() => queryRows(client, number, ids.length));
      if (counter.server_started !== counter.server_now)
        sendLast((end) => beginEpoch(end, organisationId, counter));
      const count = {
        name: 'count numbered changes',
        text: 'update change_counters set last_number = last_number + $2 where organisation_id = $1',
        values: [organisationId, ids.length],
      };
      sendLast(() => queryRows(client, count, 1));
      return { count: ids.length, last: last + ids.length };
    }),
  );
}

interface Counter {
  readonly last_number: string;
  readonly forgotten_number: string;
  readonly epochs: readonly Epoch[];
  readonly server_started: string | null;
  readonly server_now: string;
}

/**
 * A standby that took over may lack the last numbers, and gives them again. So numbers of a server that was started at another
 * time than the one before belong to a new epoch, and a reader that has read others under these numbers is detected. The start
 * time also differs after a restore and, in a cluster, after a move. Epochs of which everything is forgotten are left out.
 */
async function beginEpoch(client: Client, organisationId: string, counter: Counter): Promise<void> {
  const { epochs, last_number, forgotten_number, server_now } = counter;
  const kept = epochs.filter((_, at) => (epochs[at + 1]?.first ?? Infinity) > Number(forgotten_number));
  // Random: two standbys that took over one after the other may both have begun a second epoch.
  const begun = { id: randomBytes(4).toString('hex'), first: Number(last_number) + 1 };
  const note = {
    text: 'update change_counters set server_started = $2, epochs = $3 where organisation_id = $1',
    values: [organisationId, server_now, JSON.stringify([...kept, begun].slice(-limits.changeEpochsKept))],
  };
  await queryRows(client, note, 1);
}

/** Both statements are sent at once; PostgreSQL begins the second when the first has the lock. */
async function lockAndSelect(
  client: Client,
  organisationId: string,
): Promise<{ counter: Counter; ids: readonly string[] }> {
  const ask = () =>
    Promise.all([
      client.query<Counter>({
        name: 'lock change counter',
        // A cluster evaluates functions of a select on the node that has the row, and those of an update on the coordinator. A crash
        // must not take back a number that was read: without a new start time, the next numbers would be of the same epoch.
        // The commit of the numbers also flushes the changes, which are earlier in the WAL.
        text: `select last_number, forgotten_number, epochs, server_started,
            extract(epoch from pg_postmaster_start_time())::text as server_now,
            case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end
          from change_counters where organisation_id = $1 for update`,
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
  beginAgainUnless(locked, 'the counter of changes was not written');
  return { counter: locked, ids: unnumbered.rows.map(({ change_id }) => change_id) };
}

/** A cursor behind everything that is committed now. */
export async function freshCursor(
  pool: Pool,
  organisationId: string,
  cursors: ChangeCursors,
): Promise<string> {
  const { last, epochs } = await numberAllChanges(pool, organisationId);
  return cursors.write(startOf(last + 1, epochs));
}

/** Numbers every change that is committed now; returns the state afterwards. */
export async function numberAllChanges(pool: Pool, organisationId: string): Promise<LogState> {
  for (;;) {
    const state = await retryConflicts(() => stateOf(pool, organisationId));
    if (!state.hasUnnumbered) return state;
    await numberChanges(pool, organisationId);
  }
}
