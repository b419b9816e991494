import type { ArrayType } from '../postgres/binary/array-writer.ts';
import type { ColumnType } from '../registry/fields.ts';
import { belongs } from '../registry/personal.ts';
import { idFieldOf, perType, type Resource, type ResourceType, resources } from '../registry/resources.ts';
import { personalFields, sentFields, type UploadType } from '../registry/upload-types.ts';

/** The columns have the same names as the fields. */
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
 * With `tenants` in the `from` clause, a cluster plans the statement as one task on the organisation's node. Without
 * it, or inside a `with`, the rows would be sent to the coordinator. Ordering by id prevents deadlocks between uploads
 * of the same records, as long as a transaction writes stored rows in a single such statement. No id may occur twice.
 * The last parameter is the time of writing, because a cluster does not allow `now()` in `do update set`.
 */
export function insertRows({ name, id, columns, types }: Table): string {
  return `
      insert into ${name} (organisation_id, ${columns.join(', ')}, stored_at)
      select i.organisation_id, ${columns.map((column) => `i.${column}`).join(', ')}, $${columns.length + 2}::timestamptz
      from ${sentRows(columns, types)}
      order by i.${id}`;
}

/**
 * A subquery named `i`, with one array per column, starting at `$2`. Unnesting in the select list passes on elements
 * one by one. In the `from` clause, every column would be materialised first, which makes an insert 1.3 times and a
 * comparison 1.4 times as expensive.
 */
export function sentRows(columns: readonly string[], types: readonly ArrayType[], more = ''): string {
  const arrays = types.map((type, at) => `unnest($${at + 2}::${type}[]) as ${columns[at]}`);
  return `(
        select o.organisation_id, ${arrays.join(', ')}${more}
        from tenants o where o.organisation_id = $1) i`;
}

/**
 * `offset 0` prevents a join, which, if planned while the table was small, would hash all of an organisation's rows.
 * The organisation must be the parameter. If it were a column of the outer query, a cluster would query every shard.
 */
export function exists(type: ResourceType, idExpression: string): string {
  const { name, id } = tableOf(type);
  return `exists (
        select from ${name} t where t.organisation_id = $1 and t.${id} = ${idExpression} offset 0)`;
}

/**
 * True if one of the ids is of a person whom organisation `$1` is erasing. `offset 0` makes PostgreSQL look every value
 * up in the index, in 2 to 3 microseconds, instead of reading all ids. The first condition is evaluated once per
 * statement, and saves the look-ups if the organisation is not erasing anybody.
 */
export function isBeingErased(...ids: readonly string[]): string {
  return `(exists (select from erasure_ids o where o.organisation_id = $1) and exists (
    select from erasure_ids e where e.organisation_id = $1 and e.id = any (array[${ids.join(', ')}]) offset 0))`;
}

/** Customers have no index by user, so the sweep may not have found those of an erased user yet. */
function userOf(customerId: string): string {
  return `(select c.user_id::text from customers c where c.organisation_id = $1 and c.customer_id = ${customerId})`;
}

const isUuidText = (id: string) => `${id} ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'`;

/** The spelling in which an id is erased. Earlier releases stored UUIDs in `user_id` as they were sent. */
export function inOneSpelling(id: string): string {
  return `case when ${isUuidText(id)} then lower(${id}) else ${id} end`;
}

/** The text may be the id of a user or a customer. */
export function isErasedText(id: string): string {
  return isBeingErased(inOneSpelling(id), userOf(`case when ${isUuidText(id)} then ${id}::uuid end`));
}

export function isErasedIn(type: UploadType, field: string, value: string): string {
  if (sentFields(type)[field]?.column !== 'uuid') return isBeingErased(inOneSpelling(value));
  // In other types, an id of this form is a customer's.
  return isBeingErased(`${value}::text`, ...(type === 'customers' ? [] : [userOf(`${value}::uuid`)]));
}

/** Once an erasure is requested, nobody can read the person's rows, although they are deleted later. */
export const isVisible = perType((type: UploadType) => {
  const fields = personalFields(type);
  return fields.identifying.length === 0
    ? 'true'
    : `not ${belongs(fields, (field) => isErasedIn(type, field, columnOf(field)), columnOf)}`;
});

/** Null if the field of a visible row of somebody else mentions a person who is being erased. */
export function shownValue(type: UploadType, field: string): string {
  const column = columnOf(field);
  return personalFields(type).alone.includes(field)
    ? `case when not ${isErasedIn(type, field, column)} then ${column} end`
    : column;
}

function columnOf(field: string): string {
  return `t.${quote(field)}`;
}

/** A field may be called `order`. */
export function quote(name: string): string {
  return `"${name}"`;
}
