// access/: collects everything stored about a person, to answer an access request.

import { type OrganisationQuota, type QuotaUsage, quotaOf } from '../admission/quota.ts';
import type { Done } from '../bookkeeping/store.ts';
import { rewrittenBefore } from '../interactions/user-id-spellings.ts';
import { type JobKind, jobKind, type Next, type Place } from '../jobs/job.ts';
import { nextRows } from '../people/find-rows.ts';
import { wantedAmong } from '../people/people.ts';
import { personalTables, tableWith } from '../people/personal-tables.ts';
import { keyTables } from '../people/read-texts.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { databaseTime } from '../postgres/transactions.ts';
import { newestUnsettled, settleUpTo } from '../rejections/unsettled-batches.ts';
import { openIdsAmong } from '../suppression/hidden-ids.ts';
import type { KeyTable } from '../suppression/idempotency-keys.ts';
import type { Suppressions } from '../suppression/suppressions.ts';
import { isUncollected } from './find-access-requests.ts';
import { accessLimits } from './limits.ts';
import {
  type Collection,
  collectAnswers,
  collectKeys,
  collectRejections,
  collectRows,
  countOtherStudents,
} from './read-about.ts';
import { addIds, countKept } from './request-access.ts';
import { lockRunning, storeCollected } from './store-collected.ts';

/** In this order. Requests join a collection only in its first step. */
type CollectStep =
  | 'start'
  | 'expand'
  | 'rows'
  | 'settle'
  | 'rejections'
  | 'receipts'
  | 'keys'
  | 'seen'
  | 'end';

interface Result {
  readonly next: Next<CollectStep>;
  readonly done?: readonly Done[];
}

/**
 * Records are read in the transaction that stores them. An erasure that starts in the meantime waits for it and then
 * deletes the collected records. The transaction sees every erasure that committed before it started.
 */
export function collectRecords(suppressions: Suppressions): JobKind {
  const collectionOf = (client: Client, { organisationId }: Place): Collection => ({
    organisationId,
    for: 'access',
    // The suppressions come first. An erasure that finishes after a record was read is no longer open, but its people are
    // suppressed.
    async hiddenAmong(people) {
      const asked = [...new Set(people)];
      const suppressed = await suppressions.erasedAmong(client, organisationId, asked);
      return new Set([...suppressed, ...(await openIdsAmong(client, organisationId, asked))]);
    },
  });
  const collecting = (
    step: 'rejections' | 'receipts',
    collect: typeof collectRejections,
    then: CollectStep,
  ) => ({
    async work(client: Client, place: Place): Promise<Result> {
      const collection = collectionOf(client, place);
      const { found, next } = await collect(client, collection, place.position as string | null);
      await storeCollected(client, collection, step, found);
      return { next: next === null ? { step: then } : { step, position: next } };
    },
  });
  return jobKind<CollectStep>({
    name: 'access requests',
    first: 'start',
    find: findRequests,
    steps: {
      start: { work: start },
      expand: { work: (client, place) => expand(client, place, collectionOf(client, place)) },
      rows: { work: (client, place) => rows(client, place, collectionOf(client, place)) },
      settle: { work: settle },
      rejections: collecting('rejections', collectRejections, 'receipts'),
      receipts: collecting('receipts', collectAnswers, 'keys'),
      keys: { work: (client, place) => keys(client, place, collectionOf(client, place)) },
      seen: {
        async work(client, { organisationId, position }) {
          const next = await countOtherStudents(client, organisationId, position as string[] | null);
          return { next: next === null ? { step: 'end' } : { step: 'seen', position: next } };
        },
      },
      end: { work: end },
    },
  });
}

/** The join skips organisations that are being removed, because they no longer have a row in `tenants`. */
async function findRequests(pool: Pool): Promise<string[]> {
  const { rows: found } = await pool.query<{ organisation_id: string }>(
    `select distinct a.organisation_id from access_requests a join tenants o on o.organisation_id = a.organisation_id
     where ${isUncollected('a.state')}`,
  );
  return found.map(({ organisation_id }) => organisation_id);
}

/**
 * If the organisation already stores too many collected records, or its quota is used up, no request is started until
 * there is room again, because the number of records that a request will collect is not known in advance.
 */
async function start(client: Client, { organisationId }: Place): Promise<Result> {
  const { rows: running } = await client.query(
    `select from access_requests where organisation_id = $1 and state = 'collecting' limit 1`,
    [organisationId],
  );
  if (running.length > 0) return { next: { step: 'expand' } };
  const before = await rewrittenBefore(client, organisationId);
  if (before === undefined) return { next: 'ended' };
  if ((await countKept(client, organisationId)).records >= accessLimits.recordsKeptMax)
    return { next: 'ended' };
  if (await isQuotaUsedUp(client, organisationId)) return { next: 'ended' };
  const { rowCount } = await client.query(
    `update access_requests set state = 'collecting', started_at = $2
     where organisation_id = $1 and state = 'requested' and access_request_id in (
       select access_request_id from (
         select access_request_id, row_number() over first_ones as at, sum(people) over first_ones as ids
         from access_requests where organisation_id = $1 and state = 'requested' and access_request_id < $3
         window first_ones as (order by access_request_id)) as waiting
       where at = 1 or (at <= ${accessLimits.requestsTogetherMax} and ids <= ${accessLimits.idsTogetherMax}))`,
    [organisationId, await databaseTime(client), before],
  );
  return { next: rowCount === 0 ? 'ended' : { step: 'expand' } };
}

async function isQuotaUsedUp(client: Client, organisationId: string): Promise<boolean> {
  const { rows: measured } = await client.query<OrganisationQuota & QuotaUsage>(
    `select o.records_stored_max::float8 as records_stored_max, o.bytes_stored_max::float8 as bytes_stored_max,
       u.records::float8 as records_stored, u.bytes::float8 as bytes_stored
     from organisations o join quota_usage u using (organisation_id) where o.organisation_id = $1`,
    [organisationId],
  );
  return measured.some((own) => quotaOf(own)?.exceeded !== undefined);
}

/** Adds people's other ids, like an erasure does. */
async function expand(
  client: Client,
  { organisationId, position }: Place,
  collection: Collection,
): Promise<Result> {
  const { found, next } = await nextRows(
    client,
    collection,
    tableWith('customers'),
    position as string | null,
  );
  const people = found.map((row) => Object.values(row.people).filter((id) => id !== null));
  const hidden = await collection.hiddenAmong(people.flat());
  const wanted = await wantedAmong(client, collection, people.flat());
  const added = people
    .filter((ids) => !ids.some((id) => hidden.has(id)))
    .flatMap((ids) =>
      ids.flatMap((id) =>
        ids.flatMap((one) => wanted.get(one) ?? []).map(({ request }) => ({ id, request })),
      ),
    );
  const running: ReadonlySet<string> =
    added.length > 0 ? await lockRunning(client, organisationId) : new Set();
  for (const [request, of] of Map.groupBy(added, (one) => one.request))
    if (running.has(request))
      await addIds(client, organisationId, request, [...new Set(of.map(({ id }) => id))]);
  return { next: next === null ? { step: 'rows' } : { step: 'expand', position: next } };
}

async function rows(client: Client, { position }: Place, collection: Collection): Promise<Result> {
  const at = (position ?? { table: 0, after: null }) as { table: number; after: unknown };
  const table = personalTables[at.table] as (typeof personalTables)[number];
  const { found, seen, next } = await collectRows(client, collection, table, at.after);
  await storeCollected(client, collection, table.type, found);
  await storeCollected(client, collection, 'users-seen-together', seen);
  if (next !== null) return { next: { step: 'rows', position: { table: at.table, after: next } } };
  const isLast = at.table === personalTables.length - 1;
  return {
    next: isLast ? { step: 'settle' } : { step: 'rows', position: { table: at.table + 1, after: null } },
  };
}

/** Batches that are not settled yet may have rejections that are to be deleted. */
async function settle(client: Client, { organisationId, position }: Place): Promise<Result> {
  const until = (position as string | null) ?? (await newestUnsettled(client, organisationId));
  if (until === undefined) return { next: { step: 'rejections' } };
  const { done, isSettled } = await settleUpTo(client, organisationId, until);
  return { next: isSettled ? { step: 'rejections' } : { step: 'settle', position: until }, done };
}

async function keys(client: Client, { position }: Place, collection: Collection): Promise<Result> {
  const at = (position ?? { table: 0, after: null }) as { table: number; after: string | null };
  const table = keyTables[at.table] as KeyTable;
  const { found, next } = await collectKeys(client, collection, table, at.after);
  await storeCollected(client, collection, 'idempotency-keys', found);
  if (next !== null) return { next: { step: 'keys', position: { table: at.table, after: next } } };
  const isLast = at.table === keyTables.length - 1;
  return {
    next: isLast ? { step: 'seen' } : { step: 'keys', position: { table: at.table + 1, after: null } },
  };
}

async function end(client: Client, { organisationId }: Place): Promise<Result> {
  await client.query(
    `delete from access_request_ids i using access_requests r
     where i.organisation_id = $1 and r.organisation_id = $1 and r.access_request_id = i.access_request_id
       and r.state = 'collecting'`,
    [organisationId],
  );
  await client.query(
    `update access_requests set state = 'done', after = null, done_at = now()
     where organisation_id = $1 and state = 'collecting'`,
    [organisationId],
  );
  return { next: 'ended' };
}
