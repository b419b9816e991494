import { storeInTransaction } from '../../bookkeeping/store.ts';
import { limits } from '../../limits.ts';
import { nextInteractions, nextUsers } from '../../people/find-interactions.ts';
import { nextRows, type RowOfPeople } from '../../people/find-rows.ts';
import type { Found } from '../../people/people.ts';
import { customersTable, type PersonalTable, personalTables } from '../../people/personal-tables.ts';
import { runningTransactions } from '../../postgres/cluster/running-transactions.ts';
import type { Client, Pool } from '../../postgres/pool.ts';
import { inTransaction, queryRows } from '../../postgres/transactions.ts';
import { firstUuid } from '../../registry/uuid-v7.ts';
import type { Suppressions } from '../../suppression/suppressions.ts';
import { addIds, type ErasureMode, nextVersion } from '../request-erasure.ts';
import { waitForVersions } from '../wait-for-versions.ts';
import { hideRestoredCustomers, identifyNext } from './identify-people.ts';
import { forgetCollected } from './sweep-access-requests.ts';
import { forgetInLog } from './sweep-log.ts';
import { eraseRows } from './sweep-rows.ts';
import type { FoundRow, Step, Sweep } from './sweep-step.ts';
import { eraseTexts } from './sweep-texts.ts';

/**
 * The steps of a sweep. Each step consists of parts, and each part is one transaction that also saves the progress, so a
 * process that is killed leaves no partial work behind. Customers come last, when nothing refers to them any more.
 */
const steps: readonly (readonly [name: string, step: Step])[] = [
  ...personalTables.filter(({ type }) => type !== 'customers').map(eraseTable),
  ...eraseTexts,
  ['access_requests', forgetCollected],
  ['changes', forgetInLog],
  ...personalTables.filter(({ type }) => type === 'customers').map(eraseTable),
];

function eraseTable(table: PersonalTable): readonly [name: string, step: Step] {
  return [
    table.name,
    async (pool, sweep, from) => {
      const { found, after } = await nextOf(pool, sweep, table, from);
      const rows = found.flatMap(({ id, people }) =>
        erasuresOf(sweep, people).map((erasure_id) => ({ id, erasure_id })),
      );
      return async (client) => ({ ...(await eraseRows(client, sweep, table, rows)), after });
    },
  ];
}

async function nextOf(
  pool: Pool,
  sweep: Sweep,
  table: PersonalTable,
  from: string | null,
): Promise<Found<RowOfPeople>> {
  if (table.type !== 'interactions') return nextRows(pool, sweep, table, from);
  const { found, after } = await nextInteractions(pool, sweep, from, false);
  return {
    found: found.map(({ id, student_id, user_id }) => ({ id, people: [student_id, user_id] })),
    after,
  };
}

/** Returns the erasures that these people belong to. */
function erasuresOf({ ids }: Sweep, people: readonly (string | null)[]): string[] {
  return people.flatMap((id) => ids.get(id ?? '') ?? []);
}

interface Running {
  readonly erasure_id: string;
  readonly mode: ErasureMode;
  readonly step: string;
  readonly after: string | null;
}

/**
 * Sweeps every organisation that has open erasures. Takes the organisations in turn, one step each, until the time limit
 * is reached or no work is left.
 */
export async function sweepErasures(
  pool: Pool,
  suppressions: Suppressions,
  stopping?: AbortSignal,
): Promise<void> {
  // The order is random, because a single organisation's step may use up the whole time limit.
  const { rows } = await pool.query<{ organisation_id: string; is_restored: boolean }>(
    `select organisation_id, bool_or(step = 'identify customers') as is_restored
     from erasures where state in ('pending', 'running') group by organisation_id order by random()`,
  );
  if (rows.some(({ is_restored }) => is_restored)) await hideRestoredCustomers(pool, suppressions, stopping);
  const deadlineMs = performance.now() + limits.erasureMs;
  let failure: unknown;
  for (const one of rows) {
    if (stopping?.aborted || performance.now() > deadlineMs) break;
    const hasMore = await sweepStep(pool, one.organisation_id, suppressions).catch((error: unknown) => {
      // Continue with the other organisations.
      failure ??= error;
      return false;
    });
    // The loop also visits rows that are pushed while it runs.
    if (hasMore) rows.push(one);
  }
  if (failure !== undefined) throw failure;
}

/** Does the next part of an organisation's sweep. Returns false if there is nothing to do at the moment. */
export async function sweepStep(
  pool: Pool,
  organisationId: string,
  suppressions: Suppressions,
): Promise<boolean> {
  try {
    return await nextPart(pool, organisationId, suppressions);
  } catch (error) {
    if (error instanceof DoneByAnother) return true;
    throw error;
  }
}

/** Thrown if another process, which may be the current or a previous leader, has already done this part. */
class DoneByAnother extends Error {}

/** Locks out other processes until the transaction ends. Must be the first statement of the transaction. */
async function lockStep(client: Client, sweep: Sweep, { step, after }: Running): Promise<void> {
  const { rows } = await client.query<Running>(
    `select step, after from erasures where organisation_id = $1 and erasure_id = any ($2::uuid[]) and state = 'running'
     order by erasure_id for update`,
    [sweep.organisationId, [...sweep.modes.keys()]],
  );
  const isHere =
    rows.length === sweep.modes.size && rows.some((one) => one.step === step && one.after === after);
  if (!isHere) throw new DoneByAnother();
}

async function nextPart(pool: Pool, organisationId: string, suppressions: Suppressions): Promise<boolean> {
  const running = await runningErasures(pool, organisationId);
  const [first] = running;
  if (!first) return false;
  const sweep = await sweepOf(pool, organisationId, running);
  if (first.step in afterFence) return passFence(pool, sweep, first);
  if (first.step === 'collect customers') return collectCustomers(pool, sweep, first, suppressions);
  if (first.step === 'identify') return identifyOthers(pool, sweep, first, suppressions);
  if (first.step === 'collect') return collectUsers(pool, sweep, first, suppressions);
  const at = steps.findIndex(([name]) => name === first.step);
  const [name, step] = steps[at] as (typeof steps)[number];
  const work = await step(pool, sweep, first.after);
  await storeInTransaction(pool, async (client) => {
    await lockStep(client, sweep, first);
    const { done, rows, after } = await work(client);
    await noteRows(client, organisationId, name, rows);
    if (after !== null) await noteProgress(client, sweep, name, after);
    else if (at + 1 < steps.length)
      await noteProgress(client, sweep, (steps[at + 1] as (typeof steps)[number])[0], null);
    else await noteSwept(client, sweep);
    return { result: undefined, done };
  });
  return true;
}

/**
 * Returns the running erasures, or starts all pending ones if none is running. They share one sweep, so a single pass over
 * the data serves all of them.
 */
async function runningErasures(pool: Pool, organisationId: string): Promise<Running[]> {
  const columns = 'erasure_id, mode, step, after';
  const { rows } = await pool.query<Running>(
    `select ${columns} from erasures where organisation_id = $1 and state = 'running' order by step = 'identify' desc, erasure_id`,
    [organisationId],
  );
  if (rows.length > 0) return rows;
  const { rows: started } = await pool.query<Running>(
    `update erasures set state = 'running', started_at = $2
     where organisation_id = $1 and state = 'pending' returning ${columns}`,
    [organisationId, new Date()],
  );
  // People who came back when a backup was restored must be found first.
  return started.toSorted(
    (one, other) => Number(other.step === 'identify') - Number(one.step === 'identify'),
  );
}

/** Looks for people who came back when a backup was restored, in all tables except `customers`. */
async function identifyOthers(
  pool: Pool,
  sweep: Sweep,
  step: Running,
  suppressions: Suppressions,
): Promise<boolean> {
  const others = personalTables.filter(({ type }) => type !== 'customers');
  const [name, id = firstUuid] = step.after?.split(' ') ?? [];
  const at = Math.max(
    0,
    others.findIndex((table) => table.name === name),
  );
  const table = others[at] as PersonalTable;
  const next = await identifyNext(pool, sweep.organisationId, table, id, suppressions);
  const nextTable = next === null ? others[at + 1] : table;
  await inTransaction(pool, async (client) => {
    await lockStep(client, sweep, step);
    if (nextTable) await noteProgress(client, sweep, 'identify', `${nextTable.name} ${next ?? firstUuid}`);
    else await noteProgress(client, sweep, 'fence', null);
  });
  return true;
}

async function sweepOf(pool: Pool, organisationId: string, running: readonly Running[]): Promise<Sweep> {
  const modes = new Map(running.map(({ erasure_id, mode }) => [erasure_id, mode]));
  const { rows } = await pool.query<{ id: string; erasure_id: string }>(
    'select id, erasure_id from erasure_ids where organisation_id = $1 and erasure_id = any ($2::uuid[])',
    [organisationId, [...modes.keys()]],
  );
  // If a person belongs to two erasures, deletion takes precedence over anonymisation.
  const ordered = rows.toSorted(
    (one, other) =>
      Number(modes.get(one.erasure_id) === 'delete') - Number(modes.get(other.erasure_id) === 'delete'),
  );
  const ids = new Map(ordered.map(({ id, erasure_id }) => [id, erasure_id]));
  return { organisationId, modes, idTable: 'erasure_ids', ids };
}

/**
 * The step that follows each fence. Before the rows are swept, the same people's other ids are added and suppressed as
 * well.
 */
const afterFence = {
  fence: 'collect customers',
  'fence customers': 'collect',
  'fence users': (steps[0] as (typeof steps)[number])[0],
};

/**
 * Waits for the transactions that were running when the suppression committed, because they may have checked their records
 * against the previous version. All later transactions see the new version.
 */
async function passFence(pool: Pool, sweep: Sweep, at: Running): Promise<boolean> {
  const { step, after } = at;
  if (after === null) await waitForVersions(pool);
  const running = await runningTransactions(pool);
  if (after === null) {
    await inTransaction(pool, async (client) => {
      await lockStep(client, sweep, at);
      await noteProgress(client, sweep, step, JSON.stringify(running));
    });
    return true;
  }
  const awaited = new Set<string>(JSON.parse(after));
  if (running.some((one) => awaited.has(one))) return false;
  const next = afterFence[step as keyof typeof afterFence];
  await inTransaction(pool, async (client) => {
    await lockStep(client, sweep, at);
    await noteProgress(client, sweep, next, null);
  });
  return true;
}

/**
 * Adds these customers' users. Also adds other customers with the same users, because they are the same person stored
 * twice.
 */
async function collectCustomers(
  pool: Pool,
  sweep: Sweep,
  step: Running,
  suppressions: Suppressions,
): Promise<boolean> {
  const next = await nextRows(pool, sweep, customersTable, step.after);
  const others = next.found.flatMap(({ people }) =>
    erasuresOf(sweep, people).flatMap((erasure_id) =>
      people.flatMap((id) => (id === null || sweep.ids.has(id) ? [] : { id, erasure_id })),
    ),
  );
  await inTransaction(pool, async (client) => {
    await lockStep(client, sweep, step);
    await addPeople(client, sweep, others, suppressions);
    const isLast = next.after === null;
    await noteProgress(client, sweep, isLast ? 'fence customers' : 'collect customers', next.after);
  });
  return true;
}

/** Adds ids to the erasures that they belong to. */
async function addPeople(
  client: Client,
  { organisationId }: Sweep,
  found: readonly FoundRow[],
  suppressions: Suppressions,
): Promise<void> {
  if (found.length === 0) return;
  const version = await nextVersion(client, organisationId);
  const hasher = suppressions.hasherFor(organisationId);
  for (const [erasureId, rows] of Map.groupBy(found, ({ erasure_id }) => erasure_id))
    await addIds(
      client,
      { organisationId, erasureId, version },
      [...new Set(rows.map(({ id }) => id))],
      hasher,
    );
}

/** Finds users that occur in the same records as these people, and adds them to the people's erasures. */
async function collectUsers(
  pool: Pool,
  sweep: Sweep,
  step: Running,
  suppressions: Suppressions,
): Promise<boolean> {
  const { found, after } = await nextUsers(pool, sweep, step.after);
  const users = found.flatMap(({ user_id, student_id }) =>
    user_id === null || sweep.ids.has(user_id)
      ? []
      : erasuresOf(sweep, [student_id]).map((erasure_id) => ({ id: user_id, erasure_id })),
  );
  await inTransaction(pool, async (client) => {
    await lockStep(client, sweep, step);
    await addPeople(client, sweep, users, suppressions);
    await noteProgress(client, sweep, after === null ? 'fence users' : 'collect', after);
  });
  return true;
}

async function noteProgress(client: Client, sweep: Sweep, step: string, after: string | null): Promise<void> {
  const text = `
    update erasures set step = $3, after = $4 where organisation_id = $1 and erasure_id = any ($2::uuid[])`;
  const values = [sweep.organisationId, [...sweep.modes.keys()], step, after];
  await queryRows(client, { text, values }, sweep.modes.size);
}

async function noteRows(
  client: Client,
  organisationId: string,
  table: string,
  rows: readonly string[],
): Promise<void> {
  for (const [erasureId, of] of Map.groupBy(rows, (one) => one)) {
    const text = `
      update erasures set rows = jsonb_set(rows, array[$3::text], to_jsonb(coalesce((rows->>$3)::bigint, 0) + $4::bigint))
      where organisation_id = $1 and erasure_id = $2`;
    await queryRows(client, { text, values: [organisationId, erasureId, table, of.length] }, 1);
  }
}

/**
 * Marks the erasures as swept. From this point on, the tables contain the ids only in the last entries of the change log.
 * The lake's files may still contain the ids.
 */
async function noteSwept(client: Client, { organisationId, modes }: Sweep): Promise<void> {
  const erasures = [...modes.keys()];
  await client.query('delete from erasure_ids where organisation_id = $1 and erasure_id = any ($2::uuid[])', [
    organisationId,
    erasures,
  ]);
  const text = `
    update erasures set state = 'swept', step = 'log', after = null, swept_at = $3,
      lake_state = case when exists (select from lake_progress p where p.organisation_id = $1) then 'pending' end
    where organisation_id = $1 and erasure_id = any ($2::uuid[])`;
  await queryRows(client, { text, values: [organisationId, erasures, new Date()] }, erasures.length);
}
