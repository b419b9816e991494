import { limits } from '../limits.ts';
import type { Client } from '../postgres/pool.ts';
import { queryRow } from '../postgres/transactions.ts';

/**
 * Erases some rows of these students, who must be in `erasure_ids`, and returns whether there may be more. The caller's
 * transaction must be read committed. The figures stay, if this is done before the students' interactions and
 * transactions are changed: the report would count those changes as long as its own rows have a student.
 */
export async function eraseFromReport(
  client: Client,
  organisationId: string,
  students: readonly string[],
  rowsMax: number = limits.erasureRowsPerStep,
): Promise<boolean> {
  // This waits for a report step that is running. A step that waits for this transaction then begins again with a new
  // snapshot, because the row has changed. A lock alone would let it continue with a snapshot in which nobody is being
  // erased.
  await client.query({
    name: 'report: erase',
    text: `
      insert into report_progress as p (organisation_id, step, number)
      select organisation_id, 0, 0 from tenants where organisation_id = $1
      on conflict (organisation_id) do update set step = p.step`,
    values: [organisationId],
  });
  const { has_more } = await queryRow<{ has_more: boolean }>(client, {
    text: 'select erase_students_from_report($1, $2::uuid[], $3) as has_more',
    values: [organisationId, students, rowsMax],
  });
  return has_more;
}
