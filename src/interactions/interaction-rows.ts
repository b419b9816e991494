import { binaryArray } from '../postgres/binary/array-writer.ts';
import type { EncodedRows } from '../postgres/binary/encoded-rows.ts';
import { insertsInParts, type Statement, type Write } from '../postgres/pipelined-insert.ts';
import { type Client, isDuplicate, type Pool } from '../postgres/pool.ts';
import { beginAgainUnless, queryRows } from '../postgres/transactions.ts';
import { isVisible, sentRows, shownValue } from '../records/tables.ts';
import type { Row } from '../registry/fields.ts';
import { type ColumnType, isUuid } from '../registry/fields.ts';
import { type ItemType, interaction } from '../registry/interaction.ts';
import { type Instant, isoOf } from '../registry/times.ts';
import { sentColumnTypes } from '../registry/upload-types.ts';

const fields = Object.keys(interaction);
const columns = ['interaction_id', ...fields, 'event_time'];
const types: readonly ColumnType[] = ['uuid', ...sentColumnTypes('interactions'), 'timestamptz'];

export const insertText = `
  insert into interactions (organisation_id, ${columns.join(', ')})
  select i.organisation_id, ${columns.map((column) => (column === 'event_timestamp' ? `i.${column}::jsonb` : `i.${column}`)).join(', ')}
  from ${sentRows(columns, types)}`;

export interface NewInteraction {
  readonly organisationId: string;
  readonly interactionId: string;
  readonly itemType: ItemType;
  readonly itemId: string;
  readonly studentId: string | null;
  /** In the registry's order. */
  readonly row: Row;
  readonly eventTime: Instant;
  readonly claim?: Claim;
}

const userAt = fields.indexOf('user_id');

export function userOf(row: Row): string | null {
  return (row[userAt] ?? null) as string | null;
}

/** The claim still contains the hash of what was sent, so that retries match. */
export function withoutUser<T extends NewInteraction>(added: T): T {
  return { ...added, row: added.row.with(userAt, null) };
}

/** The hash of the values to store is in PostgreSQL's bytea format. */
export interface Claim {
  readonly key: string;
  readonly bodySha256: string;
}

export type KeyedInteraction = Required<NewInteraction>;

const eventTimestampAt = columns.indexOf('event_timestamp');

/** The items and students must be known to exist. */
export function insertStatement(organisationId: string, arrays: readonly Buffer[]): Statement {
  return { name: 'insert interactions', text: insertText, values: [organisationId, ...arrays] };
}

export function writtenOut(added: readonly NewInteraction[]): Write[] {
  const rows = added.map((one) => [one.organisationId, ...valuesOf(one, isoOf(one.eventTime))]);
  return insertsInParts('interactions', ['organisation_id', ...columns], rows);
}

/** The arrays are the ids, the fields in the registry's order, and the event time. */
export async function insertEncoded(
  client: Client,
  organisationId: string,
  { count, arrays }: EncodedRows,
): Promise<void> {
  await queryRows(client, insertStatement(organisationId, arrays), count).catch((error: unknown) => {
    // An interaction can only exist already if its id was assigned earlier and a concurrent request has stored it.
    beginAgainUnless(!isDuplicate(error), 'an interaction was stored meanwhile');
    throw error;
  });
}

export function arraysOf(added: readonly NewInteraction[]): Buffer[] {
  const rows = added.map((one) => valuesOf(one, one.eventTime));
  return types.map((type, at) =>
    binaryArray(
      type,
      rows.map((row) => row[at] ?? null),
    ),
  );
}

function valuesOf({ interactionId, row }: NewInteraction, eventTime: Row[number]): Row {
  const values = [interactionId, ...row, eventTime];
  values[eventTimestampAt] = JSON.stringify(values[eventTimestampAt]);
  return values;
}

export type StoredInteraction = Record<string, string | number | null> & { interaction_id: string };

export function storedForm({ interactionId, row }: NewInteraction): StoredInteraction {
  const stored: StoredInteraction = { interaction_id: interactionId };
  for (let at = 0; at < fields.length; at++)
    stored[fields[at] as string] = (row[at] ?? null) as StoredInteraction[string];
  return stored;
}

export const selected = [
  'interaction_id',
  ...fields.map((field) => `${shownValue('interactions', field)} as ${field}`),
].join(', ');

/** Returns null if the interaction is hidden, because its person is being erased. */
export async function findOrHidden(
  client: Client | Pool,
  organisationId: string,
  interactionId: string,
): Promise<StoredInteraction | null | undefined> {
  const { rows } = await client.query<{ readonly is_visible: boolean }>(
    `select ${selected}, ${isVisible('interactions')} as is_visible from interactions t
     where organisation_id = $1 and interaction_id = ${uuidLiteral(interactionId)}`,
    [organisationId],
  );
  const [found] = rows;
  if (!found) return undefined;
  const { is_visible, ...stored } = found;
  return is_visible ? (stored as StoredInteraction) : null;
}

export async function findInteraction(
  client: Client | Pool,
  organisationId: string,
  interactionId: string,
): Promise<StoredInteraction | undefined> {
  return (await findOrHidden(client, organisationId, interactionId)) ?? undefined;
}

/** In no particular order. */
export async function readInteractions(
  client: Client,
  organisationId: string,
  ids: readonly string[],
): Promise<StoredInteraction[]> {
  const sorted = ids.toSorted();
  const { rows } = await client.query<StoredInteraction>(
    `select ${selected} from interactions t
     where organisation_id = $1 and interaction_id = any ($2::uuid[]) and ${isVisible('interactions')}
       and interaction_id >= ${uuidLiteral(sorted[0] ?? '')} and interaction_id <= ${uuidLiteral(sorted.at(-1) ?? '')}`,
    [organisationId, ids],
  );
  return rows;
}

/** As a literal, because a generic plan would open and lock every partition. */
export function uuidLiteral(id: string): string {
  if (!isUuid(id)) throw new Error('the value is not a UUID');
  return `'${id}'`;
}
