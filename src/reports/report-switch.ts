import type { Client, Pool } from '../postgres/pool.ts';

/**
 * Returns the organisations whose report is on. `organisations` is read in a separate statement, because in a cluster
 * it is on the coordinator, while all counted data is on other nodes.
 */
export async function organisationsWithReport(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ organisation_id: string }>(
    'select organisation_id from organisations where recommendations_report',
  );
  return rows.map(({ organisation_id }) => organisation_id);
}

export async function hasReport(client: Client, organisationId: string): Promise<boolean> {
  const { rows } = await client.query<{ recommendations_report: boolean }>(
    'select recommendations_report from organisations where organisation_id = $1',
    [organisationId],
  );
  return rows[0]?.recommendations_report ?? false;
}
