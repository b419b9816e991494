import { type PersonalTable, personalTables } from '../people/personal-tables.ts';
import type { Client } from '../postgres/pool.ts';
import { quote } from '../records/tables.ts';
import { belongs, mentions } from '../registry/personal.ts';
import { personalFields } from '../registry/upload-types.ts';
import { analyseFunction } from './sweep/analyse-erased.ts';

/** `unlink` removes the ids of people who are being erased from other people's rows. */
export type ErasureAction = 'delete' | 'anonymise' | 'unlink';

/**
 * They run with the owner's permissions, because the serving role may not delete rows. Processes of the previous
 * release call `erase_<table>` instead, which stays until the next release.
 */
export async function makeErasureFunctions(client: Client): Promise<void> {
  for (const table of personalTables) await client.query(functionOf(table));
  await client.query(analyseFunction);
}

export const erasureFunctions: readonly string[] = [
  ...personalTables.map(functionName),
  'erase_from_report',
  'erase_students_from_report',
  'rewrite_user_ids',
];

export function functionName({ name }: PersonalTable): string {
  return `erase_from_${name}`;
}

function functionOf(table: PersonalTable): string {
  const { type, name, id, canStay } = table;
  const fields = personalFields(type);
  const column = (field: string) => `t.${quote(field)}`;
  const isErased = (field: string) => `exists (
        select from public.erasure_ids e join public.erasures r using (organisation_id, erasure_id)
        where e.organisation_id = organisation and r.organisation_id = organisation and r.state = 'sweeping'
          and e.id = ${column(field)}::text offset 0)`;
  // PostgreSQL can find an interaction by its id only if it knows the partition, so the condition includes a range of ids.
  const wanted = `t.organisation_id = organisation and t.${id} = any (wanted) and t.${id} >= first_id and t.${id} <= last_id`;
  const isTheirs = `${wanted} and ${belongs(fields, isErased, column)}`;
  const stored = type === 'interactions' ? [] : ['stored_at = written'];
  const update = (values: readonly string[], where: string) =>
    `update public.${name} t set ${[...values, ...stored].join(', ')} where ${where};`;
  const emptied = fields.all.map((field) => `${quote(field)} = null`);
  const unlinked = fields.alone.map(
    (field) => `${quote(field)} = case when not ${isErased(field)} then ${column(field)} end`,
  );
  const branches = [
    `when action = 'delete' then delete from public.${name} t where ${isTheirs};`,
    ...(canStay ? [`when action = 'anonymise' then ${update(emptied, isTheirs)}`] : []),
    ...(unlinked.length === 0
      ? []
      : [
          `when action = 'unlink' then ${update(unlinked, `${wanted} and ${mentions(fields, isErased, column)}`)}`,
        ]),
  ];
  return `
    create or replace function ${functionName(table)}(
      organisation uuid, wanted uuid[], first_id uuid, last_id uuid, action text, written timestamptz
    ) returns bigint
    language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
    declare changed bigint;
    begin
      case
      ${branches.join('\n      ')}
      else raise exception 'rows of ${name} cannot be erased with the action %; use delete instead', action;
      end case;
      get diagnostics changed = row_count;
      return changed;
    end
    $$;
    revoke execute on function ${functionName(table)} from public`;
}
