import { RequestError } from '../errors.ts';
import { binaryArray } from '../postgres/binary/array-writer.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { exists, sentRows } from '../records/tables.ts';
import { type ColumnType, isUuid } from '../registry/fields.ts';
import { type ItemType, interaction, itemTypes } from '../registry/interaction.ts';
import type { Instant } from '../registry/times.ts';
import type { Row } from '../registry/validate.ts';

const fields = Object.keys(interaction);
const columns = ['interaction_id', ...fields, 'event_time'];
/** JSON travels as text; the statement makes it JSON again. */
const types: readonly ColumnType[] = [
  'uuid',
  ...Object.values(interaction).map(({ column }) => (column === 'jsonb' ? 'text' : column)),
  'timestamptz',
];

/** Writes rows of one organisation. */
const insertText = `
  insert into interactions (organisation_id, ${columns.join(', ')})
  select i.organisation_id, ${columns.map((column) => (column === 'event_timestamp' ? `i.${column}::jsonb` : `i.${column}`)).join(', ')}
  from ${sentRows(columns, types)}`;

/** Writes those of which both references exist. `case` looks in the one table that the kind of item names. */
const checkAndInsertText = `${insertText}
  where case i.item_type ${(Object.keys(itemTypes) as ItemType[]).map((itemType) => `when '${itemType}' then ${exists(itemTypes[itemType], 'i.item_id')}`).join('\n      ')} end
    and (i.student_id is null or ${exists('customers', 'i.student_id')})
  returning interaction_id`;

export interface NewInteraction {
  readonly organisationId: string;
  readonly interactionId: string;
  readonly itemType: ItemType;
  readonly itemId: string;
  readonly studentId: string | null;
  /** The fields' values, in the registry's order. */
  readonly row: Row;
  readonly eventTime: Instant;
}

const eventTimestampAt = columns.indexOf('event_timestamp');

/**
 * Writes interactions of one organisation whose item and student are known to exist: all of them, or none (false), which
 * PostgreSQL never does and Citus does where the statement waited while a shard was split.
 */
export async function insertInteractions(
  client: Client,
  organisationId: string,
  added: readonly NewInteraction[],
): Promise<boolean> {
  const { rowCount } = await client.query({
    name: 'insert interactions',
    text: insertText,
    values: [organisationId, ...arraysOf(added)],
  });
  // It may be committed with the statement, and nobody can tell which were written.
  if (rowCount !== 0 && rowCount !== added.length) throw new RequestError('outcome_unknown');
  return rowCount !== 0;
}

/** Writes interactions of one organisation; returns the ids of those whose item and student exist. */
export async function checkAndInsertInteractions(
  client: Client,
  organisationId: string,
  added: readonly NewInteraction[],
): Promise<Set<string>> {
  const { rows } = await client.query<{ interaction_id: string }>({
    name: 'check and insert interactions',
    text: checkAndInsertText,
    values: [organisationId, ...arraysOf(added)],
  });
  return new Set(rows.map(({ interaction_id }) => interaction_id));
}

function arraysOf(added: readonly NewInteraction[]): Buffer[] {
  const rows = added.map(({ interactionId, row, eventTime }) => {
    const values: Row = [interactionId, ...row, eventTime];
    values[eventTimestampAt] = JSON.stringify(values[eventTimestampAt]);
    return values;
  });
  return types.map((type, at) => binaryArray(type, column(rows, at)));
}

function column(rows: readonly Row[], at: number) {
  return rows.map((row) => row[at] ?? null);
}

const missingFrom = perItemType(
  (itemType) => `
    select not ${exists(itemTypes[itemType], '$2')} as item,
      $3::uuid is not null and not ${exists('customers', '$3')} as student
    from tenants o where o.organisation_id = $1`,
);

function perItemType(make: (itemType: ItemType) => string): Record<ItemType, string> {
  const entries = Object.keys(itemTypes).map((itemType) => [itemType, make(itemType as ItemType)]);
  return Object.fromEntries(entries) as Record<ItemType, string>;
}

/** Which of an interaction's references does not exist. */
export async function missingReferences(
  pool: Pool,
  organisationId: string,
  itemType: ItemType,
  itemId: string,
  studentId: string | null,
): Promise<{ item: boolean; student: boolean }> {
  const { rows } = await pool.query<{ item: boolean; student: boolean }>(missingFrom[itemType], [
    organisationId,
    itemId,
    studentId,
  ]);
  const [missing] = rows;
  if (!missing) throw new Error('the organisation is not there');
  return missing;
}

/** One stored interaction: every field of the resource by its name, and the id. */
export type StoredInteraction = Record<string, string | number | null> & { interaction_id: string };

/** The columns of one that is read. */
export const selected = ['interaction_id', ...fields].join(', ');

export async function findInteraction(
  client: Client | Pool,
  organisationId: string,
  interactionId: string,
): Promise<StoredInteraction | undefined> {
  const { rows } = await client.query<StoredInteraction>(
    `select ${selected} from interactions where organisation_id = $1 and interaction_id = ${written(interactionId)}`,
    [organisationId],
  );
  return rows[0];
}

/** An id as part of a statement: a plan that is to do for every id would open and lock every partition. */
export function written(id: string): string {
  if (!isUuid(id)) throw new Error('what should be an id is none');
  return `'${id}'`;
}
