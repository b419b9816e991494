import type { ColumnType, Field } from '../../registry/fields.ts';
import { interaction } from '../../registry/interaction.ts';
import { perType, type Resource, type ResourceType, resources } from '../../registry/resources.ts';
import { inOrderOfReference, type UploadType } from '../../registry/upload-types.ts';

/** In the order in which types are copied: each type after the types it refers to, and interactions last. */
export const lakeTypes: readonly UploadType[] = inOrderOfReference();

/** Column types, named as in Delta Lake. A `timestamp` is an instant in UTC with microsecond precision. */
export type LakeType = 'string' | 'timestamp' | 'date' | 'decimal(38,9)' | 'double' | 'boolean' | 'long';

export interface LakeColumn {
  readonly name: string;
  readonly type: LakeType;
  readonly description: string;
}

/** Tables are written from JSON objects whose keys are the column names. */
export interface LakeSchema {
  readonly name: string;
  readonly description: string;
  /** All columns except the day column. The first column is the identifier. */
  readonly columns: readonly LakeColumn[];
  /** The partition column: the UTC day of the `of` column. The data files do not contain the partition column. */
  readonly day?: { readonly name: string; readonly description: string; readonly of: string };
  /** Only version tables have this. Merges keep only the version of an id that has the largest value in this column. */
  readonly newestBy?: string;
}

const typeOfColumn: Readonly<Record<ColumnType, LakeType>> = {
  uuid: 'string',
  text: 'string',
  date: 'date',
  timestamptz: 'timestamp',
  // The client's `export` command uses the same type in its Parquet files. The type has the maximum number of digits that
  // databases support, nine of them after the decimal point.
  numeric: 'decimal(38,9)',
  float8: 'double',
  bool: 'boolean',
  jsonb: 'string',
};

function columnOf([name, field]: [string, Field]): LakeColumn {
  const { description, enum: values } = field.schema as {
    description?: string;
    enum?: readonly (string | null)[];
  };
  const references = field.references as ResourceType | undefined;
  const refersTo = references && `the ${resources[references].singular}`;
  return {
    name,
    type: typeOfColumn[field.column],
    description: refersTo ?? description ?? values?.filter((value) => value !== null).join(', ') ?? '',
  };
}

/** `event_timestamp` is excluded, because it is `event_time` as the client sent it, which may be a number or a string. */
const { event_timestamp: _, ...interactionFields } = interaction;

const interactions: LakeSchema = {
  name: 'interactions',
  description: 'One row for each interaction.',
  columns: [
    {
      name: 'interaction_id',
      type: 'string',
      description: 'record identifier, a UUIDv7: sorted by it, rows are in the order of receipt',
    },
    ...Object.entries(interactionFields).map(columnOf),
    { name: 'event_time', type: 'timestamp', description: 'when it happened, as the sender says' },
    { name: 'created', type: 'timestamp', description: 'when it was received, to the millisecond' },
  ],
  day: {
    name: 'received_on',
    description: 'the day of `created` in UTC; filter by it to read fewer files',
    of: 'created',
  },
};

export const lakeSchema = perType((type: UploadType): LakeSchema => {
  if (type === 'interactions') return interactions;
  const { fields, singular }: Resource = resources[type];
  return {
    name: type.replaceAll('-', '_'),
    description: `Versions of each ${singular}. The one with the largest _change is the current one; others may be missing.`,
    columns: [
      ...Object.entries(fields).map(columnOf),
      { name: '_change', type: 'long', description: 'ascends from each version to the next' },
      {
        name: '_deleted',
        type: 'boolean',
        description: 'the record is marked as deleted, or was removed; then only its id is left',
      },
    ],
    newestBy: '_change',
  };
});

/** All columns are nullable, so that columns can be added to a table that already has rows. */
export function schemaString({ columns, day }: LakeSchema): string {
  const all: LakeColumn[] = [...columns, ...(day ? [{ ...day, type: 'date' as const }] : [])];
  const fields = all.map(({ name, type, description }) => ({
    name,
    type,
    nullable: true,
    metadata: description === '' ? {} : { comment: description },
  }));
  return JSON.stringify({ type: 'struct', fields });
}

/** Throws if a column would change its type or disappear, because that would break readers. Columns may be added. */
export function refuseOtherTypes(before: string, after: string): void {
  const typesOf = (schema: string): Map<string, string> =>
    new Map(JSON.parse(schema).fields.map(({ name, type }: { name: string; type: string }) => [name, type]));
  const types = typesOf(after);
  for (const [name, type] of typesOf(before)) {
    if (!types.has(name))
      throw new Error(
        `a table in the lake has the column ${name}, which this release does not know; run a release that is at least as new as the one that wrote the lake`,
      );
    if (types.get(name) !== type)
      throw new Error(`the column ${name} of a table in the lake has another type`);
  }
}
