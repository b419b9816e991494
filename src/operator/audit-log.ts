import { isoTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';

/** The person or program that acts, as it appears in the audit log. */
export interface Operator {
  readonly actor: string;
  /** The id of the HTTP request, if there was one. */
  readonly requestId?: string;
}

/** Adds an audit entry in the same transaction as the action. */
export async function audit(
  client: Client,
  { actor, requestId }: Operator,
  act: string,
  details: Readonly<Record<string, unknown>>,
  { organisationId, keyId }: { readonly organisationId?: string; readonly keyId?: string } = {},
): Promise<void> {
  await client.query(
    `insert into audit_log (actor, act, organisation_id, key_id, request_id, details)
     values ($1, $2, $3, $4, $5, $6)`,
    [actor, act, organisationId ?? null, keyId ?? null, requestId ?? null, details],
  );
}

/** Returns an organisation's newest entry for one of these actions. */
export async function lastEntry(
  client: Client,
  organisationId: string,
  acts: readonly string[],
): Promise<Pick<AuditEntry, 'at' | 'act' | 'details'> | undefined> {
  const { rows } = await client.query<Pick<AuditEntry, 'at' | 'act' | 'details'>>(
    `select ${isoTime('at')} as at, act, details from audit_log
     where organisation_id = $1 and act = any ($2::text[]) order by audit_id desc limit 1`,
    [organisationId, acts],
  );
  return rows[0];
}

export interface AuditEntry {
  readonly audit_id: string;
  readonly at: string;
  readonly actor: string;
  readonly act: string;
  readonly organisation: string | null;
  readonly key_id: string | null;
  readonly request_id: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/**
 * Lists the entries of one organisation or of all organisations, newest first. If `before` is given, lists only older
 * entries.
 */
export async function listAuditEntries(
  pool: Pool,
  organisationId: string | null,
  count: number,
  before: string | null = null,
): Promise<AuditEntry[]> {
  // The query includes only the conditions that are needed, and its limit is a literal. `listApiKeys` explains why.
  const values: string[] = [];
  const conditions: string[] = [];
  if (organisationId !== null) conditions.push(`a.organisation_id = $${values.push(organisationId)}`);
  if (before !== null) conditions.push(`a.audit_id < $${values.push(before)}`);
  const { rows } = await pool.query<AuditEntry>(
    `select a.audit_id, ${isoTime('a.at')} as at, a.actor, a.act, o.slug as organisation, a.key_id, a.request_id, a.details
     from audit_log a left join organisations o using (organisation_id)
     ${conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''}
     order by a.audit_id desc limit ${Math.trunc(count)}`,
    values,
  );
  return rows;
}
