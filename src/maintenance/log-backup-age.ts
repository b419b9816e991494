import type { Pool } from '../postgres/pool.ts';

/** Since the audit log and the ledger were written to files, or since the table for that was created. */
export async function logBackupAge(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ seconds: number }>(
    `select greatest(0, extract(epoch from now() - coalesce(written_at, created_at)))::float8 as seconds from log_backups`,
  );
  return rows[0]?.seconds ?? 0;
}
