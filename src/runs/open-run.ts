import { hash } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { currentDatabaseTime, inTransaction, queryRows, retryConflicts } from '../postgres/transactions.ts';
import { timeOfUuidV7, uuidV7At } from '../registry/uuid-v7.ts';
import { lockRun } from './enter-run.ts';
import { findRun, type RunFile, readRun, type Unseen, unsentFiles } from './find-runs.ts';
import { runLimits } from './limits.ts';

export interface Opening {
  readonly organisationId: string;
  readonly keyId: string;
  readonly idempotencyKey: string | undefined;
  readonly name: string;
  readonly clientVersion: string | null;
  readonly files: readonly RunFile[];
  /** Whether files of interactions may be uploaded although they were uploaded before. */
  readonly again: boolean;
}

/** Openings of an organisation take turns, so that two of them cannot claim the same key or file. */
export function openRun(
  pool: Pool,
  opening: Opening,
): Promise<{ readonly runId: string; readonly isRepeated: boolean }> {
  const { organisationId, idempotencyKey } = opening;
  const key = idempotencyKey === undefined ? null : hash('sha256', idempotencyKey, 'buffer');
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      await client.query({
        name: 'lock openings of runs',
        text: 'select pg_advisory_xact_lock(hashtextextended($1, 0))',
        values: [`runs ${organisationId}`],
      });
      const known = key === null ? undefined : await openedWith(client, opening, key);
      if (known) return { runId: known, isRepeated: true };
      await refuseTooMany(client, organisationId);
      const now = await currentDatabaseTime(client);
      const runId = uuidV7At(now);
      await insertRun(client, opening, key, runId);
      await claimFiles(client, opening, runId, now);
      return { runId, isRepeated: false };
    }),
  );
}

async function openedWith(client: Client, opening: Opening, key: Buffer): Promise<string | undefined> {
  const { organisationId, name, clientVersion, files } = opening;
  const { rows } = await client.query<{ run_id: string; is_same: boolean }>({
    name: 'run of an idempotency key',
    text: `select run_id, (name, client_version, files) is not distinct from ($3, $4, $5::jsonb) as is_same
           from runs where organisation_id = $1 and key_sha256 = $2`,
    values: [organisationId, key, name, clientVersion, JSON.stringify(files)],
  });
  if (rows[0]?.is_same === false) throw new RequestError('idempotency_key_reused');
  return rows[0]?.run_id;
}

async function refuseTooMany(client: Client, organisationId: string): Promise<void> {
  const { rows } = await client.query({
    name: 'open runs',
    text: `select from runs where organisation_id = $1 and status = 'open'
             and run_id >= uuid_floor(now() - interval '${runLimits.openMs / 1_000} seconds')
           limit ${limits.openRunsMax}`,
    values: [organisationId],
  });
  if (rows.length === limits.openRunsMax) throw new RequestError('too_many_runs');
}

async function insertRun(client: Client, opening: Opening, key: Buffer | null, runId: string): Promise<void> {
  const { organisationId, keyId, name, clientVersion, files } = opening;
  const statement = {
    name: 'add run',
    text: `insert into runs (organisation_id, run_id, key_sha256, key_id, name, client_version, files)
           select organisation_id, $2, $3, $4, $5, $6, $7 from tenants where organisation_id = $1`,
    values: [organisationId, runId, key, keyId, name, clientVersion, JSON.stringify(files)],
  };
  await queryRows(client, statement, 1);
}

/**
 * Each run has its own claim on a file, so a run that failed before it sent the file can release its claim without touching
 * the claims of others.
 */
async function claimFiles(
  client: Client,
  { organisationId, files, again }: Opening,
  runId: string,
  now: Date,
): Promise<void> {
  const hashes = hashesOf(files);
  if (hashes.length === 0) return;
  if (!again) await refuseUploaded(client, organisationId, files, hashes);
  const statement = {
    name: 'claim files of a run',
    text: `insert into run_file_claims (organisation_id, sha256, run_id, claimed_at)
           select o.organisation_id, f.sha256, $3, $4
           from tenants o cross join unnest($2::bytea[]) as f(sha256) where o.organisation_id = $1`,
    values: [organisationId, hashes, runId, now],
  };
  await queryRows(client, statement, hashes.length);
}

async function refuseUploaded(
  client: Client,
  organisationId: string,
  files: readonly RunFile[],
  hashes: readonly Buffer[],
): Promise<void> {
  const { rows } = await client.query<{ sha256: string; run_id: string; is_open: boolean }>({
    name: 'claims on files',
    text: `select encode(c.sha256, 'hex') as sha256, c.run_id, coalesce(r.status = 'open', false) as is_open
           from run_file_claims c left join runs r using (organisation_id, run_id)
           where c.organisation_id = $1 and c.sha256 = any ($2::bytea[])
             and c.claimed_at > now() - interval '${runLimits.fileClaimDays} days' order by c.run_id desc`,
    values: [organisationId, hashes],
  });
  const claims = new Map<string, string>();
  const abandoned = new Map<string, readonly string[]>();
  for (const { sha256, run_id, is_open } of rows) {
    if (claims.has(sha256)) continue;
    const released = is_open
      ? (abandoned.get(run_id) ?? (await releaseAbandoned(client, organisationId, run_id)))
      : [];
    abandoned.set(run_id, released);
    if (!released.includes(sha256)) claims.set(sha256, run_id);
  }
  const details = files.flatMap(({ type, sha256 }, file) => {
    const earlier = type === 'interactions' ? claims.get(sha256) : undefined;
    if (earlier === undefined) return [];
    const message = `was uploaded in the run ${earlier} (opened ${timeOfUuidV7(earlier)})`;
    return [{ field: `files[${file}]`, code: 'file_uploaded', message }];
  });
  const [first] = details;
  if (!first) return;
  const problem = `A file of interactions was uploaded before: ${first.field} ${first.message}`;
  throw new RequestError('file_uploaded', { problem, details });
}

/**
 * Ends the run if it was interrupted, so that it cannot send files later that it has not sent yet, and returns these. Otherwise a
 * client that is killed early would hold its files for ever.
 */
async function releaseAbandoned(client: Client, organisationId: string, runId: string): Promise<string[]> {
  await lockRun(client, runId, '');
  const { status, files } = await findRun(client, organisationId, runId);
  const unsent = files.flatMap(({ sha256, requests, type }) =>
    requests === 0 && type === 'interactions' ? [sha256] : [],
  );
  if (status !== 'interrupted' || unsent.length === 0) return status === 'failed' ? unsent : [];
  await endLocked(client, organisationId, runId, { status: 'failed', unseen: [] });
  return unsent;
}

function hashesOf(files: readonly RunFile[]): Buffer[] {
  return files.flatMap(({ type, sha256 }) => (type === 'interactions' ? Buffer.from(sha256, 'hex') : []));
}

export interface Ending {
  readonly status: 'finished' | 'failed';
  readonly unseen: readonly Unseen[];
}

/** Waits for requests that are being stored in the run. A failed run releases its claims on files that it has not sent. */
export function endRun(pool: Pool, organisationId: string, runId: string, ending: Ending): Promise<void> {
  return retryConflicts(() =>
    inTransaction(pool, async (client) => {
      await lockRun(client, runId, '');
      await endLocked(client, organisationId, runId, ending);
    }),
  );
}

async function endLocked(
  client: Client,
  organisationId: string,
  runId: string,
  { status, unseen }: Ending,
): Promise<void> {
  const run = await readRun(client, organisationId, runId);
  if (run.status !== 'open') {
    if (run.status === status && linesOf(run.unseen) === linesOf(unseen)) return;
    throw new RequestError('run_ended', {
      problem: `The run has already ended as ${run.status}, and was reported differently`,
    });
  }
  const statement = {
    name: 'end run',
    text: 'update runs set status = $3, unseen = $4, ended_at = $5 where organisation_id = $1 and run_id = $2',
    values: [organisationId, runId, status, JSON.stringify(unseen), await currentDatabaseTime(client)],
  };
  await queryRows(client, statement, 1);
  if (status === 'failed')
    await releaseFiles(client, organisationId, runId, await unsentFiles(client, organisationId, run));
}

function linesOf(unseen: readonly Unseen[]): string {
  return unseen
    .map(({ file, not_sent, not_kept }) => `${file} ${not_sent} ${not_kept}`)
    .toSorted()
    .join();
}

async function releaseFiles(
  client: Client,
  organisationId: string,
  runId: string,
  files: readonly RunFile[],
): Promise<void> {
  await client.query({
    name: 'release files of a run',
    text: 'delete from run_file_claims where organisation_id = $1 and sha256 = any ($2::bytea[]) and run_id = $3',
    values: [organisationId, hashesOf(files), runId],
  });
}

/** Changes nothing if the run was active a moment ago. */
export async function noteHeartbeat(pool: Pool, organisationId: string, runId: string): Promise<void> {
  await pool.query({
    name: 'note heartbeat of a run',
    text: `update runs set heartbeat_at = now()
           where organisation_id = $1 and run_id = $2 and status = 'open'
             and coalesce(heartbeat_at, '-infinity') < now() - interval '${runLimits.heartbeatMs / 1_000} seconds'`,
    values: [organisationId, runId],
  });
}
