// Changes have numbers of their own, because transaction ids (`xid8`) and a snapshot, which key polling uses, would not
// work here. Each cluster node and each new server has its own transaction counter, so after a shard move or a dump and
// restore, new changes could sort before readers' cursors. A single long writing transaction, even in another database
// on the same server, would also delay all organisations' feeds.

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
import { type ChangeCursors, type Epoch, startOf } from './change-cursor.ts';

export interface LogState {
  readonly last: number;
  /** Changes up to this number may already have been dropped. */
  readonly forgotten: number;
  readonly hasUnnumbered: boolean;
  readonly epochs: readonly Epoch[];
}

// Statements on the log are named, so that PostgreSQL keeps their plans. Planning takes four times as long as running,
// because of the partitions that are created in advance. A condition on the time would spare the planner these
// partitions, but a process whose clock is wrong writes to them, and what is left out would stop the feed.

/**
 * One query for several logs. If all of them are on one cluster node, the ids are repeated in the subquery. Without
 * that, the subquery would query every node, and fail if one of them is unavailable.
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
  }>({
    name: isOneNode ? 'states of change logs on a node' : 'states of change logs',
    text: `
      select t.organisation_id, coalesce(c.last_number, 0) as last,
        exists (select from changes u where u.organisation_id = t.organisation_id and u.number is null
                ${isOneNode ? 'and u.organisation_id = any ($1::uuid[])' : ''}) as has_unnumbered
      from tenants t left join change_counters c on c.organisation_id = t.organisation_id
      where t.organisation_id = any ($1::uuid[])`,
    values: [organisationIds],
  });
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
    name: 'state of the change log',
    text: `select coalesce(c.last_number, 0) as last, coalesce(c.forgotten_number, 0) as forgotten, coalesce(c.epochs, '[]') as epochs,
       exists (select from changes u where u.organisation_id = $1 and u.number is null) as has_unnumbered
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
 * Assigns numbers up to a limit, and returns how many it assigned and the last one. It locks the organisation's counter
 * until the numbers are committed, and selects the changes in a statement that starts after the lock is acquired.
 * Numbers therefore become visible in order: a reader that has seen a number never finds a smaller one later. A change
 * that commits in the meantime is numbered by the next call. Uploads never wait for the lock.
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
 * After a failover, the standby may lack the last numbers and assign them again. New numbers therefore belong to a new
 * epoch whenever the server's start time has changed. This makes it possible to detect readers that have read other
 * changes under the same numbers. The start time also changes after a restore and, in a cluster, after a shard move.
 * Epochs whose changes have all been dropped are removed.
 */
async function beginEpoch(client: Client, organisationId: string, counter: Counter): Promise<void> {
  const { epochs, last_number, forgotten_number, server_now } = counter;
  const kept = epochs.filter((_, at) => (epochs[at + 1]?.first ?? Infinity) > Number(forgotten_number));
  // The id is random, because two standbys that are promoted one after the other may both start a second epoch.
  const begun = { id: randomBytes(4).toString('hex'), first: Number(last_number) + 1 };
  const note = {
    text: 'update change_counters set server_started = $2, epochs = $3 where organisation_id = $1',
    values: [organisationId, server_now, JSON.stringify([...kept, begun].slice(-limits.changeEpochsKept))],
  };
  await queryRows(client, note, 1);
}

/** Both statements are sent together. PostgreSQL starts the second one when the first has acquired the lock. */
async function lockAndSelect(
  client: Client,
  organisationId: string,
): Promise<{ counter: Counter; ids: readonly string[] }> {
  const ask = () =>
    Promise.all([
      client.query<Counter>({
        name: 'lock change counter',
        // The server's start time is read in a select, because a cluster runs functions in a select on the node that
        // stores the row, but functions in an update on the coordinator. `synchronous_commit` is turned on because a
        // crash must not undo a number that was already read: if the start time stays the same, the next numbers would
        // belong to the same epoch. Committing the numbers also flushes the changes, which come earlier in the WAL.
        text: `select last_number, forgotten_number, epochs, server_started,
            extract(epoch from pg_postmaster_start_time())::text as server_now,
            case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'on', true) end
          from change_counters where organisation_id = $1 for update`,
        values: [organisationId],
      }),
      client.query<{ change_id: string }>({
        name: 'changes without numbers',
        text: `select change_id from changes where organisation_id = $1 and number is null
               order by change_id limit ${limits.changesNumberedAtOnce}`,
        values: [organisationId],
      }),
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

/** The cursor points after everything committed so far. */
export async function freshCursor(
  pool: Pool,
  organisationId: string,
  cursors: ChangeCursors,
): Promise<string> {
  const { last, epochs } = await numberAllChanges(pool, organisationId);
  return cursors.write(startOf(last + 1, epochs));
}

/**
 * Numbers everything committed so far, and returns the state after that. Changes that commit in the meantime may stay
 * without a number. Otherwise, this would never end while an organisation uploads without a pause.
 */
export async function numberAllChanges(pool: Pool, organisationId: string): Promise<LogState> {
  const read = () => retryConflicts(() => stateOf(pool, organisationId));
  const state = await read();
  if (!state.hasUnnumbered) return state;
  while ((await numberChanges(pool, organisationId)).count === limits.changesNumberedAtOnce);
  return read();
}
