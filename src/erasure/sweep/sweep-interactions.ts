import { spanBelow } from '../../interactions/interaction-partitions.ts';
import { uuidLiteral } from '../../interactions/interaction-rows.ts';
import { limits } from '../../limits.ts';
import type { Pool } from '../../postgres/pool.ts';
import { isUuid } from '../../registry/fields.ts';
import { lastUuid } from '../../registry/uuid-v7.ts';
import type { PersonalTable } from '../erasure-functions.ts';
import type { FoundRow, Last, Sweep } from './sweep-step.ts';

/** An interaction of a person, with the user that it names. */
export interface FoundInteraction extends FoundRow {
  readonly user_id: string | null;
}

export interface NextInteractions {
  readonly found: readonly FoundInteraction[];
  /** Ids from here on are done; null when all are. */
  readonly after: string | null;
}

/**
 * Finds the next interactions of people, the newest days first: along the indexes by student and user on past days, and among all
 * rows of the days that have no such index yet. What an index finds is found again until it is erased.
 */
export async function nextInteractions(
  pool: Pool,
  sweep: Sweep,
  _: PersonalTable,
  before: string | null,
): Promise<NextInteractions> {
  const below = before ?? lastUuid;
  const span = await spanBelow(pool, below);
  if (!span) return { found: [], after: null };
  if (!span.isIndexed) return scan(pool, sweep, span.firstId, below);
  const range = rangeOf(span.firstId, below);
  const { rows } = await pool.query<{ id: string; user_id: string | null; student_id: string | null }>(
    `select interaction_id as id, user_id, student_id from interactions t
     where ${range} and t.student_id = any ($2::uuid[])
     union all
     select interaction_id, user_id, student_id from interactions t
     where ${range} and t.user_id = any ($3::text[]) and (t.student_id = any ($2::uuid[])) is not true
     limit ${limits.erasureRowsPerStep}`,
    [sweep.organisationId, [...sweep.ids.keys()].filter(isUuid), [...sweep.ids.keys()]],
  );
  const found = rows.map(({ id, user_id, student_id }) => ({
    id,
    user_id,
    erasure_id: (sweep.ids.get(student_id ?? '') ?? sweep.ids.get(user_id ?? '')) as string,
  }));
  return { found, after: rows.length < limits.erasureRowsPerStep ? span.firstId : below };
}

/** Finds the users that interactions name together with these people, each once for a range of past days. */
export async function nextUsers(
  pool: Pool,
  sweep: Sweep,
  before: string | null,
): Promise<{ readonly found: readonly Omit<FoundInteraction, 'id'>[]; readonly after: string | null }> {
  const below = before ?? lastUuid;
  const span = await spanBelow(pool, below);
  if (!span) return { found: [], after: null };
  if (!span.isIndexed) return scan(pool, sweep, span.firstId, below);
  const { rows } = await pool.query<{ user_id: string; student_id: string }>(
    `select distinct user_id, student_id from interactions t
     where ${rangeOf(span.firstId, below)} and t.student_id = any ($2::uuid[]) and user_id is not null`,
    [sweep.organisationId, [...sweep.ids.keys()].filter(isUuid)],
  );
  const found = rows.map(({ user_id, student_id }) => ({
    user_id,
    erasure_id: sweep.ids.get(student_id) as string,
  }));
  return { found, after: span.firstId };
}

function rangeOf(first: string, below: string): string {
  return `t.organisation_id = $1 and t.interaction_id >= ${uuidLiteral(first)} and t.interaction_id < ${uuidLiteral(below)}`;
}

/** Reads rows of days without indexes, from the newest. */
async function scan(pool: Pool, sweep: Sweep, firstId: string, below: string): Promise<NextInteractions> {
  const scanned = `
    select interaction_id as id, user_id, student_id from interactions t
    where ${rangeOf(firstId, below)} order by interaction_id desc limit ${limits.erasureRowsPerScan}`;
  const { rows } = await pool.query<FoundInteraction | Last>(
    `with s as materialized (${scanned})
     (select distinct on (s.id) s.id, s.user_id, e.erasure_id
      from s cross join unnest(array[s.user_id, s.student_id::text]) as p(id)
      join erasure_ids e on e.organisation_id = $1 and e.id = p.id
      where e.erasure_id = any ($2::uuid[]))
     union all
     (select s.id, null, null from s order by s.id desc offset ${limits.erasureRowsPerScan - 1})`,
    [sweep.organisationId, [...sweep.modes.keys()]],
  );
  return {
    found: rows.filter((row): row is FoundInteraction => row.erasure_id !== null),
    after: rows.find(({ erasure_id }) => erasure_id === null)?.id ?? firstId,
  };
}
