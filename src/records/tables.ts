import type { ArrayType } from '../postgres/binary/array-writer.ts';
import type { ColumnType } from '../registry/fields.ts';
import { idFieldOf, perType, type Resource, type ResourceType, resources } from '../registry/resources.ts';
import { sentFields, type UploadType } from '../registry/upload-types.ts';

/** A record type as PostgreSQL knows it. Columns have the names of the fields; only the table's name is derived. */
export interface Table {
  readonly name: string;
  readonly id: string;
  readonly columns: readonly string[];
  readonly types: readonly ColumnType[];
}

export function tableOf(type: ResourceType): Table {
  const { fields }: Resource = resources[type];
  const columns = Object.keys(fields).map(quote);
  const types = Object.values(fields).map(({ column }) => column);
  return {
    name: type.replaceAll('-', '_'),
    id: quote(idFieldOf(type)),
    columns,
    types,
  };
}

/**
 * The start of every statement that writes rows of one organisation. `tenants` is in the `from` so that a cluster plans
 * the statement as one task on the node that owns the organisation; without it, or inside a `with`, the rows would travel
 * to the coordinator. Ordering by id prevents deadlocks between uploads of the same records, as long as a transaction
 * writes stored rows in one such statement. No id may occur twice. The last parameter is the time of writing, because
 * a cluster allows no `now()` in `do update set`.
 */
export function insertRows({ name, id, columns, types }: Table): string {
  return `
      insert into ${name} (organisation_id, ${columns.join(', ')}, stored_at)
      select i.organisation_id, ${columns.map((column) => `i.${column}`).join(', ')}, $${columns.length + 2}::timestamptz
      from ${sentRows(columns, types)}
      order by i.${id}`;
}

/**
 * The rows of the organisation `$1` from one array per column, starting at `$2`, to be selected from as `i`. The arrays
 * are unnested in the select list, where elements are passed on one by one. Unnested in the `from`, every column is
 * first materialised, which makes an insert 1.3 times and a comparison 1.4 times as expensive.
 */
export function sentRows(columns: readonly string[], types: readonly ArrayType[], more = ''): string {
  const arrays = types.map((type, at) => `unnest($${at + 2}::${type}[]) as ${columns[at]}`);
  return `(
        select o.organisation_id, ${arrays.join(', ')}${more}
        from tenants o where o.organisation_id = $1) i`;
}

/**
 * Whether an id is stored as a record of the type in the organisation `$1`. `offset 0` keeps PostgreSQL from turning it
 * into a join: one planned while the table was small would hash all of an organisation's rows, even when there are a
 * billion of them. The organisation must be the parameter: with the column of the outer query in its place, a cluster
 * asks every shard.
 */
export function exists(type: ResourceType, idExpression: string): string {
  const { name, id } = tableOf(type);
  return `exists (
        select from ${name} t where t.organisation_id = $1 and t.${id} = ${idExpression} offset 0)`;
}

/**
 * A condition that row `t` of the organisation `$1` does not belong to somebody who is being erased. From the request on nobody
 * sees the person's rows; later they are gone, or have no person. The ids are few, and PostgreSQL puts them into a hash table
 * once for each statement.
 */
export const isVisible = perType((type: UploadType) => {
  const fields = Object.entries(sentFields(type)).filter(([, { personal }]) => personal === 'identifies');
  const ids = 'select e.id from erasure_ids e where e.organisation_id = $1';
  return fields.map(([field]) => `(t.${quote(field)}::text in (${ids})) is not true`).join(' and ') || 'true';
});

/** A field may be called `order`. */
export function quote(name: string): string {
  return `"${name}"`;
}
