import type { Pool } from '../postgres/pool.ts';
import { firstUuid, lastUuid } from '../registry/uuid-v7.ts';

// Earlier releases stored UUIDs in `user_id` as they were sent. The job `rewriting` gives them one spelling.

/**
 * The id from which the next run rewrites. It is an hour earlier than necessary, because another process's clock may be
 * behind.
 */
export const firstToRewrite = `uuid_floor(user_ids_rewritten_from - interval '1 hour')`;

/**
 * Takes only runs that have finished into account. A run of the version before notes when it started, before it finishes.
 *
 * Returns the id below which erasures and access requests may begin, because they compare ids exactly. Undefined if
 * none may begin yet.
 */
export async function rewrittenBefore(
  db: Pick<Pool, 'query'>,
  organisationId: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ before: string }>(
    `select case when user_ids_rewritten_from is null then '${lastUuid}' else uuid_floor(user_ids_rewritten_from) end as before
     from tenants where organisation_id = $1 and user_ids_rewritten
       and not exists (select from jobs j where j.organisation_id = $1 and j.kind = 'rewriting'
         and j.step = 'rewrite' and j.position ->> 'started' is null)`,
    [organisationId],
  );
  return rows[0]?.before;
}

/** From this interaction on, a UUID in `user_id` may have another spelling. Undefined if none has. */
export async function firstInAnySpelling(
  db: Pick<Pool, 'query'>,
  organisationId: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ first: string | null }>({
    name: 'first user id in any spelling',
    text: `
      select case when user_ids_rewritten then least(${firstToRewrite}, (j.position ->> 'from')::uuid)
        else '${firstUuid}' end as first
      from tenants t left join jobs j on j.organisation_id = t.organisation_id and j.kind = 'rewriting'
      where t.organisation_id = $1`,
    values: [organisationId],
  });
  return rows[0]?.first ?? undefined;
}
