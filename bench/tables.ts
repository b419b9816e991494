import { randomUUID } from 'node:crypto';
import { hashKey, makeKey } from '../src/keys/key-format.ts';
import { type ResourceType, referencesOf, resourceTypes } from '../src/registry/resources.ts';
import type { Cluster } from './cluster.ts';
import { fieldsOf, makeRecords, referenceId } from './records.ts';

/**
 * There are three schemas. `public` is the service's own. `bare` has the same tables with foreign keys, for measuring
 * PostgreSQL alone. `targets` has the tables that those foreign keys reference, so that a table in `bare` can be emptied on
 * its own.
 */
export const publicTable = (type: ResourceType) => `public.${tableName(type)}`;
export const bareTable = (type: ResourceType) => `bare.${tableName(type)}`;
const targetTable = (type: ResourceType) => `targets.${tableName(type)}`;

function tableName(type: ResourceType): string {
  return type.replaceAll('-', '_');
}

/** Returns the columns of a row, in the order used for COPY. */
export function columnsOf(type: ResourceType): string {
  return ['organisation_id', ...fieldsOf(type)].join(', ');
}

export async function createBareTables(cluster: Cluster): Promise<void> {
  await cluster.query('create schema bare');
  await cluster.query('create schema targets');
  const referenced = new Set(resourceTypes.flatMap((type) => referencesOf(type).map((to) => to.type)));
  for (const type of referenced) {
    await cluster.query(`create table ${targetTable(type)} (like ${publicTable(type)} including all)`);
  }
  for (const type of resourceTypes) {
    await cluster.query(`create table ${bareTable(type)} (like ${publicTable(type)} including all)`);
    for (const { field, type: to } of referencesOf(type)) {
      await cluster.query(
        `alter table ${bareTable(type)} add foreign key (organisation_id, ${field}) references ${targetTable(to)}`,
      );
    }
  }
}

/** An organisation and its API key. */
export interface Tenant {
  readonly organisationId: string;
  readonly key: string;
}

/**
 * Creates many organisations in one go, because running a command for each of them would take longer than the measurement.
 */
export async function createTenants(cluster: Pick<Cluster, 'query'>, count: number): Promise<Tenant[]> {
  const made = Array.from({ length: count }, () => ({ organisationId: randomUUID(), ...makeKey() }));
  const ids = made.map(({ organisationId }) => organisationId);
  await cluster.query(
    `insert into organisations (organisation_id, slug, name)
     select id, 'bench-' || id, 'Bench' from unnest($1::uuid[]) as id`,
    [ids],
  );
  await cluster.query(
    `insert into api_keys (key_id, organisation_id, key_sha256, permissions)
     select key_id, id, key_sha256, '{data:write,data:read,interactions:write}'
     from unnest($1::text[], $2::uuid[], $3::bytea[]) as k(key_id, id, key_sha256)`,
    [made.map(({ keyId }) => keyId), ids, made.map(({ key }) => hashKey(key))],
  );
  await cluster.query('analyze organisations, api_keys');
  return made.map(({ organisationId, key }) => ({ organisationId, key }));
}

/** Stores the referenced records, both for the service and for the yardstick's foreign keys. */
export async function storeReferences(
  cluster: Cluster,
  organisationIds: readonly string[],
  type: ResourceType,
  count: number,
): Promise<void> {
  for (const table of [publicTable(type), targetTable(type)])
    await storeReferencesIn(table, cluster, organisationIds, type, count);
}

export async function storeReferencesIn(
  table: string,
  cluster: Pick<Cluster, 'query'>,
  organisationIds: readonly string[],
  type: ResourceType,
  count: number,
): Promise<void> {
  const names = fieldsOf(type);
  const records = Array.from(makeRecords({ type, count, seed: 1 }), (values, at) => ({
    ...Object.fromEntries(names.map((name, position) => [name, values[position]])),
    [names[0] as string]: referenceId(type, at + 1),
  }));
  await cluster.query(
    `insert into ${table} (${columnsOf(type)})
     select o.organisation_id, ${names.map((name) => `r.${name}`).join(', ')}
     from unnest($1::uuid[]) as o(organisation_id), json_populate_recordset(null::${table}, $2) as r
     on conflict do nothing`,
    [organisationIds, JSON.stringify(records)],
  );
  await cluster.query(`vacuum (analyze) ${table}`);
}
