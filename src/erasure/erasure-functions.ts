import type { Client } from '../postgres/pool.ts';
import { quote, tableOf } from '../records/tables.ts';
import { perType } from '../registry/resources.ts';
import { sentFields, type UploadType, uploadTypes } from '../registry/upload-types.ts';

/** A type whose rows belong to people. */
export interface PersonalTable {
  readonly type: UploadType;
  readonly name: string;
  /** The second column of the primary key, after the organisation. */
  readonly id: string;
  /** The columns with ids of people. */
  readonly identifying: readonly string[];
  /** Whether a row can stay without its person; otherwise it is deleted. */
  readonly canStay: boolean;
}

const personalTable = perType((type: UploadType): PersonalTable => {
  const fields = Object.entries(sentFields(type)).filter(([, { personal }]) => personal !== 'no');
  const identifying = fields.flatMap(([name, { personal }]) =>
    personal === 'identifies' ? quote(name) : [],
  );
  const table = type === 'interactions' ? { name: 'interactions', id: 'interaction_id' } : tableOf(type);
  return {
    type,
    name: table.name,
    id: table.id,
    identifying,
    canStay: fields.every(([, { required }]) => !required),
  };
});

/** The types whose rows belong to people. What refers to a type comes before it. */
export const personalTables: readonly PersonalTable[] = uploadTypes
  .map(personalTable)
  .filter(({ identifying }) => identifying.length > 0)
  .toSorted((one, other) => Number(one.type === 'customers') - Number(other.type === 'customers'));

/**
 * The functions that erase rows. They run as the owner, since the serving role can delete nothing, and touch only rows of people
 * who are being erased. Made from the registry when the schema is migrated.
 */
export async function makeErasureFunctions(client: Client): Promise<void> {
  for (const table of personalTables) await client.query(functionOf(table));
}

/** All functions that erase. */
export const erasureFunctions: readonly string[] = [...personalTables.map(functionName), 'erase_from_report'];

export function functionName({ name }: PersonalTable): string {
  return `erase_${name}`;
}

function functionOf(table: PersonalTable): string {
  const { type, name, id, identifying, canStay } = table;
  const ids = 'select e.id from public.erasure_ids e where e.organisation_id = organisation';
  const condition = identifying.map((column) => `t.${column}::text in (${ids})`).join(' or ');
  // An interaction is found by its id alone only if the partition is known.
  const where = `t.organisation_id = organisation and t.${id} = any (wanted) and t.${id} >= first_id and t.${id} <= last_id
      and (${condition})`;
  const emptied = Object.entries(sentFields(type)).flatMap(([field, { personal }]) =>
    personal === 'no' ? [] : `${quote(field)} = null`,
  );
  const stored = type === 'interactions' ? [] : ['stored_at = written'];
  const anonymise = `
    if not is_deletion then
      update public.${name} t set ${[...emptied, ...stored].join(', ')} where ${where};
      get diagnostics changed = row_count;
      return changed;
    end if;`;
  return `
    create or replace function ${functionName(table)}(
      organisation uuid, wanted uuid[], first_id uuid, last_id uuid, is_deletion boolean, written timestamptz
    ) returns bigint
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
    declare changed bigint;
    begin
      ${canStay ? anonymise : ''}
      delete from public.${name} t where ${where};
      get diagnostics changed = row_count;
      return changed;
    end
    $$;
    revoke execute on function ${functionName(table)} from public`;
}
