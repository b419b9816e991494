import { createHash } from 'node:crypto';
import type { Client } from '../postgres/pool.ts';
import { quote, tableOf } from '../records/tables.ts';
import type { Field } from '../registry/fields.ts';
import { interaction } from '../registry/interaction.ts';
import { type Resource, type ResourceType, resources, resourceTypes } from '../registry/resources.ts';

export interface View {
  readonly name: string;
  readonly about: string;
  readonly columns: readonly Column[];
  /** The table whose rows the view shows, under the alias `r`, and its joins. */
  readonly from: string;
}

export interface Column {
  readonly name: string;
  readonly type: string;
  readonly about: string;
  /** An SQL expression. */
  readonly value: string;
}

const sqlTypes: Readonly<Record<Field['column'], string>> = {
  uuid: 'uuid',
  text: 'text',
  date: 'date',
  timestamptz: 'timestamp with time zone',
  numeric: 'numeric',
  float8: 'double precision',
  bool: 'boolean',
  jsonb: 'jsonb',
};

function column(name: string, type: string, about: string, value = `r.${name}`): Column {
  return { name, type, about, value };
}

const organisationId = column(
  'organisation_id',
  'uuid',
  'the organisation that the row belongs to; part of every join',
);

function columnOf([name, field]: [string, Field]): Column {
  const type = field.references as ResourceType | undefined;
  const refersTo = type && `the ${resources[type].singular}, in \`${tableOf(type).name}\``;
  const { description, enum: values } = field.schema as {
    description?: string;
    enum?: readonly (string | null)[];
  };
  const about = refersTo ?? description ?? values?.filter((value) => value !== null).join(', ') ?? '';
  return { name, type: sqlTypes[field.column], about, value: `r.${quote(name)}` };
}

function recordsOf(type: ResourceType): View {
  const { fields, singular }: Resource = resources[type];
  const { name } = tableOf(type);
  return {
    name,
    about: `One row per ${singular}.`,
    columns: [
      organisationId,
      ...Object.entries(fields).map(columnOf),
      column(
        'stored_at',
        sqlTypes.timestamptz,
        'when Intake last wrote the row: it was new, or something in it had changed',
      ),
    ],
    from: `public.${name} r`,
  };
}

/** A left join on a whole primary key adds no rows, and PostgreSQL removes it if none of its columns is selected. */
function joined(table: string, alias: string, id: string, on: string): string {
  return `left join public.${table} ${alias} on ${alias}.organisation_id = r.organisation_id and ${alias}.${id} = ${on}`;
}

const plainTransactions = recordsOf('transactions');
const transactions: View = {
  ...plainTransactions,
  about: 'One row per transaction, with its shop, the categories of the shop, and the customer.',
  columns: [
    ...plainTransactions.columns,
    column('shop_name', 'text', 'of the shop, deleted or not', 's.name'),
    column(
      'category_ids',
      'uuid[]',
      'the categories of the shop today, by name; null if it has none',
      'k.category_ids',
    ),
    column('category_names', 'text[]', 'their names, in the same order', 'k.category_names'),
    column(
      'customer_region',
      'text',
      'of the customer whose id is `student_id`; null if the customer is not stored, like the four below',
      'c.region',
    ),
    column('customer_birthdate', 'date', 'date of birth', 'c.birthdate'),
    column('customer_gender', 'text', 'free text', 'c.gender'),
    column('customer_institute_id', 'uuid', 'the institute, in `institutes`', 'c.institute_id'),
    column('customer_course_id', 'uuid', 'the course, in `courses`', 'c.course_id'),
  ],
  from: `${plainTransactions.from}
    ${joined('shops', 's', 'shop_id', 'r.shop_id')}
    ${joined('customers', 'c', 'customer_id', 'r.student_id')}
    left join (
      select l.organisation_id, l.shop_id, array_agg(g.category_id order by g.name, g.category_id) as category_ids,
        array_agg(g.name order by g.name, g.category_id) as category_names
      from public.shop_categories l
      join public.categories g on g.organisation_id = l.organisation_id and g.category_id = l.category_id
      where not l.is_deleted and not g.is_deleted
      group by l.organisation_id, l.shop_id
    ) k on k.organisation_id = r.organisation_id and k.shop_id = r.shop_id`,
};

/** `event_timestamp` is omitted, because it is `event_time` as the client sent it, which may be a number or a string. */
const { event_timestamp: _, ...interactionFields } = interaction;
const interactions: View = {
  name: 'interactions',
  about: 'One row per interaction. Interactions cannot be marked as deleted.',
  columns: [
    organisationId,
    column(
      'interaction_id',
      'uuid',
      'a UUIDv7, so in the order of receipt; filter by it to read some days only',
    ),
    ...Object.entries(interactionFields).map(columnOf),
    column('event_time', sqlTypes.timestamptz, 'the instant at which it happened, according to the sender'),
    column(
      'received_at',
      sqlTypes.timestamptz,
      'when Intake received it, to the millisecond; read from `interaction_id`',
      `to_timestamp(('x' || translate(left(r.interaction_id::text, 13), '-', ''))::bit(48)::bigint / 1000.0)`,
    ),
    column(
      'item_name',
      'text',
      'the name of the shop, offer, tag or keyword, deleted or not',
      'coalesce(s.name, o.name, t.name, w.name)',
    ),
    column(
      'item_shop_id',
      'uuid',
      'the shop, or the shop of the offer; null for tags and keywords',
      `case r.item_type when 'SHOP' then r.item_id else o.shop_id end`,
    ),
  ],
  from: `public.interactions r
    ${joined('shops', 's', 'shop_id', `r.item_id and r.item_type = 'SHOP'`)}
    ${joined('offers', 'o', 'offer_id', `r.item_id and r.item_type = 'OFFER'`)}
    ${joined('tags', 't', 'tag_id', `r.item_id and r.item_type = 'TAG'`)}
    ${joined('keywords', 'w', 'keyword_id', `r.item_id and r.item_type = 'KEYWORD'`)}`,
};

const organisations: View = {
  name: 'organisations',
  about: 'One row per organisation.',
  columns: [
    organisationId,
    column('slug', 'text', 'its short name, as in commands'),
    column('name', 'text', 'its name'),
  ],
  from: 'public.organisations r',
};

const freshness: View = {
  name: 'freshness',
  about:
    'One row per record type that has been uploaded. It is counted in the background, so some seconds old.',
  columns: [
    organisationId,
    column('type', 'text', 'the record type, as in the address of an upload'),
    column('records', 'bigint', 'how many are stored, deleted ones included'),
    column('newest_updated', sqlTypes.timestamptz, 'the latest `updated` of any of them'),
    column('last_upload', sqlTypes.timestamptz, 'when a batch of them was last uploaded'),
  ],
  from: 'public.record_counts r',
};

/** Views are kept simple, so that Citus can join by organisation and id on each node. */
export const views: readonly View[] = [
  interactions,
  ...resourceTypes.map((type) => (type === 'transactions' ? transactions : recordsOf(type))),
  organisations,
  freshness,
];

const schema = 'analytics_all';

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** Replacing a view keeps the views built on it, but works only if it has just gained columns at its end. */
function statementsOf({ name, about, columns, from }: View): string[] {
  const selected = columns.map((column) => `${column.value} as ${quote(column.name)}`).join(', ');
  const view = `view ${schema}.${quote(name)}`;
  const definition = `${view} as select ${selected} from ${from}`;
  return [
    `do $do$ begin
      create or replace ${definition};
    exception when invalid_table_definition then
      drop ${view};
      create ${definition};
    end $do$`,
    `comment on ${view} is ${literal(about)}`,
    ...columns.map(
      (column) =>
        `comment on column ${schema}.${quote(name)}.${quote(column.name)} is ${literal(column.about)}`,
    ),
  ];
}

/** Replacing a view waits for its readers, so a hash of the definitions is kept in the schema's comment. */
export async function makeViews(client: Client): Promise<void> {
  const statements = views.flatMap(statementsOf);
  const mark = `views for analysts, which 0.3.0 removes because the lake replaces them, ${createHash('sha256').update(statements.join('\n')).digest('hex')}`;
  const { rows } = await client.query<{ mark: string | null; names: string[] }>(
    `select obj_description('${schema}'::regnamespace, 'pg_namespace') as mark,
       array(select viewname::text from pg_views where schemaname = '${schema}') as names`,
  );
  const names = rows[0]?.names ?? [];
  const wanted = views.map(({ name }) => name);
  if (rows[0]?.mark === mark && wanted.every((name) => names.includes(name))) return;
  await client.query(`set local lock_timeout = '3s'`);
  for (const name of names.filter((found) => !wanted.includes(found)))
    await client.query(`drop view ${schema}.${quote(name)}`);
  await client.query(statements.join(';\n'));
  await client.query(`comment on schema ${schema} is ${literal(mark)}`);
}
