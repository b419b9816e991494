import type { Scalar } from '../registry/fields.ts';
import { type ItemType, interaction, itemTypes } from '../registry/interaction.ts';
import type { Row } from '../registry/validate.ts';
import type { Client, Pool } from './pool.ts';
import { tableOf } from './tables.ts';

const fields = Object.keys(interaction);
const columns = ['interaction_id', ...fields, 'event_time'];
/** Where a field's value stands among the parameters: `$1` is the organisation, `$2` the interaction's id. */
const parameterOf = (field: string) => `$${fields.indexOf(field) + 3}`;
const customers = tableOf('customers');

const studentExists = `exists (
  select from ${customers.name} c
  where c.organisation_id = o.organisation_id and c.${customers.id} = ${parameterOf('student_id')}::uuid)`;

function itemExists(itemType: ItemType): string {
  const { name, id } = tableOf(itemTypes[itemType]);
  return `exists (
  select from ${name} t where t.organisation_id = o.organisation_id and t.${id} = ${parameterOf('item_id')}::uuid)`;
}

/** Checks both references and writes the row in one statement; it writes nothing where one of them is missing. */
const insertInto = perItemType(
  (itemType) => `
    insert into interactions (organisation_id, ${columns.join(', ')})
    select o.organisation_id, ${columnParameters()}
    from organisations o
    where o.organisation_id = $1
      and ${itemExists(itemType)}
      and (${parameterOf('student_id')}::uuid is null or ${studentExists})
    returning interaction_id`,
);

function columnParameters(): string {
  const types = ['uuid', ...Object.values(interaction).map(({ column }) => column), 'timestamptz'];
  return types.map((type, at) => `$${at + 2}::${type}`).join(', ');
}

const missingFrom = perItemType(
  (itemType) => `
    select
      not exists (
        select from ${tableOf(itemTypes[itemType]).name} t
        where t.organisation_id = o.organisation_id and t.${tableOf(itemTypes[itemType]).id} = $2) as item,
      $3::uuid is not null and not exists (
        select from ${customers.name} c where c.organisation_id = o.organisation_id and c.${customers.id} = $3) as student
    from organisations o where o.organisation_id = $1`,
);

function perItemType(make: (itemType: ItemType) => string): Record<ItemType, string> {
  const entries = Object.keys(itemTypes).map((itemType) => [itemType, make(itemType as ItemType)]);
  return Object.fromEntries(entries) as Record<ItemType, string>;
}

export interface NewInteraction {
  readonly organisationId: string;
  readonly interactionId: string;
  readonly itemType: ItemType;
  /** The fields' values, in the registry's order. */
  readonly row: Row;
  readonly eventTime: string;
}

const eventTimestampAt = fields.indexOf('event_timestamp');

/** True if it was written; false if its item or its student does not exist. */
export async function insertInteraction(client: Client, added: NewInteraction): Promise<boolean> {
  const values: unknown[] = [added.organisationId, added.interactionId, ...added.row, added.eventTime];
  values[eventTimestampAt + 2] = JSON.stringify(added.row[eventTimestampAt]);
  const { rowCount } = await client.query({
    name: `insert interaction with ${added.itemType}`,
    text: insertInto[added.itemType],
    values,
  });
  return rowCount === 1;
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
  return rows[0] ?? { item: true, student: false };
}

/** One stored interaction: every field of the resource by its name, and the id. */
export type StoredInteraction = Record<string, string | number | null> & { interaction_id: string };

const selected = ['interaction_id', ...fields].join(', ');

export async function findInteraction(
  client: Client | Pool,
  organisationId: string,
  interactionId: string,
): Promise<StoredInteraction | undefined> {
  const { rows } = await client.query<StoredInteraction>(
    `select ${selected} from interactions where organisation_id = $1 and interaction_id = $2`,
    [organisationId, interactionId],
  );
  return rows[0];
}

/** Filters by equality on these, and by the range of the identifier, which is the time of receipt. */
export type InteractionFilter = { readonly [field in keyof typeof interaction]?: Scalar };

export async function listInteractions(
  pool: Pool,
  organisationId: string,
  filter: InteractionFilter,
  range: { readonly from: string | undefined; readonly before: string | undefined; readonly limit: number },
): Promise<StoredInteraction[]> {
  const values: unknown[] = [organisationId];
  const conditions = ['organisation_id = $1'];
  const add = (condition: string, value: Scalar | undefined) => {
    if (value !== undefined) conditions.push(`${condition} $${values.push(value)}`);
  };
  for (const [field, value] of Object.entries(filter)) add(`${field} =`, value);
  add('interaction_id >=', range.from);
  add('interaction_id <', range.before);
  values.push(range.limit);
  const { rows } = await pool.query<StoredInteraction>(
    `select ${selected} from interactions where ${conditions.join(' and ')}
     order by interaction_id desc limit $${values.length}`,
    values,
  );
  return rows;
}

/** Partitions are made by a function of the owner; the service itself may create nothing. */
export async function ensurePartitions(pool: Pool, monthsAhead: number): Promise<void> {
  await pool.query('select ensure_interaction_partitions($1)', [monthsAhead]);
}
