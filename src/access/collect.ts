// access/: collects everything stored about a person, to answer an access request.

import { limits } from '../limits.ts';
import { nextUsers } from '../people/find-interactions.ts';
import { nextRows } from '../people/find-rows.ts';
import { customersTable } from '../people/personal-tables.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import {
  beginAgainUnless,
  inTransaction,
  queryRow,
  queryRows,
  retryConflicts,
} from '../postgres/transactions.ts';
import { settleOrganisation } from '../rejections/unsettled-batches.ts';
import { hiddenIds } from '../suppression/hidden-ids.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import { collectingSteps } from './collecting-steps.ts';
import { type CollectedRecord, type Collection, requestsOf } from './collection.ts';
import { accessLimits } from './limits.ts';
import { addIds, countKept } from './request-access.ts';

interface Running {
  readonly access_request_id: string;
  readonly step: string;
  readonly after: string | null;
}

/**
 * Collects records for every organisation with open access requests. Takes the organisations in turn, one part each, until
 * the time limit is reached or no work is left.
 */
export async function collectForAll(
  pool: Pool,
  suppressions: Suppressions,
  stopping?: AbortSignal,
): Promise<void> {
  // The join skips organisations that are being removed, because they no longer have a row in `tenants`. The order is
  // random, because a single organisation's part may use up the whole time limit.
  const { rows } = await pool.query<{ organisation_id: string }>(
    `select a.organisation_id from access_requests a join tenants o on o.organisation_id = a.organisation_id
     where a.state in ('pending', 'running') group by a.organisation_id order by random()`,
  );
  const deadlineMs = performance.now() + limits.erasureMs;
  let failure: unknown;
  for (const one of rows) {
    if (stopping?.aborted || performance.now() > deadlineMs) break;
    const hasMore = await collectPart(pool, one.organisation_id, suppressions).catch((error: unknown) => {
      // Continue with the other organisations.
      failure ??= error;
      return false;
    });
    // The loop also visits rows that are pushed while it runs.
    if (hasMore) rows.push(one);
  }
  if (failure !== undefined) throw failure;
}

/**
 * Collects the next part of an organisation's records. Returns false if there is nothing left to collect. Each part is
 * one transaction that also saves the progress, so a process that is killed leaves no partial work behind. The records
 * are read in the same transaction. An erasure sweep that starts in the meantime waits for the transaction and then
 * deletes the collected records. The transaction sees every erasure that committed before it started.
 */
export async function collectPart(
  pool: Pool,
  organisationId: string,
  suppressions: Suppressions,
): Promise<boolean> {
  const running = await runningRequests(pool, organisationId);
  const [first] = running;
  if (!first) return false;
  if (first.step === 'rejections') await settleOrganisation(pool, organisationId);
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      if (!(await lockPart(client, organisationId, running))) return true;
      const collection = await collectionOf(client, organisationId, running);
      const { step, after } = await workOn(client, collection, first, suppressions);
      if (step === null) await noteDone(client, organisationId, running);
      else await noteProgress(client, organisationId, running, step, after);
      return true;
    }),
  );
}

/**
 * Returns the running requests, or starts the oldest pending ones if none is running. If the organisation already stores
 * too many collected records, no request is started until some of them expire, because the number of records that a
 * request will collect is not known in advance.
 */
async function runningRequests(pool: Pool, organisationId: string): Promise<Running[]> {
  const columns = 'access_request_id, step, after';
  const { rows } = await pool.query<Running>(
    `select ${columns} from access_requests where organisation_id = $1 and state = 'running' order by access_request_id`,
    [organisationId],
  );
  const [first] = rows;
  // Two processes may each have started requests. Requests that have made less progress than the first one continue when
  // it is done.
  if (first) return rows.filter(({ step, after }) => step === first.step && after === first.after);
  if ((await countKept(pool, organisationId)).records >= accessLimits.recordsKeptMax) return [];
  const { rows: started } = await pool.query<Running>(
    `update access_requests set state = 'running', started_at = $2
     where organisation_id = $1 and state = 'pending' and access_request_id in (
       select access_request_id from (
         select access_request_id, row_number() over first_ones as at, sum(people) over first_ones as ids
         from access_requests where organisation_id = $1 and state = 'pending'
         window first_ones as (order by access_request_id)) as waiting
       where at = 1 or (at <= ${accessLimits.requestsTogetherMax} and ids <= ${accessLimits.idsTogetherMax}))
     returning ${columns}`,
    [organisationId, new Date()],
  );
  return started;
}

function idsOf(running: readonly Running[]): string[] {
  return running.map(({ access_request_id }) => access_request_id);
}

/** Locks out other processes until the transaction ends. Returns false if one of them has already done this part. */
async function lockPart(
  client: Client,
  organisationId: string,
  running: readonly Running[],
): Promise<boolean> {
  const { rows } = await client.query<Running>(
    `select step, after from access_requests
     where organisation_id = $1 and access_request_id = any ($2::uuid[]) and state = 'running'
     order by access_request_id for update`,
    [organisationId, idsOf(running)],
  );
  const [first] = running;
  return (
    rows.length === running.length &&
    rows.every(({ step, after }) => step === first?.step && after === first.after)
  );
}

async function collectionOf(
  client: Client,
  organisationId: string,
  running: readonly Running[],
): Promise<Collection> {
  // Read the hidden ids first. An erasure that finishes between the two reads has already deleted its people's ids from
  // `access_request_ids`.
  const hidden = await hiddenIds(client, organisationId);
  const { rows } = await client.query<{ id: string; request: string; isInferred: boolean }>(
    `select id, access_request_id as request, is_inferred as "isInferred" from access_request_ids
     where organisation_id = $1 and access_request_id = any ($2::uuid[])`,
    [organisationId, idsOf(running)],
  );
  const ids = Map.groupBy(rows, ({ id }) => id);
  return { organisationId, idTable: 'access_request_ids', ids, hidden };
}

/** The step to continue with. Its name is null once everything has been collected. */
interface Progress {
  readonly step: string | null;
  readonly after: string | null;
}

async function workOn(
  client: Client,
  collection: Collection,
  { step, after: from }: Running,
  suppressions: Suppressions,
): Promise<Progress> {
  if (step === 'collect customers') {
    const after = await addCustomers(client, collection, from, suppressions);
    return { step: after === null ? 'collect users' : step, after };
  }
  if (step === 'collect users') {
    const after = await addUsers(client, collection, from, suppressions);
    return { step: after === null ? (collectingSteps[0]?.name ?? null) : step, after };
  }
  const at = collectingSteps.findIndex(({ name }) => name === step);
  const { type, next } = collectingSteps[at] as (typeof collectingSteps)[number];
  const { found, after } = await next(client, collection, from);
  const kept = found.filter(({ people }) => !people.some((id) => collection.hidden.has(id)));
  await store(client, collection.organisationId, type, kept);
  return { step: after === null ? (collectingSteps[at + 1]?.name ?? null) : step, after };
}

/**
 * Adds these customers' users. Also adds other customers with the same users, because they are the same person stored
 * twice.
 */
async function addCustomers(
  client: Client,
  collection: Collection,
  from: string | null,
  suppressions: Suppressions,
): Promise<string | null> {
  const { found, after } = await nextRows(client, collection, customersTable, from);
  const others = found
    .map(({ people }) => people.filter((id) => id !== null))
    .filter((people) => !people.some((id) => collection.hidden.has(id)))
    .flatMap((people) => people.map((id) => ({ id, requests: requestsOf(collection, people) })));
  await addPeople(client, collection, others, false, suppressions);
  return after;
}

/** Adds users that occur in the same records as these customers. */
async function addUsers(
  client: Client,
  collection: Collection,
  from: string | null,
  suppressions: Suppressions,
): Promise<string | null> {
  const { found, after } = await nextUsers(client, collection, from);
  const others = found.flatMap(({ user_id, student_id }) =>
    user_id === null ? [] : { id: user_id, requests: requestsOf(collection, [student_id ?? '']) },
  );
  await addPeople(client, collection, others, true, suppressions);
  return after;
}

async function addPeople(
  client: Client,
  { organisationId, ids }: Collection,
  found: readonly { readonly id: string; readonly requests: readonly string[] }[],
  isInferred: boolean,
  suppressions: Suppressions,
): Promise<void> {
  const added = found.flatMap(({ id, requests }) =>
    requests
      .filter((request) => !ids.get(id)?.some((wanted) => wanted.request === request))
      .map((request) => ({ id, request })),
  );
  for (const [request, of] of Map.groupBy(added, (one) => one.request)) {
    const named = new Set(of.map(({ id }) => id));
    await addIds(client, { organisationId, request, isInferred }, named, suppressions);
  }
}

async function store(
  client: Client,
  organisationId: string,
  type: string,
  found: readonly CollectedRecord[],
): Promise<void> {
  const copies = found.flatMap(({ requests, ...one }) => requests.map((request) => ({ ...one, request })));
  for (const [request, of] of Map.groupBy(copies, (one) => one.request)) {
    const ids = of.map(({ id }) => id);
    const { rowCount } = await client.query(
      `insert into access_request_records (organisation_id, access_request_id, type, id, record, people)
       select o.organisation_id, $2::uuid, $3::text, i.id, i.record, i.people
       from tenants o cross join unnest($4::text[], $5::text[], $6::jsonb[]) as i(id, record, people)
       where o.organisation_id = $1 on conflict do nothing`,
      [
        organisationId,
        request,
        type,
        ids,
        of.map(({ record }) => record),
        of.map(({ people }) => JSON.stringify([...new Set(people)])),
      ],
    );
    if (rowCount !== ids.length) await beginAgainUnlessStored(client, organisationId, request, type, ids);
    const text = `
      update access_requests
      set records = jsonb_set(records, array[$3::text], to_jsonb(coalesce((records->>$3)::bigint, 0) + $4::bigint))
      where organisation_id = $1 and access_request_id = $2`;
    await queryRows(client, { text, values: [organisationId, request, type, rowCount] }, 1);
  }
}

/**
 * Restarts the part unless all of these records are stored. An earlier step may have stored some of them, because the
 * same Idempotency-Key can occur in several tables.
 */
async function beginAgainUnlessStored(
  client: Client,
  organisationId: string,
  request: string,
  type: string,
  ids: readonly string[],
): Promise<void> {
  const { count } = await queryRow<{ count: number }>(client, {
    text: `
      select count(*)::integer as count from access_request_records
      where organisation_id = $1 and access_request_id = $2 and type = $3 and id = any ($4::text[])`,
    values: [organisationId, request, type, ids],
  });
  beginAgainUnless(count === new Set(ids).size, 'records of an access request were not stored');
}

async function noteProgress(
  client: Client,
  organisationId: string,
  running: readonly Running[],
  step: string,
  after: string | null,
): Promise<void> {
  const text = `
    update access_requests set step = $3, after = $4
    where organisation_id = $1 and access_request_id = any ($2::uuid[])`;
  await queryRows(client, { text, values: [organisationId, idsOf(running), step, after] }, running.length);
}

/** Marks the requests as done, and deletes their ids, which are no longer needed. */
async function noteDone(client: Client, organisationId: string, running: readonly Running[]): Promise<void> {
  await client.query(
    'delete from access_request_ids where organisation_id = $1 and access_request_id = any ($2::uuid[])',
    [organisationId, idsOf(running)],
  );
  const text = `
    update access_requests set state = 'done', after = null, done_at = $3
    where organisation_id = $1 and access_request_id = any ($2::uuid[])`;
  await queryRows(client, { text, values: [organisationId, idsOf(running), new Date()] }, running.length);
}
