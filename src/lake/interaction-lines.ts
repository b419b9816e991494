import { uuidLiteral } from '../interactions/interaction-rows.ts';
import { withoutSorting } from '../postgres/index-order.ts';
import { exactTime } from '../postgres/iso-time.ts';
import { type Pool, withClient } from '../postgres/pool.ts';
import { takeRows } from '../postgres/take-rows.ts';
import { isVisible, quote, shownValue } from '../records/tables.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import type { InteractionTable } from './interaction-table.ts';
import { lakeLimits } from './limits.ts';
import type { Spool } from './spool.ts';
import { lakeSchema } from './table/lake-schema.ts';

type TakeLine = (id: string, line: string) => void;

const stored = lakeSchema('interactions').columns.filter(({ name }) => name !== 'created');
const selected = stored.map(({ name }) => quote(name)).join(', ');

/** PostgreSQL builds the JSON, so that this process need not parse rows. Empty if the person is being erased. */
const asJson = `case when ${isVisible('interactions')} then (select row_to_json(r)::text from (
  select ${stored
    .map(({ name, type }) => {
      const value = shownValue('interactions', name);
      return `${type === 'timestamp' ? exactTime(value) : value} as ${quote(name)}`;
    })
    .join(', ')}) r) else '' end`;

/** The time of receipt is part of the id, but PostgreSQL 15 cannot extract it from a UUID. */
function withCreated(id: string, json: string): string {
  return `{"created":"${timeOfUuidV7(id)}",${json.slice(1)}`;
}

/** In any order, and without interactions that were erased or have expired. */
export async function takeByIds(
  pool: Pool,
  organisationId: string,
  ids: readonly string[],
  take: TakeLine,
): Promise<void> {
  if (ids.length === 0) return;
  const sorted = ids.toSorted();
  const text = `
    select t.interaction_id, ${asJson} from interactions t
    where t.organisation_id = $1 and t.interaction_id = any ($2::uuid[])
      and t.interaction_id >= ${uuidLiteral(sorted[0] ?? '')} and t.interaction_id <= ${uuidLiteral(sorted.at(-1) ?? '')}`;
  await withClient(pool, (client) =>
    takeRows(client, { text, values: [organisationId, ids] }, (id, json) => {
      if (json !== '') take(id, withCreated(id, json));
    }),
  );
}

/** Returns the ids that are still stored and whose person is not being erased. */
export async function storedAmong(
  pool: Pool,
  organisationId: string,
  ids: readonly string[],
): Promise<string[]> {
  const stored: string[] = [];
  await takeByIds(pool, organisationId, ids, (id) => stored.push(id));
  return stored;
}

/** Returns the last id that was read, or undefined at the end. The range must be within one partition. */
async function takeStored(
  pool: Pool,
  organisationId: string,
  { after, below, count }: { readonly after: string; readonly below: string; readonly count: number },
  take: TakeLine,
): Promise<string | undefined> {
  const text = `
    select t.interaction_id, ${asJson} from (
      select ${selected} from interactions
      where organisation_id = $1 and interaction_id > ${uuidLiteral(after)} and interaction_id < ${uuidLiteral(below)}
      order by interaction_id limit ${Math.trunc(count)}) t
    order by t.interaction_id`;
  let last: string | undefined;
  const rows = await withoutSorting(pool, (client) =>
    takeRows(client, { text, values: [organisationId] }, (id, json) => {
      last = id;
      if (json !== '') take(id, withCreated(id, json));
    }),
  );
  return rows === count ? last : undefined;
}

async function partitionEndsAfter(pool: Pool, id: string): Promise<string[]> {
  const { rows } = await pool.query<{ end_id: string }>(
    'select end_id from interaction_partitions where end_id > $1 order by first_id',
    [id],
  );
  return rows.map(({ end_id }) => end_id);
}

/**
 * Returns the id up to which everything has been read, or null at the end. There is no upper bound: interactions that
 * arrive during the copy appear again in the change log, where they are skipped if the table already has them.
 */
export async function readStored(
  pool: Pool,
  organisationId: string,
  after: string,
  table: InteractionTable,
  spool: Spool,
  stopping: AbortSignal,
): Promise<string | null> {
  let last = after;
  // Read one partition at a time. Otherwise the planner would have to consider every day's partition for each query.
  for (const below of await partitionEndsAfter(pool, after))
    for (let next: string | undefined = last; next !== undefined; ) {
      if (spool.isFull || stopping.aborted) return last;
      const range = { after: next, below, count: lakeLimits.rowsPerRead };
      next = await takeStored(pool, organisationId, range, (id, line) => {
        const isKnown = table.recent.has(id);
        if (isKnown !== true) spool.add(id, line, isKnown === false);
      });
      await spool.drain();
      last = next ?? below;
    }
  return null;
}
