import { spanBelow } from '../interactions/interaction-partitions.ts';
import { uuidLiteral } from '../interactions/interaction-rows.ts';
import { firstInAnySpelling } from '../interactions/user-id-spellings.ts';
import { limits } from '../limits.ts';
import { type PersonalTable, personalTables } from '../people/personal-tables.ts';
import type { Pool } from '../postgres/pool.ts';
import { inOneSpelling, isVisible, quote, shownValue } from '../records/tables.ts';
import { isUuid } from '../registry/fields.ts';
import { belongs, mentions } from '../registry/personal.ts';
import { personalFields, type UploadType } from '../registry/upload-types.ts';
import { firstUuid, lastUuid, msOfUuidV7, uuidFloor } from '../registry/uuid-v7.ts';
import type { ErasureMode } from './find-erasures.ts';
import { erasureLimits } from './limits.ts';
import type { ErasureRequest } from './request-erasure.ts';

export interface CountedErasure {
  readonly dry_run: true;
  readonly mode: ErasureMode;
  readonly people: number;
  readonly known: number;
  readonly unknown_customer_ids: readonly string[];
  /** By table. `interactions_unlinked` counts other students' interactions that would lose their `user_id`. */
  readonly rows: Readonly<Record<string, number>>;
  /** False if time ran out. Then there are at least as many rows as counted. */
  readonly complete: boolean;
}

interface Counting {
  readonly pool: Pool;
  readonly organisationId: string;
  readonly ids: Set<string>;
  /** Collected instead of counted, because some customers are found twice. */
  readonly customers: Set<string>;
  interactions: number;
  unlinked: number;
}

/** Returns whether all rows were counted before the time was over. */
type CountRows = (counting: Counting, endMs: number) => Promise<boolean>;

/** Each statement reads a limited number of rows and gives its connection back. */
export async function countErasure(
  pool: Pool,
  { organisationId, mode, customerIds, userIds }: Omit<ErasureRequest, 'keyId'>,
): Promise<CountedErasure> {
  const endMs = performance.now() + erasureLimits.countMs;
  const named = [...customerIds, ...userIds];
  const counting: Counting = {
    pool,
    organisationId,
    ids: new Set(named),
    customers: new Set(),
    interactions: 0,
    unlinked: 0,
  };
  await findNamedCustomers(counting, named);
  const unknown = customerIds.filter((id) => !counting.customers.has(id));
  const known = customerIds.length - unknown.length;
  const counted: Record<string, number> = {};
  const others = personalTables.filter(({ type }) => type !== 'customers' && type !== 'interactions');
  const steps: CountRows[] = [
    countCustomers,
    countInteractions,
    ...others.map(
      (table): CountRows =>
        async (one, stepEndMs) => {
          const { count, isWhole } = await countTable(one, table, stepEndMs);
          counted[table.name] = count;
          return isWhole;
        },
    ),
  ];
  let complete = true;
  // Each step has its share of the time that is left, so that a large table does not hide what is in the others.
  for (const [at, step] of steps.entries()) {
    const nowMs = performance.now();
    const isWhole = await step(counting, nowMs + (endMs - nowMs) / (steps.length - at));
    complete &&= isWhole;
  }
  const { customers, interactions, unlinked } = counting;
  const rows = { customers: customers.size, ...counted, interactions, interactions_unlinked: unlinked };
  return {
    dry_run: true,
    mode,
    people: named.length,
    known,
    unknown_customer_ids: unknown,
    rows,
    complete,
  };
}

function slicesOf(ids: Iterable<string>): string[][] {
  const all = [...ids];
  const count = Math.ceil(all.length / erasureLimits.idsPerStatement);
  return Array.from({ length: count }, (_, at) =>
    all.slice(at * erasureLimits.idsPerStatement, (at + 1) * erasureLimits.idsPerStatement),
  );
}

async function findNamedCustomers(
  { pool, organisationId, ids, customers }: Counting,
  named: readonly string[],
): Promise<void> {
  for (const slice of slicesOf(named.filter(isUuid))) {
    const { rows } = await pool.query<{ customer_id: string; user_id: string | null }>({
      name: 'customers of dry erasure',
      text: `
        select customer_id, user_id from customers t
        where organisation_id = $1 and customer_id = any ($2::uuid[]) and ${isVisible('customers')}`,
      values: [organisationId, slice],
    });
    for (const { customer_id, user_id } of rows) {
      customers.add(customer_id);
      ids.add(customer_id);
      if (user_id !== null) ids.add(user_id);
    }
  }
}

const columnOf = (field: string) => `t.${quote(field)}`;

/** Never null. The subquery uses a hash table. With an array, PostgreSQL would compare each row with each id. */
const isErased = (field: string) =>
  `coalesce(${columnOf(field)}::text in (select unnest($2::text[])), false)`;

const isOwn = (type: UploadType) =>
  `${belongs(personalFields(type), isErased, columnOf)} and ${isVisible(type)}`;

/** Rows of others that would lose a value which is still shown. */
const isUnlinked = (type: UploadType) => {
  const shown = personalFields(type).alone.map((field) => `${shownValue(type, field)} is not null`);
  return `${mentions(personalFields(type), isErased, columnOf)} and ${isVisible(type)} and (${shown.join(' or ')})`;
};

/**
 * Finds all customers of erased users and adds their ids to `ids`, so that later steps count those customers' rows too.
 * This reads all customers, because they have no index by user.
 */
const countCustomers: CountRows = async ({ pool, organisationId, ids, customers }, endMs) => {
  const wanted = [...ids];
  for (let after: string | null = firstUuid; after !== null; ) {
    // Very many such customers are probably a mistake in the data, and their ids would not fit into a statement.
    if (performance.now() > endMs || ids.size > erasureLimits.countedIdsMax) return false;
    const { rows }: { rows: { id: string; is_own: boolean }[] } = await pool.query(
      `with s as materialized (
         select customer_id, user_id from customers
         where organisation_id = $1 and customer_id > $3 order by customer_id limit ${limits.erasureRowsPerScan})
       (select t.customer_id as id, true as is_own from s t where ${isOwn('customers')} limit ${erasureLimits.countedIdsMax})
       union all
       (select customer_id, false from s order by customer_id offset ${limits.erasureRowsPerScan - 1})`,
      [organisationId, wanted, after],
    );
    for (const { id, is_own } of rows)
      if (is_own) {
        customers.add(id);
        ids.add(id);
      }
    after = rows.find(({ is_own }) => !is_own)?.id ?? null;
  }
  return true;
};

/** In primary key order, because there is no index by person. */
async function countTable(
  { pool, organisationId, ids }: Counting,
  { type, name, id, identifying }: PersonalTable,
  endMs: number,
): Promise<{ readonly count: number; readonly isWhole: boolean }> {
  // All ids are sent with each page, because each slice of them would need its own scan.
  const wanted = [...ids];
  let count = 0;
  for (let after: string | null = firstUuid; after !== null; ) {
    if (performance.now() > endMs) return { count, isWhole: false };
    const { rows }: { rows: { count: number; after: string | null }[] } = await pool.query(
      `with s as materialized (
         select ${[id, ...identifying].join(', ')} from ${name}
         where organisation_id = $1 and ${id} > $3 order by ${id} limit ${limits.erasureRowsPerScan})
       select (select count(*)::integer from s t where ${isOwn(type)}) as count,
         (select ${id} from s order by ${id} offset ${limits.erasureRowsPerScan - 1}) as after`,
      [organisationId, wanted, after],
    );
    count += rows[0]?.count ?? 0;
    after = rows[0]?.after ?? null;
  }
  return { count, isWhole: true };
}

const countInteractions: CountRows = async (counting, endMs) => {
  const anySpellingFrom = await firstInAnySpelling(counting.pool, counting.organisationId);
  for (let below = lastUuid; ; ) {
    if (performance.now() > endMs) return false;
    const span = await spanBelow(counting.pool, below);
    if (!span) return true;
    // The index has each user id in the spelling in which it is stored.
    const isAnySpelling = anySpellingFrom !== undefined && below > anySpellingFrom;
    const firstId = isAnySpelling && anySpellingFrom > span.firstId ? anySpellingFrom : span.firstId;
    const range = { firstId, below };
    const isWhole =
      span.isIndexed && !isAnySpelling
        ? await countIndexed(counting, range, endMs)
        : await countScanned(counting, range, isAnySpelling, endMs);
    if (!isWhole) return false;
    below = firstId;
  }
};

interface Range {
  readonly firstId: string;
  readonly below: string;
}

function inRange({ firstId, below }: Range): string {
  return `t.organisation_id = $1 and t.interaction_id >= ${uuidLiteral(firstId)} and t.interaction_id < ${uuidLiteral(below)}`;
}

const isOfUuids = (field: string) => field === 'student_id';

const interactionFields = personalFields('interactions');
const interactionColumns = interactionFields.identifying.map(columnOf).join(', ');
const columnsInOneSpelling = interactionFields.identifying
  .map((field) =>
    isOfUuids(field) ? columnOf(field) : `${inOneSpelling(columnOf(field))} as ${quote(field)}`,
  )
  .join(', ');

/** For days that have no index yet, and while user ids are being rewritten. */
async function countScanned(
  counting: Counting,
  range: Range,
  isAnySpelling: boolean,
  endMs: number,
): Promise<boolean> {
  const wanted = [...counting.ids];
  for (let { below } = range; ; ) {
    if (performance.now() > endMs) return false;
    const { rows } = await counting.pool.query<{ own: number; unlinked: number; after: string | null }>(
      `with s as materialized (
         select t.interaction_id, ${isAnySpelling ? columnsInOneSpelling : interactionColumns} from interactions t
         where ${inRange({ ...range, below })} order by t.interaction_id desc limit ${limits.erasureRowsPerScan})
       select count(*) filter (where ${isOwn('interactions')})::integer as own,
         count(*) filter (where ${isUnlinked('interactions')})::integer as unlinked,
         (select interaction_id from s order by interaction_id desc offset ${limits.erasureRowsPerScan - 1}) as after
       from s t`,
      [counting.organisationId, wanted],
    );
    const [{ own, unlinked, after } = { own: 0, unlinked: 0, after: null }] = rows;
    counting.interactions += own;
    counting.unlinked += unlinked;
    if (after === null) return true;
    below = after;
  }
}

/** For past days, by the index of each field that contains people's ids. */
async function countIndexed(counting: Counting, range: Range, endMs: number): Promise<boolean> {
  for (const field of interactionFields.identifying)
    for (const slice of slicesOf(isOfUuids(field) ? [...counting.ids].filter(isUuid) : counting.ids))
      if (!(await countByField(counting, range, field, slice, endMs))) return false;
  return true;
}

/**
 * A row is counted only by the first field with an erased id. If a statement reads too many rows, each half of the time
 * range is counted instead. Reading them in order would tempt PostgreSQL into scanning all interactions.
 */
async function countByField(
  counting: Counting,
  range: Range,
  field: string,
  slice: readonly string[],
  endMs: number,
): Promise<boolean> {
  if (performance.now() > endMs) return false;
  const isFirst = interactionFields.identifying
    .slice(0, interactionFields.identifying.indexOf(field))
    .map((earlier) => `not ${isErased(earlier)} and `)
    .join('');
  const { rows } = await counting.pool.query<{ read: number; own: number; unlinked: number }>(
    `select count(*)::integer as read, count(*) filter (where ${isFirst}${isOwn('interactions')})::integer as own,
       count(*) filter (where ${isFirst}${isUnlinked('interactions')})::integer as unlinked
     from (
       select ${interactionColumns} from interactions t
       where ${inRange(range)} and ${columnOf(field)} = any ($3::${isOfUuids(field) ? 'uuid' : 'text'}[])
       limit ${limits.erasureRowsPerScan}) as t`,
    [counting.organisationId, [...counting.ids], slice],
  );
  const [{ read, own, unlinked } = { read: 0, own: 0, unlinked: 0 }] = rows;
  const middle = uuidFloor(Math.floor((msOfUuidV7(range.firstId) + msOfUuidV7(range.below)) / 2));
  const canSplit = range.firstId < middle && middle < range.below;
  if (read === limits.erasureRowsPerScan && canSplit) {
    const newer = { ...range, firstId: middle };
    const older = { ...range, below: middle };
    return (
      (await countByField(counting, newer, field, slice, endMs)) &&
      (await countByField(counting, older, field, slice, endMs))
    );
  }
  counting.interactions += own;
  counting.unlinked += unlinked;
  return read < limits.erasureRowsPerScan;
}
