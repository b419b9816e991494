import { type PersonalTable, personalTables } from '../people/personal-tables.ts';
import type { Client } from '../postgres/pool.ts';
import { quote } from '../records/tables.ts';
import { sentFields } from '../registry/upload-types.ts';

/**
 * Creates the functions that erase rows. They run with the owner's permissions, because the serving role may not delete
 * rows, and they change only the rows of people who are being erased. They are generated from the registry whenever the
 * schema is migrated.
 */
export async function makeErasureFunctions(client: Client): Promise<void> {
  for (const table of personalTables) await client.query(functionOf(table));
}

/** The names of all functions that erase rows. */
export const erasureFunctions: readonly string[] = [...personalTables.map(functionName), 'erase_from_report'];

export function functionName({ name }: PersonalTable): string {
  return `erase_${name}`;
}

function functionOf(table: PersonalTable): string {
  const { type, name, id, identifying, canStay } = table;
  const ids = 'select e.id from public.erasure_ids e where e.organisation_id = organisation';
  const condition = identifying.map((column) => `t.${column}::text in (${ids})`).join(' or ');
  // PostgreSQL can find an interaction by its id only if it knows the partition, so the condition includes a range of ids.
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
