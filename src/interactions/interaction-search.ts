import { limits } from '../limits.ts';
import { withoutSorting } from '../postgres/index-order.ts';
import type { AskedPage } from '../postgres/keyset-page.ts';
import type { Pool } from '../postgres/pool.ts';
import { isVisible } from '../records/tables.ts';
import type { Scalar } from '../registry/fields.ts';
import { type Instant, isoOf } from '../registry/times.ts';
import { firstIdFrom, firstUuid, lastUuid } from '../registry/uuid-v7.ts';
import { type Span, spanBelow } from './interaction-partitions.ts';
import { type StoredInteraction, selected, uuidLiteral } from './interaction-rows.ts';

/**
 * The fields that are indexed on past days, the most selective first: the search goes along the first one in the
 * filter.
 */
const leads = ['recommendation_id', 'student_id', 'user_id', 'item_id'];

export interface InteractionFilter {
  /** Field values that must match. */
  readonly equal: Readonly<Record<string, Scalar>>;
  /** The range of the event's time: from the first, before the second. */
  readonly eventFrom: Instant | undefined;
  readonly eventTo: Instant | undefined;
}

interface Look {
  readonly organisationId: string;
  readonly filter: InteractionFilter;
  /** The range of ids: below the first, from the second on. */
  readonly below: string;
  readonly from: string;
  readonly isIndexed: boolean;
}

/**
 * A page of an organisation's interactions that match the filter, the newest first, and the cursor of the next page. It
 * reads a bounded number of rows at a time: along the index of the most selective field on past days, along the primary
 * key on the current one. At the time limit the page ends with what was found, and its cursor is where the search
 * stopped.
 */
export async function listInteractions(
  pool: Pool,
  organisationId: string,
  filter: InteractionFilter,
  { from, to, cursor, limit }: AskedPage,
): Promise<{ readonly rows: StoredInteraction[]; readonly next: string | null }> {
  const endMs = performance.now() + limits.interactionsListMs;
  const oldest = from === undefined ? firstUuid : firstIdFrom(from);
  let below = lower(to === undefined ? undefined : firstIdFrom(to), cursor) ?? lastUuid;
  let found: StoredInteraction[] = [];
  let span: Span | undefined;
  while (below > oldest) {
    if (span === undefined || below <= span.firstId) span = await spanBelow(pool, below);
    if (span === undefined) break;
    const end = span.firstId > oldest ? span.firstId : oldest;
    const look = { organisationId, filter, below, from: end, isIndexed: span.isIndexed };
    // One more than asked for shows whether there is a next page.
    const wanted = limit + 1 - found.length;
    const rows = await rowsOf(pool, look, wanted);
    found.push(...rows);
    if (rows.length === wanted) {
      const page = found.slice(0, limit);
      return { rows: page, next: page.at(-1)?.interaction_id ?? null };
    }
    const next = (await endOf(pool, look)) ?? end;
    // Interactions received between the two statements move the end up. Rows below it are found again by the next
    // statement.
    found = found.filter(({ interaction_id }) => interaction_id >= next);
    below = next;
    if (performance.now() > endMs) return { rows: found, next: below > oldest ? below : null };
  }
  return { rows: found, next: null };
}

function lower(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a < b ? a : b;
}

/** The rows to read, and the remaining conditions; calling a condition adds its value. */
function partsOf({ organisationId, filter, below, from, isIndexed }: Look) {
  const { equal, eventFrom, eventTo } = filter;
  const lead = isIndexed ? leads.find((field) => field in equal) : undefined;
  const values: unknown[] = [organisationId];
  const add = (value: unknown) => `$${values.push(value)}`;
  const path = `from interactions where organisation_id = $1
    and interaction_id < ${uuidLiteral(below)} and interaction_id >= ${uuidLiteral(from)}
    ${lead === undefined ? '' : `and ${lead} = ${add(equal[lead])}`} order by interaction_id desc`;
  const others = [
    // Not a condition of the path: PostgreSQL would expect it to leave out half of the rows, and rather sort a whole day.
    () => isVisible('interactions'),
    ...Object.keys(equal)
      .filter((field) => field !== lead)
      .map((field) => () => `${field} = ${add(equal[field])}`),
    ...(eventFrom === undefined ? [] : [() => `event_time >= ${add(isoOf(eventFrom))}`]),
    ...(eventTo === undefined ? [] : [() => `event_time < ${add(isoOf(eventTo))}`]),
  ];
  return { path, values, others };
}

async function rowsOf(pool: Pool, look: Look, limit: number): Promise<StoredInteraction[]> {
  const { path, values, others } = partsOf(look);
  const conditions = others.map((condition) => condition()).join(' and ');
  const text = `select ${selected} from (select * ${path} limit ${limits.interactionRowsPerLookMax}) t
    where ${conditions} order by interaction_id desc limit ${limit}`;
  const { rows } = await withoutSorting(pool, (client) => client.query<StoredInteraction>(text, values));
  return rows;
}

/** The last id that was read, if there are more rows than may be read at once. */
async function endOf(pool: Pool, look: Look): Promise<string | undefined> {
  const { path, values } = partsOf(look);
  const text = `select interaction_id ${path} offset ${limits.interactionRowsPerLookMax - 1} limit 1`;
  const { rows } = await withoutSorting(pool, (client) =>
    client.query<{ interaction_id: string }>(text, values),
  );
  return rows[0]?.interaction_id;
}
