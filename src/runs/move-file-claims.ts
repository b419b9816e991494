import { limits } from '../limits.ts';
import { exactTime } from '../postgres/iso-time.ts';
import type { Pool } from '../postgres/pool.ts';
import { firstUuid } from '../registry/uuid-v7.ts';
import { runLimits } from './limits.ts';

/** A file of interactions that a run has claimed, as an export has it. */
export interface FileClaim {
  readonly sha256: string;
  readonly run_id: string;
  readonly claimed_at: string;
}

/** The newest ones, if there are too many for a manifest. */
export async function listFileClaims(pool: Pool, organisationId: string): Promise<FileClaim[]> {
  const claims: FileClaim[] = [];
  for (let count: number = limits.recordsPerRead; count === limits.recordsPerRead; ) {
    const last = claims.at(-1);
    const { rows } = await pool.query<FileClaim>(
      `select encode(sha256, 'hex') as sha256, run_id, ${exactTime('claimed_at')} as claimed_at
       from run_file_claims where organisation_id = $1 and (sha256, run_id) > ($2, $3)
       order by run_file_claims.sha256, run_id limit ${limits.recordsPerRead}`,
      [organisationId, Buffer.from(last?.sha256 ?? '', 'hex'), last?.run_id ?? firstUuid],
    );
    claims.push(...rows);
    count = rows.length;
  }
  return claims.toSorted((a, b) => (a.run_id < b.run_id ? 1 : -1)).slice(0, runLimits.fileClaimsMovedMax);
}

export async function addFileClaims(
  pool: Pool,
  organisationId: string,
  claims: readonly FileClaim[],
): Promise<void> {
  if (claims.length === 0) return;
  await pool.query(
    `insert into run_file_claims (organisation_id, sha256, run_id, claimed_at)
     select o.organisation_id, c.sha256, c.run_id, c.claimed_at
     from tenants o cross join unnest($2::bytea[], $3::uuid[], $4::timestamptz[]) as c(sha256, run_id, claimed_at)
     where o.organisation_id = $1 on conflict do nothing`,
    [
      organisationId,
      claims.map(({ sha256 }) => Buffer.from(sha256, 'hex')),
      claims.map(({ run_id }) => run_id),
      claims.map(({ claimed_at }) => claimed_at),
    ],
  );
}
