// erasure/sweep/: removes erased people's remaining data from every table, step by step.

import { rewrittenBefore } from '../../interactions/user-id-spellings.ts';
import type { JobKind } from '../../jobs/job.ts';
import { jobKind, type Next, type Place } from '../../jobs/job.ts';
import type { Fence } from '../../jobs/pass-fence.ts';
import { detachedTables } from '../../jobs/time-partitions.ts';
import { limits } from '../../limits.ts';
import { nextRows } from '../../people/find-rows.ts';
import { type Search, wantedAmong, wantedIds } from '../../people/people.ts';
import { tableWith } from '../../people/personal-tables.ts';
import type { Client, Pool } from '../../postgres/pool.ts';
import { databaseTime, inTransaction, queryRows } from '../../postgres/transactions.ts';
import { receiptPartitions } from '../../receipts/receipts.ts';
import { liftAgain } from '../../suppression/lift-suppressions.ts';
import type { Suppressions } from '../../suppression/suppressions.ts';
import { addIds, hashSlowly, type IdOfErasure, nextVersion, passWriters } from '../add-ids.ts';
import { isUnswept } from '../find-erasures.ts';
import { analyseNext } from './analyse-erased.ts';
import { identifyPeople } from './identify-people.ts';
import { sweepAccess } from './sweep-access-requests.ts';
import { eraseCustomers, eraseRows } from './sweep-rows.ts';
import type { SweepStep } from './sweep-step.ts';
import { sweepAnswers, sweepKeys, sweepLog, sweepRejections, sweepReport } from './sweep-texts.ts';

/** One sweep covers all open erasures of an organisation. */
export function erasePeople(suppressions: Suppressions): JobKind {
  return jobKind<SweepStep>({
    name: 'erasures',
    first: 'start',
    find: findErasures,
    steps: {
      start: { work: start },
      'fence before identify': { wait: waitForWriters('fence before identify', 'identify') },
      identify: { call: (pool, place) => identifyPeople(pool, place, suppressions) },
      fence: { wait: waitForWriters('fence', 'expand') },
      expand: { call: (pool, place) => expand(pool, place, suppressions) },
      report: { work: sweepReport },
      rows: { work: eraseRows },
      rejections: { work: sweepRejections },
      receipts: { work: sweepAnswers },
      keys: { work: sweepKeys },
      'access requests': { work: sweepAccess },
      changes: { work: sweepLog },
      customers: { work: eraseCustomers },
      statistics: { call: forgetStatistics },
      detached: { wait: waitForDrops },
      end: { work: end },
    },
  });
}

async function findErasures(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ organisation_id: string }>(
    `select distinct organisation_id from erasures where ${isUnswept}`,
  );
  return rows.map(({ organisation_id }) => organisation_id);
}

async function start(client: Client, { organisationId }: Place): Promise<{ readonly next: Next<SweepStep> }> {
  const now = await databaseTime(client);
  // Keys work again only when restored customers are hidden, so this does not wait until user ids are rewritten.
  const { rowCount: restored } = await client.query(
    `update erasures set state = 'sweeping', started_at = coalesce(started_at, $2)
     where organisation_id = $1 and ${isUnswept} and step like 'identify%'`,
    [organisationId, now],
  );
  if (restored !== 0) return { next: { step: 'fence before identify' } };
  const before = await rewrittenBefore(client, organisationId);
  if (before === undefined) return { next: 'ended' };
  const { rowCount } = await client.query(
    `update erasures set state = 'sweeping', started_at = coalesce(started_at, $2)
     where organisation_id = $1 and ${isUnswept} and (state = 'sweeping' or erasure_id < $3)`,
    [organisationId, now, before],
  );
  return { next: rowCount === 0 ? 'ended' : { step: 'fence' } };
}

/** Transactions that were running at the suppression may have checked records against the previous version. */
function waitForWriters(step: SweepStep, then: SweepStep) {
  return async (pool: Pool, { position }: Place): Promise<Next<SweepStep> | undefined> => {
    const next = await passWriters(pool, (position ?? {}) as Fence<object>);
    return next === 'passed' ? { step: then } : next && { ...next, step };
  };
}

interface Expansion {
  readonly after: string | null;
  /** Whether this pass adds ids. They are suppressed only from then on, so the pass is followed by another fence. */
  readonly adds: boolean;
}

/**
 * Adds the other ids of these people: both ids of each customer with a named id, and other customers with the same
 * user, who are the same person stored twice. Until the fence, an upload that began earlier may give an added customer
 * another user, and an added user may have more customers, so after each fence, another pass looks for more ids.
 */
async function expand(pool: Pool, place: Place, suppressions: Suppressions): Promise<Next<SweepStep>> {
  const { organisationId } = place;
  const at = (place.position ?? { after: null, adds: false }) as Expansion;
  const search: Search = { organisationId, for: 'erasures' };
  const { found, next } = await nextRows(pool, search, tableWith('customers'), at.after);
  const people = found.map((row) => Object.values(row.people).filter((id) => id !== null));
  const wanted = await wantedAmong(pool, search, people.flat());
  const added = people.flatMap((ids): IdOfErasure[] => {
    const erasures = new Set(ids.flatMap((id) => wanted.get(id) ?? []).map(({ request }) => request));
    return [...erasures].flatMap((erasureId) =>
      ids.flatMap((id) =>
        wanted.get(id)?.some(({ request }) => request === erasureId) ? [] : { id, erasureId },
      ),
    );
  });
  const adds = at.adds || added.length > 0;
  // Save that this pass adds ids before adding them. If the step is interrupted afterwards, its repetition does not
  // find them new.
  if (adds !== at.adds) return { step: 'expand', position: { after: at.after, adds } };
  if (added.length > 0) {
    const hashed = await hashSlowly(await suppressions.hasherFor(pool, organisationId), added);
    await inTransaction(pool, async (client) => {
      await place.lock(client);
      await addIds(client, organisationId, await nextVersion(client, organisationId), hashed);
    });
  }
  if (next !== null) return { step: 'expand', position: { after: next, adds } };
  return { step: adds ? 'fence' : 'report' };
}

/** Tables that a sweep changes but does not count. Settling deletes rejections. */
const uncounted = ['unsettled_batches', 'rejections', 'access_request_ids'];

/** The tables behind each count, if their names differ. */
const countedTables: Readonly<Record<string, readonly string[]>> = {
  customers: ['customers', 'changes', 'report_interactions', 'report_visits', 'report_transactions'],
  interactions_unlinked: ['interactions'],
  receipts: ['receipt_batches'],
  receipt_keys: ['receipts'],
  access_requests: ['access_request_records'],
};

async function forgetStatistics(
  pool: Pool,
  { organisationId, position }: Place,
  stopping?: AbortSignal,
): Promise<Next<SweepStep>> {
  const { rows } = await pool.query<{ counted: string[] | null; first: string | null; last: string | null }>(
    `select array(select distinct k from erasures c cross join jsonb_object_keys(c.rows) as k
                  where c.organisation_id = $1 and c.state = 'sweeping') as counted,
       min(first_changed::text) as first, max(last_changed::text) as last
     from erasures where organisation_id = $1 and state = 'sweeping'`,
    [organisationId],
  );
  const { counted = [], first = null, last = null } = rows[0] ?? {};
  const changed = [...uncounted, ...(counted ?? []).flatMap((name) => countedTables[name] ?? name)];
  const next = await analyseNext(pool, changed, { first, last }, position as string | null, stopping);
  return next === null ? { step: 'detached' } : { step: 'statistics', position: next };
}

/** Rows that were detached before they were searched are deleted when maintenance drops their table. */
async function waitForDrops(pool: Pool): Promise<Next<SweepStep> | undefined> {
  const left = await detachedTables(pool, ['interactions', ...receiptPartitions.tables]);
  return left.length === 0 ? { step: 'end' } : undefined;
}

/** Once the erasures are swept, only the end of the change log, and the lake's files, may still contain the ids. */
async function end(client: Client, { organisationId }: Place): Promise<{ readonly next: Next<SweepStep> }> {
  const search: Search = { organisationId, for: 'erasures' };
  const { rowCount } = await client.query(
    `delete from erasure_ids
     where organisation_id = $1
       and erasure_id in (select erasure_id from erasures where organisation_id = $1 and state = 'sweeping')
       and id <= (select max(part.id) from (
         select i.id from ${wantedIds(search)} order by i.id limit ${limits.purgeRowsMax}) as part)`,
    [organisationId],
  );
  // An id can belong to several erasures, so there may be more than the limit.
  if ((rowCount ?? 0) >= limits.purgeRowsMax) return { next: { step: 'end' } };
  const { rows } = await client.query<{ erasure_id: string }>(
    `select erasure_id from erasures where organisation_id = $1 and state = 'sweeping' for update`,
    [organisationId],
  );
  const text = `
    update erasures set state = 'swept', step = 'log', after = null, swept_at = $3,
      lake_state = case when exists (select from lake_progress p where p.organisation_id = $1) then 'pending' end
    where organisation_id = $1 and erasure_id = any ($2::uuid[])`;
  const erasureIds = rows.map(({ erasure_id }) => erasure_id);
  const values = [organisationId, erasureIds, await databaseTime(client)];
  await queryRows(client, { text, values }, erasureIds.length);
  await liftAgain(client, organisationId, erasureIds);
  return { next: 'ended' };
}

/** The change log's last entries may be written on the day after `swept_at`. No transaction takes this long. */
const entriesWrittenWithin = '1 hour';

/** Must run after the chore that drops old days of the change log. */
export async function finishErasures(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ oldest: string | null }>(
    `select min(to_date(right(c.relname, 10), 'YYYY_MM_DD'))::text as oldest from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'
       and c.relname ~ '^(to_drop_)?changes_\\d{4}_\\d\\d_\\d\\d$'`,
  );
  const oldest = rows[0]?.oldest;
  if (oldest)
    await pool.query(
      `update erasures set state = 'done', done_at = $1
       where state = 'swept' and swept_at < $2::timestamptz - interval '${entriesWrittenWithin}'`,
      [await databaseTime(pool), `${oldest}T00:00:00Z`],
    );
}
