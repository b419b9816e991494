// people/: finds the data stored about people, for erasures and access requests.

import { type Span, spanBelow } from '../interactions/interaction-partitions.ts';
import { uuidLiteral } from '../interactions/interaction-rows.ts';
import { limits } from '../limits.ts';
import { isUuid } from '../registry/fields.ts';
import { firstUuid, lastUuid } from '../registry/uuid-v7.ts';
import { type Found, type Search, type Searched, wantedIds } from './people.ts';
import { type PersonalTable, tableWith } from './personal-tables.ts';

/** A row with an id that is searched for, and the values of all its identifying fields. */
export interface RowOfPeople {
  readonly id: string;
  readonly people: Readonly<Record<string, string | null>>;
}

const interactions = tableWith('interactions');

function peopleIn({ identifying }: PersonalTable): string {
  return `jsonb_build_object(${identifying.map((column) => `'${column.replaceAll('"', '')}', t.${column}::text`).join(', ')})`;
}

type Scanned = RowOfPeople | { readonly id: string; readonly people: null };

/** `next` is the last row of a full scan, or the last row found if more rows have wanted ids than a step handles. */
async function matching(
  db: Searched,
  search: Search,
  scanned: string,
  order: 'asc' | 'desc',
  values: readonly unknown[],
): Promise<Found<RowOfPeople>> {
  const text = `with s as materialized (${scanned})
    (select distinct s.id, s.people from s cross join jsonb_each_text(s.people) as p(field, id)
     join (select i.id from ${wantedIds(search)}) as w on w.id = p.id
     order by s.id ${order} limit ${limits.erasureRowsPerStep + 1})
    union all
    (select s.id, null from s order by s.id ${order} offset ${limits.erasureRowsPerScan - 1})`;
  const { rows } = await db.query<Scanned>(text, [search.organisationId, ...values]);
  const found = rows.filter((row): row is RowOfPeople => row.people !== null);
  found.sort((one, other) => (one.id < other.id === (order === 'asc') ? -1 : 1));
  const last = rows.find(({ people }) => people === null);
  if (found.length <= limits.erasureRowsPerStep) return { found, next: last?.id ?? null };
  const some = found.slice(0, limits.erasureRowsPerStep);
  return { found: some, next: some.at(-1)?.id ?? null };
}

/** Reads a limited number of rows in primary key order, because additional indexes would slow down uploads. */
export async function nextRows(
  db: Searched,
  search: Search,
  table: PersonalTable,
  after: string | null,
): Promise<Found<RowOfPeople>> {
  const scanned = `
    select t.${table.id} as id, ${peopleIn(table)} as people from ${table.name} t
    where t.organisation_id = $1 and t.${table.id} > $2 order by t.${table.id} limit ${limits.erasureRowsPerScan}`;
  return matching(db, search, scanned, 'asc', [after ?? firstUuid]);
}

/**
 * Where the search continues. It goes from the newest day to the oldest. On days with indexes, each step searches for a
 * limited number of people.
 */
export interface InteractionsPlace {
  readonly below: string;
  /** If the search has begun on days with indexes below `below`. Earlier releases did not save it, so the days begin again. */
  readonly within?: PeoplePlace;
}

interface PeoplePlace {
  /** On these days only, because a day that gets its indexes in between was not searched for the first people. */
  readonly firstId: string;
  /** People up to and including this id are done. */
  readonly afterPerson: string;
  /**
   * For the people after `afterPerson`, interactions from this id on are done. Not used if the caller erases the rows.
   */
  readonly belowOfThese?: string;
}

/** If the caller erases the rows, they are not found again, so they need not be sorted. */
export async function nextInteractions(
  db: Searched,
  search: Search,
  place: InteractionsPlace | null,
  isErasing: boolean,
): Promise<Found<RowOfPeople, InteractionsPlace>> {
  const { below, within } = place ?? { below: lastUuid };
  const span = within ? { firstId: within.firstId, isIndexed: true } : await spanBelow(db, below);
  if (!span) return { found: [], next: null };
  if (!span.isIndexed) return scanInteractions(db, search, span, below);
  const { firstId } = span;
  const { afterPerson, belowOfThese = below } = within ?? { afterPerson: '' };
  const { rows: people } = await db.query<{ id: string }>(
    `select distinct i.id from ${wantedIds(search)} and i.id > $2 order by i.id limit ${limits.peoplePerSearch}`,
    [search.organisationId, afterPerson],
  );
  const ids = people.map(({ id }) => id);
  const found = ids.length === 0 ? [] : await indexed(db, search, span, belowOfThese, ids, isErasing);
  if (found.length === limits.erasureRowsPerStep) {
    const last = isErasing ? {} : { belowOfThese: found.at(-1)?.id as string };
    return { found, next: { below, within: { firstId, afterPerson, ...last } } };
  }
  const last = ids.length === limits.peoplePerSearch ? ids.at(-1) : undefined;
  const next = last === undefined ? { below: firstId } : { below, within: { firstId, afterPerson: last } };
  return { found, next };
}

async function indexed(
  db: Searched,
  { organisationId }: Search,
  span: Span,
  below: string,
  ids: readonly string[],
  isErasing: boolean,
): Promise<RowOfPeople[]> {
  const range = rangeOf(span, below);
  const people = peopleIn(interactions);
  const either = `
    select t.interaction_id as id, ${people} as people from interactions t
    where ${range} and t.student_id = any ($2::uuid[])
    union all
    select t.interaction_id, ${people} from interactions t
    where ${range} and t.user_id = any ($3::text[]) and (t.student_id = any ($2::uuid[])) is not true`;
  const limit = `limit ${limits.erasureRowsPerStep}`;
  const { rows } = await db.query<RowOfPeople>(
    // Materialised, because PostgreSQL would otherwise scan all interactions to find these rows in order.
    isErasing
      ? `${either} ${limit}`
      : `with found as materialized (${either}) select id, people from found order by id desc ${limit}`,
    [organisationId, ids.filter(isUuid), ids],
  );
  return rows;
}

function rangeOf({ firstId }: Span, below: string): string {
  return `t.organisation_id = $1 and t.interaction_id >= ${uuidLiteral(firstId)} and t.interaction_id < ${uuidLiteral(below)}`;
}

/** For days that have no index yet. */
async function scanInteractions(
  db: Searched,
  search: Search,
  span: Span,
  below: string,
): Promise<Found<RowOfPeople, InteractionsPlace>> {
  const scanned = `
    select t.interaction_id as id, ${peopleIn(interactions)} as people from interactions t
    where ${rangeOf(span, below)} order by t.interaction_id desc limit ${limits.erasureRowsPerScan}`;
  const { found, next } = await matching(db, search, scanned, 'desc', []);
  return { found, next: { below: next ?? span.firstId } };
}
