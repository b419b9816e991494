import { type Interaction, interaction } from '../../src/registry/interaction.ts';
import { type ResourceType, resources } from '../../src/registry/resources.ts';
import type { Values } from '../../test/fault/erasure-mixture/oracle.ts';

/** Every field of every type as text, so that what was sent, stored, read and copied can be compared. */

export type Kind = ResourceType | 'interactions';

export interface ComparedTable {
  readonly kind: Kind;
  readonly name: string;
  /** The column by which the oracle recognises a record. The service assigns the ids of interactions. */
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

const columnsOf = (fields: Record<string, { readonly column: string }>) =>
  Object.fromEntries(Object.entries(fields).map(([name, { column }]) => [name, column]));

export const comparedTables: readonly ComparedTable[] = [
  ...Object.entries(resources).map(([kind, { fields }]) => ({
    kind: kind as ResourceType,
    name: kind.replaceAll('-', '_'),
    id: Object.keys(fields)[0] as string,
    fields: columnsOf(fields),
  })),
  {
    kind: 'interactions',
    name: 'interactions',
    id: 'recommendation_id',
    fields: columnsOf(interaction satisfies Record<keyof Interaction, unknown>),
  },
];

export function comparedTable(kind: Kind): ComparedTable {
  const found = comparedTables.find((one) => one.kind === kind);
  if (!found) throw new Error(`there is no type ${kind}`);
  return found;
}

/** Returns the expression that reads a column as the text that `textOf` returns for the same value. */
export function textExpression(name: string, column: string): string {
  if (column === 'timestamptz') return `round(extract(epoch from ${name}) * 1000)::bigint::text`;
  if (column === 'numeric') return `${name}::double precision::text`;
  return `${name}::text`;
}

function textOf(column: string, value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (column === 'timestamptz') return String(Date.parse(String(value)));
  if (column === 'jsonb') return JSON.stringify(value);
  return String(value);
}

/** Returns the texts of a record as it was sent or read through the API. */
export function textsOf({ fields }: ComparedTable, record: Readonly<Record<string, unknown>>): Values {
  const texts = Object.entries(fields).map(([name, column]) => [name, textOf(column, record[name])]);
  return Object.fromEntries(texts);
}
