import { limits } from '../limits.ts';
import { withoutSorting } from '../postgres/index-order.ts';
import { type AskedPage, type Page, pageOf } from '../postgres/keyset-page.ts';
import type { Pool } from '../postgres/pool.ts';
import { isErasedIn, isVisible } from '../records/tables.ts';
import { isUuid, type Scalar } from '../registry/fields.ts';
import { type Instant, isoOf } from '../registry/times.ts';
import { personalFields } from '../registry/upload-types.ts';
import { firstIdFrom, firstUuid, lastUuid } from '../registry/uuid-v7.ts';
import { type Span, spanBelow } from './interaction-partitions.ts';
import { type StoredInteraction, selected, uuidLiteral } from './interaction-rows.ts';
import { firstInAnySpelling } from './user-id-spellings.ts';

/** Indexed on past days, most selective first. The search uses the first field that occurs in the filter. */
const leads = ['recommendation_id', 'student_id', 'user_id', 'item_id'];

export interface InteractionFilter {
  readonly equal: Readonly<Record<string, Scalar>>;
  /** Includes `eventFrom` but not `eventTo`. */
  readonly eventFrom: Instant | undefined;
  readonly eventTo: Instant | undefined;
}

interface Look {
  readonly organisationId: string;
  readonly filter: InteractionFilter;
  /** Includes `from` but not `below`. */
  readonly below: string;
  readonly from: string;
  readonly isIndexed: boolean;
  readonly isAnyCase: boolean;
}

/**
 * Each query reads a limited number of rows. On past days it uses the most selective field's index, and on the current
 * day the primary key. At the time limit, the page ends, and its cursor points to where the search stopped.
 */
export async function listInteractions(
  pool: Pool,
  organisationId: string,
  filter: InteractionFilter,
  { from, to, cursor, limit }: AskedPage,
): Promise<Page<StoredInteraction>> {
  const endMs = performance.now() + limits.interactionsListMs;
  const oldest = from === undefined ? firstUuid : firstIdFrom(from);
  let below = lower(to === undefined ? undefined : firstIdFrom(to), cursor) ?? lastUuid;
  const anyCaseFrom = isUuid(filter.equal.user_id)
    ? await firstInAnySpelling(pool, organisationId)
    : undefined;
  let found: StoredInteraction[] = [];
  let span: Span | undefined;
  while (below > oldest) {
    if (span === undefined || below <= span.firstId) span = await spanBelow(pool, below);
    if (span === undefined) break;
    const isAnyCase = anyCaseFrom !== undefined && below > anyCaseFrom;
    const end = [span.firstId, oldest, ...(isAnyCase ? [anyCaseFrom] : [])].reduce(higher);
    const { isIndexed } = span;
    const look = { organisationId, filter, below, from: end, isIndexed, isAnyCase };
    // Read one extra row to find out whether there is a next page.
    const wanted = limit + 1 - found.length;
    const rows = await rowsOf(pool, look, wanted);
    found.push(...rows);
    if (rows.length === wanted) return pageOf(found, limit, ({ interaction_id }) => interaction_id);
    const next = (await endOf(pool, look)) ?? end;
    // Interactions received in between make this range end at a higher id. The rows below are found again.
    found = found.filter(({ interaction_id }) => interaction_id >= next);
    below = next;
    if (performance.now() > endMs) return { rows: found, next: below > oldest ? below : null };
  }
  return { rows: found, next: null };
}

function higher(a: string, b: string): string {
  return a > b ? a : b;
}

function lower(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a < b ? a : b;
}

/** `path` selects the rows to read. Calling one of the other conditions adds its value. */
function partsOf({ organisationId, filter, below, from, isIndexed, isAnyCase }: Look) {
  const { equal, eventFrom, eventTo } = filter;
  // The index has each user id in the spelling in which it is stored.
  const isLead = (field: string) => field in equal && !(isAnyCase && field === 'user_id');
  const lead = isIndexed ? leads.find(isLead) : undefined;
  const values: unknown[] = [organisationId];
  const add = (value: unknown) => `$${values.push(value)}`;
  // Rows of other students are shown without a user who is being erased, so a search for that user finds nothing.
  const isHidden = personalFields('interactions')
    .alone.filter((field) => field in equal)
    .map((field) => `and not ${isErasedIn('interactions', field, `${add(equal[field])}::text`)}`);
  const path = `from interactions where organisation_id = $1
    and interaction_id < ${uuidLiteral(below)} and interaction_id >= ${uuidLiteral(from)}
    ${lead === undefined ? '' : `and ${lead} = ${add(equal[lead])}`} ${isHidden.join(' ')} order by interaction_id desc`;
  const others = [
    // If this were an index condition, PostgreSQL would expect it to exclude half of the rows, and sort a whole day.
    () => isVisible('interactions'),
    ...Object.keys(equal)
      .filter((field) => field !== lead)
      .map(
        (field) => () =>
          `${isAnyCase && field === 'user_id' ? 'lower(user_id)' : field} = ${add(equal[field])}`,
      ),
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

/** Undefined if fewer rows are left than a query may read. */
async function endOf(pool: Pool, look: Look): Promise<string | undefined> {
  const { path, values } = partsOf(look);
  const text = `select interaction_id ${path} offset ${limits.interactionRowsPerLookMax - 1} limit 1`;
  const { rows } = await withoutSorting(pool, (client) =>
    client.query<{ interaction_id: string }>(text, values),
  );
  return rows[0]?.interaction_id;
}
