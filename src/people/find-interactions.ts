import { type Span, spanBelow } from '../interactions/interaction-partitions.ts';
import { uuidLiteral } from '../interactions/interaction-rows.ts';
import { limits } from '../limits.ts';
import { isUuid } from '../registry/fields.ts';
import { lastUuid } from '../registry/uuid-v7.ts';
import type { Found, People, Searched } from './people.ts';

/** An interaction that involves one of these people. */
export interface InteractionOfPeople {
  readonly id: string;
  readonly user_id: string | null;
  readonly student_id: string | null;
}

/**
 * Finds people's next interactions, starting with the newest days. Past days are searched by the student and user
 * indexes, and days that have no such index yet are scanned. `after` is the id below which the next search starts. If
 * `isInOrder` is set, the newest interactions on past days are also returned first. Otherwise, each search starts at the
 * same position and relies on the caller to erase the rows that it found, which is faster.
 */
export async function nextInteractions(
  db: Searched,
  people: People,
  before: string | null,
  isInOrder: boolean,
): Promise<Found<InteractionOfPeople>> {
  const below = before ?? lastUuid;
  const span = await spanBelow(db, below);
  if (!span) return { found: [], after: null };
  if (!span.isIndexed) return scan(db, people, span, below);
  const range = rangeOf(span, below);
  const limit = `limit ${limits.erasureRowsPerStep}`;
  const indexed = `
    select interaction_id as id, user_id, student_id from interactions t
    where ${range} and t.student_id = any ($2::uuid[])
    union all
    select interaction_id, user_id, student_id from interactions t
    where ${range} and t.user_id = any ($3::text[]) and (t.student_id = any ($2::uuid[])) is not true`;
  const { rows: found } = await db.query<InteractionOfPeople>(
    // The result is materialised, because PostgreSQL would otherwise scan all interactions to find these rows in order.
    isInOrder
      ? `with found as materialized (${indexed}) select id, user_id, student_id from found order by id desc ${limit}`
      : `${indexed} ${limit}`,
    [people.organisationId, uuidsOf(people), [...people.ids.keys()]],
  );
  if (found.length < limits.erasureRowsPerStep) return { found, after: span.firstId };
  return { found, after: isInOrder ? (found.at(-1)?.id ?? null) : below };
}

/** A user in an interaction with a student. */
export type UserOfPeople = Omit<InteractionOfPeople, 'id'>;

/** Finds the users who appear in these people's interactions. A user may be returned again for another range of days. */
export async function nextUsers(
  db: Searched,
  people: People,
  before: string | null,
): Promise<Found<UserOfPeople>> {
  const below = before ?? lastUuid;
  const span = await spanBelow(db, below);
  if (!span) return { found: [], after: null };
  if (!span.isIndexed) return scan(db, people, span, below);
  const { rows } = await db.query<UserOfPeople>(
    `select distinct user_id, student_id from interactions t
     where ${rangeOf(span, below)} and t.student_id = any ($2::uuid[]) and user_id is not null`,
    [people.organisationId, uuidsOf(people)],
  );
  return { found: rows, after: span.firstId };
}

function uuidsOf({ ids }: People): string[] {
  return [...ids.keys()].filter(isUuid);
}

function rangeOf({ firstId }: Span, below: string): string {
  return `t.organisation_id = $1 and t.interaction_id >= ${uuidLiteral(firstId)} and t.interaction_id < ${uuidLiteral(below)}`;
}

/** Scans days that have no index yet, newest rows first. */
async function scan(
  db: Searched,
  { organisationId, idTable }: People,
  span: Span,
  below: string,
): Promise<Found<InteractionOfPeople>> {
  const scanned = `
    select interaction_id as id, user_id, student_id from interactions t
    where ${rangeOf(span, below)} order by interaction_id desc limit ${limits.erasureRowsPerScan}`;
  const { rows } = await db.query<InteractionOfPeople & { readonly is_last: boolean }>(
    `with s as materialized (${scanned})
     (select distinct s.id, s.user_id, s.student_id, false as is_last
      from s cross join unnest(array[s.user_id, s.student_id::text]) as p(id)
      join ${idTable} e on e.organisation_id = $1 and e.id = p.id)
     union all
     (select s.id, null, null, true from s order by s.id desc offset ${limits.erasureRowsPerScan - 1})`,
    [organisationId],
  );
  return {
    found: rows.filter(({ is_last }) => !is_last),
    after: rows.find(({ is_last }) => is_last)?.id ?? span.firstId,
  };
}
