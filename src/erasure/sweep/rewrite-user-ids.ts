import { spanBelow } from '../../interactions/interaction-partitions.ts';
import { uuidLiteral } from '../../interactions/interaction-rows.ts';
import { firstToRewrite } from '../../interactions/user-id-spellings.ts';
import { type JobKind, jobKind } from '../../jobs/job.ts';
import type { Fence } from '../../jobs/pass-fence.ts';
import { limits } from '../../limits.ts';
import type { Client } from '../../postgres/pool.ts';
import { beginAgainUnless, queryRow, queryRows } from '../../postgres/transactions.ts';
import { firstUuid, lastUuid } from '../../registry/uuid-v7.ts';
import { passWriters } from '../add-ids.ts';
import { rowsDone } from './sweep-rows.ts';

export interface Rewritten {
  readonly changed: { readonly count: number; readonly ids: readonly string[] };
  readonly next: string | null;
}

/**
 * Rewrites the UUIDs that earlier releases stored in another spelling, from the newest interaction to the oldest. A
 * step starts below the id in `position`, and stops at `from`.
 */
export async function rewriteUserIds(
  client: Client,
  organisationId: string,
  position: string | null,
  from: string = firstUuid,
): Promise<Rewritten> {
  const below = position ?? lastUuid;
  const span = below > from ? await spanBelow(client, below) : undefined;
  if (!span) return { changed: { count: 0, ids: [] }, next: null };
  const end = span.firstId > from ? span.firstId : from;
  const { rows } = await client.query<{ id: string; is_last: boolean }>(
    `with s as materialized (
       select interaction_id as id, user_id from interactions t
       where t.organisation_id = $1 and t.interaction_id >= ${uuidLiteral(end)}
         and t.interaction_id < ${uuidLiteral(below)}
       order by interaction_id desc limit ${limits.erasureRowsPerScan})
     (select s.id, false as is_last from s
      where s.user_id ~ '^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$' and s.user_id ~ '[A-F]'
      order by s.id desc limit ${limits.erasureRowsPerStep})
     union all
     (select s.id, true from s order by s.id desc offset ${limits.erasureRowsPerScan - 1})`,
    [organisationId],
  );
  const ids = rows.flatMap(({ id, is_last }) => (is_last ? [] : id)).toSorted();
  if (ids.length > 0) {
    const { changed } = await queryRow<{ changed: string }>(client, {
      text: 'select rewrite_user_ids($1, $2, $3, $4) as changed',
      values: [organisationId, ids, ids[0], ids.at(-1)],
    });
    beginAgainUnless(Number(changed) === ids.length, 'interactions were changed meanwhile');
  }
  const scanned = rows.find(({ is_last }) => is_last)?.id ?? end;
  const next = ids.length === limits.erasureRowsPerStep ? (ids[0] as string) : scanned;
  return { changed: { count: ids.length, ids }, next };
}

/**
 * Notes that all user ids are rewritten: for good if `isLast` is set, and otherwise those that were stored before the run
 * started.
 */
export async function noteUserIdsRewritten(
  client: Client,
  organisationId: string,
  { isLast = false, started }: { readonly isLast?: boolean; readonly started?: string } = {},
): Promise<void> {
  const text = `
    update tenants set user_ids_rewritten = true,
      user_ids_rewritten_from =
        case when not $2::boolean then coalesce($3::timestamptz, user_ids_rewritten_from) end
    where organisation_id = $1`;
  await queryRows(client, { text, values: [organisationId, isLast, started] }, 1);
}

/** Processes of an earlier release may still store user ids in any spelling for this long. */
const mixedFor = `interval '1 day'`;

interface RewritingPlace {
  /** Null for the newest interaction. */
  readonly below: string | null;
  readonly from: string;
  readonly isLast: boolean;
  /** Missing in runs of the version before, which noted it in `tenants` already. */
  readonly started?: string;
}

interface Begun {
  readonly first: string | null;
  readonly is_last: boolean | null;
  readonly started: string;
}

/** Starts a run over all interactions or, if a run has already finished, over those received since it started. */
async function begin(client: Client, organisationId: string): Promise<RewritingPlace> {
  const { first, is_last, started } = await queryRow<Begun>(client, {
    text: `
      select case when user_ids_rewritten then ${firstToRewrite} end as first, now()::text as started,
        user_ids_rewritten and user_ids_rewritten_from < now() - ${mixedFor} as is_last
      from tenants where organisation_id = $1`,
    values: [organisationId],
  });
  // After a run that has finished, erasures from before it may begin while this one runs. The update also locks the row,
  // which waits for erasures whose ids are older than this run.
  const text = `
    update tenants set
      user_ids_rewritten_from = case when user_ids_rewritten then user_ids_rewritten_from else $2::timestamptz end
    where organisation_id = $1`;
  await queryRows(client, { text, values: [organisationId, started] }, 1);
  return { below: null, from: first ?? firstUuid, isLast: is_last === true, started };
}

/** Older processes may store more, so the newest interactions are rewritten before each sweep and collection, and a day later. */
export const rewriting: JobKind = jobKind<'begin' | 'fence' | 'rewrite'>({
  name: 'rewriting',
  first: 'begin',
  async find(pool) {
    const { rows } = await pool.query<{ organisation_id: string }>(
      `select t.organisation_id from tenants t
       where not t.user_ids_rewritten or t.user_ids_rewritten_from < now() - ${mixedFor}
         or t.user_ids_rewritten_from is not null and (exists (
         select from erasures e where e.organisation_id = t.organisation_id and e.state = 'requested'
           and e.erasure_id >= uuid_floor(t.user_ids_rewritten_from)) or exists (
         select from access_requests a where a.organisation_id = t.organisation_id and a.state = 'requested'
           and a.access_request_id >= uuid_floor(t.user_ids_rewritten_from))) limit 1000`,
    );
    return rows.map(({ organisation_id }) => organisation_id);
  },
  steps: {
    begin: {
      work: async (client, { organisationId }) => ({
        next: { step: 'fence', position: await begin(client, organisationId) },
      }),
    },
    // Older processes may be about to commit user ids of people whose erasure was requested before this run.
    fence: {
      async wait(pool, { position }) {
        const at = position as Fence<RewritingPlace>;
        const next = await passWriters(pool, at);
        const { awaited: _, ...place } = at;
        return next === 'passed' ? { step: 'rewrite', position: place } : next;
      },
    },
    rewrite: {
      async work(client, { organisationId, position }) {
        const place = position as RewritingPlace | null;
        // The version before begins with this step.
        if (place === null) return { next: { step: 'begin' } };
        const { changed, next } = await rewriteUserIds(client, organisationId, place.below, place.from);
        if (next === null) await noteUserIdsRewritten(client, organisationId, place);
        return {
          next: next === null ? 'ended' : { step: 'rewrite', position: { ...place, below: next } },
          done: changed.count === 0 ? [] : [rowsDone(organisationId, 'interactions', changed.ids, 0)],
        };
      },
    },
  },
});
