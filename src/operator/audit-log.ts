import { limits } from '../limits.ts';
import { isoTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inBatches, type Saved } from './batches.ts';

export interface Operator {
  readonly actor: string;
  readonly requestId?: string;
}

/** Must be called in the transaction of the action. */
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

export async function lastEntry(client: Client, organisationId: string, acts: readonly string[]) {
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
  /** When the entry was imported after a restore. Null for all others. */
  readonly imported_at: string | null;
}

interface AuditFilter {
  readonly organisationId?: string | undefined;
  readonly actor?: string | undefined;
  /** An action such as `key.issue`, or the part before the dot. */
  readonly action?: string | undefined;
  readonly since?: Date | undefined;
  readonly until?: Date | undefined;
}

/** Newest first. If `before` is given, only older entries. */
export async function listAuditEntries(
  pool: Pool,
  { organisationId, actor, action, since, until }: AuditFilter,
  count: number,
  before: string | null = null,
): Promise<AuditEntry[]> {
  // The query includes only the conditions that are needed, and its limit is a literal. `listApiKeys` explains why.
  const values: (string | Date)[] = [];
  const conditions: string[] = [];
  if (organisationId !== undefined) conditions.push(`a.organisation_id = $${values.push(organisationId)}`);
  if (actor !== undefined) conditions.push(`a.actor = $${values.push(actor)}`);
  if (action !== undefined) {
    const value = `$${values.push(action)}`;
    conditions.push(`(a.act = ${value} or split_part(a.act, '.', 1) = ${value})`);
  }
  if (since !== undefined) conditions.push(`a.at >= $${values.push(since)}`);
  if (until !== undefined) conditions.push(`a.at < $${values.push(until)}`);
  if (before !== null) conditions.push(`a.audit_id < $${values.push(before)}`);
  const { rows } = await pool.query<AuditEntry>(
    `select a.audit_id, ${isoTime('a.at')} as at, a.actor, a.act, o.slug as organisation, a.key_id, a.request_id, a.details,
       ${isoTime('a.imported_at')} as imported_at
     from audit_log a left join organisations o using (organisation_id)
     ${conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''}
     order by a.audit_id desc limit ${Math.trunc(count)}`,
    values,
  );
  return rows;
}

/** Newest first. */
export async function* readAuditLog(
  pool: Pool,
  filter: AuditFilter,
  countMax = Number.POSITIVE_INFINITY,
): AsyncGenerator<AuditEntry[]> {
  let before: string | null = null;
  for (let left = countMax; left > 0; ) {
    const count = Math.min(left, limits.auditEntriesPerRead);
    const entries: AuditEntry[] = await listAuditEntries(pool, filter, count, before);
    if (entries.length > 0) yield entries;
    if (entries.length < count) return;
    left -= entries.length;
    before = entries.at(-1)?.audit_id ?? null;
  }
}

/** Returns the ids of those entries that the log has. Without `imported`, only of those that were in it before a restore. */
export async function entriesInLog(
  client: Pick<Client, 'query'>,
  entries: readonly AuditEntry[],
  { imported = true }: { readonly imported?: boolean } = {},
): Promise<ReadonlySet<string>> {
  const { rows } = await client.query<{ audit_id: string }>(
    `select a.audit_id from unnest($1::bigint[], $2::text[], $3::timestamptz[]) as e(audit_id, act, at)
     join audit_log a on a.audit_id = e.audit_id and a.act = e.act
       and date_trunc('milliseconds', a.at) = date_trunc('milliseconds', e.at)
     where $4 or a.imported_at is null`,
    [
      entries.map(({ audit_id }) => audit_id),
      entries.map(({ act }) => act),
      entries.map(({ at }) => at),
      imported,
    ],
  );
  return new Set(rows.map(({ audit_id }) => String(audit_id)));
}

/** Keeps the ids of these entries free until they are imported. */
export async function reserveIds(pool: Pool, entries: Saved<AuditEntry>): Promise<void> {
  let newest = 0;
  for await (const { audit_id } of entries) newest = Math.max(newest, Number(audit_id));
  await pool.query('select reserve_audit_ids($1)', [newest]);
}

interface MarkedEntry extends AuditEntry {
  /** The organisation was created after the restored time. Another one may have had its slug before. */
  readonly organisation_is_lost: boolean;
}

/** `entries` are sorted, oldest first. */
export async function* withLost(
  client: Pick<Client, 'query'>,
  entries: Saved<AuditEntry>,
): AsyncGenerator<readonly MarkedEntry[]> {
  const lost = new Set<string>();
  for await (const batch of inBatches(entries, limits.auditEntriesPerRead)) {
    const created = batch.filter(({ act }) => act === 'organisation.create');
    // An earlier run may have imported the entry, but the organisation is still lost.
    const kept = await entriesInLog(client, created, { imported: false });
    yield batch.map((entry) => {
      const { organisation: slug } = entry;
      if (entry.act === 'organisation.create' && slug !== null)
        lost[kept.has(String(entry.audit_id)) ? 'delete' : 'add'](slug);
      return { ...entry, organisation_is_lost: slug !== null && lost.has(slug) };
    });
  }
}

/** Skips entries that the log has. `entries` are sorted, oldest first. */
export async function importEntries(client: Client, entries: Saved<AuditEntry>): Promise<number> {
  let imported = 0;
  for await (const marked of withLost(client, entries)) {
    const { rows } = await client.query<{ added: number }>('select import_audit_entries($1) as added', [
      JSON.stringify(marked),
    ]);
    imported += rows[0]?.added ?? 0;
  }
  return imported;
}

/** `writtenAt` is a time of the database. Two backups may run at the same time. */
export async function noteBackup(client: Pick<Client, 'query'>, writtenAt: Date): Promise<void> {
  await client.query('update log_backups set written_at = greatest(written_at, $1)', [writtenAt]);
}

export async function lastBackup(pool: Pool): Promise<Date | undefined> {
  const { rows } = await pool.query<{ at: string | null }>(
    `select ${isoTime('written_at')} as at from log_backups`,
  );
  return rows[0]?.at ? new Date(rows[0].at) : undefined;
}
