import { counted } from '../bookkeeping/store.ts';
import { RequestError } from '../errors.ts';
import { exactTime } from '../postgres/iso-time.ts';
import { type AskedPage, newestFirst } from '../postgres/keyset-page.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { databaseTime, inTransaction } from '../postgres/transactions.ts';
import type { Counts } from '../receipts/batch-answer.ts';
import {
  dateTime,
  type Field,
  oneOf,
  optional,
  perPage,
  type Scalar,
  text,
  uuid,
} from '../registry/fields.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { lastUuid, msOfUuidV7, timeOfUuidV7, uuidFloor } from '../registry/uuid-v7.ts';
import { runLimits } from './limits.ts';

export interface RunFile {
  /** Without folders. */
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly type: UploadType;
}

/** What the client counted, and the service did not see. */
export interface Unseen {
  readonly file: number;
  readonly not_sent: number;
  readonly not_kept: number;
}

const endings = ['finished', 'failed'] as const;
export const runStatuses = ['running', 'interrupted', ...endings] as const;
type RunStatus = (typeof runStatuses)[number];

export interface RunSummary {
  readonly run_id: string;
  readonly name: string;
  readonly status: RunStatus;
  readonly opened: string;
  readonly last_activity: string;
  readonly ended: string | null;
  readonly key_id: string;
  readonly client_version: string | null;
  readonly file_count: number;
  readonly requests: number;
  readonly counts: Counts;
  readonly not_sent: number;
  readonly not_kept: number;
}

export interface Run extends RunSummary {
  readonly files: readonly (RunFile & {
    readonly file: number;
    readonly requests: number;
    readonly counts: Counts;
    readonly not_sent: number;
    readonly not_kept: number;
  })[];
}

interface StoredRun {
  readonly run_id: string;
  readonly key_id: string;
  readonly name: string;
  readonly client_version: string | null;
  readonly files: readonly RunFile[];
  readonly status: 'open' | (typeof endings)[number];
  readonly unseen: readonly Unseen[];
  readonly heartbeat: string | null;
  readonly ended: string | null;
  readonly read_ms: number;
}

const columns = `run_id, key_id, name, client_version, files, status, unseen, ${exactTime('heartbeat_at')} as heartbeat,
  ${exactTime('ended_at')} as ended, extract(epoch from now())::float8 * 1000 as read_ms`;

/** Sums of a run's receipts: of one file, or of all. */
interface Sums {
  readonly requests: number;
  readonly counts: Counts;
  readonly lastMs: number;
}

const noCounts = Object.fromEntries(counted.map((column) => [column, 0])) as unknown as Counts;
const none: Sums = { requests: 0, counts: noCounts, lastMs: 0 };

/**
 * Summed whenever they are read, so that nothing has to be kept up to date. The ranges of request ids limit the weeks that
 * are searched: a range over all runs lets PostgreSQL leave out the other weeks before it begins, and each run has its own.
 */
async function sumReceipts(
  client: Pick<Pool, 'query'>,
  organisationId: string,
  runs: readonly StoredRun[],
): Promise<Map<string, Map<number, Sums>>> {
  const firstIds = runs.map(({ run_id }) => firstRequestOf(run_id));
  const endIds = runs.map(({ ended }) =>
    ended === null ? lastUuid : uuidFloor(Date.parse(ended) + runLimits.clocksApartMs),
  );
  const { rows } = await client.query<
    { run_id: string; file: number; requests: number; last_id: string } & Record<string, number>
  >({
    name: 'sum receipts of runs',
    text: `
      select a.run_id, s.*
      from unnest($2::uuid[], $3::uuid[], $4::uuid[]) as a(run_id, first_id, end_id)
      cross join lateral (
        select r.file, count(*)::integer as requests, max(r.request_id::text) as last_id,
          ${counted.map((column) => `sum(r.${column})::float8 as ${column}`).join(', ')}
        from receipts r
        where r.organisation_id = $1 and r.run_id = a.run_id and r.request_id >= a.first_id and r.request_id < a.end_id
          and r.request_id >= $5 and r.request_id < $6
        group by r.file) as s`,
    values: [
      organisationId,
      runs.map(({ run_id }) => run_id),
      firstIds,
      endIds,
      firstIds.toSorted()[0],
      endIds.toSorted().at(-1),
    ],
  });
  const sums = new Map<string, Map<number, Sums>>();
  for (const row of rows) {
    const ofRun = sums.get(row.run_id) ?? new Map<number, Sums>();
    const counts = Object.fromEntries(counted.map((column) => [column, row[column]])) as unknown as Counts;
    ofRun.set(row.file, { requests: row.requests, counts, lastMs: msOfUuidV7(row.last_id) });
    sums.set(row.run_id, ofRun);
  }
  return sums;
}

/** No request of the run has a smaller id. */
export function firstRequestOf(runId: string): string {
  return uuidFloor(Math.max(0, msOfUuidV7(runId) - runLimits.clocksApartMs));
}

function totalOf(sums: Iterable<Sums>): Sums {
  return [...sums].reduce(
    (total, { requests, counts, lastMs }) => ({
      requests: total.requests + requests,
      counts: Object.fromEntries(
        counted.map((column) => [column, total.counts[column] + counts[column]]),
      ) as unknown as Counts,
      lastMs: Math.max(total.lastMs, lastMs),
    }),
    none,
  );
}

function summaryOf(stored: StoredRun, sums: ReadonlyMap<number, Sums> = new Map()): RunSummary {
  const { requests, counts, lastMs } = totalOf(sums.values());
  const noted = [stored.heartbeat, stored.ended].flatMap((time) => (time === null ? [] : Date.parse(time)));
  const activeMs = Math.max(msOfUuidV7(stored.run_id), lastMs, ...noted);
  const isActive = activeMs >= stored.read_ms - runLimits.interruptedMs;
  return {
    run_id: stored.run_id,
    name: stored.name,
    status: stored.status === 'open' ? (isActive ? 'running' : 'interrupted') : stored.status,
    opened: timeOfUuidV7(stored.run_id),
    last_activity: new Date(activeMs).toISOString(),
    ended: stored.ended,
    key_id: stored.key_id,
    client_version: stored.client_version,
    file_count: stored.files.length,
    requests,
    counts,
    not_sent: stored.unseen.reduce((sum, { not_sent }) => sum + not_sent, 0),
    not_kept: stored.unseen.reduce((sum, { not_kept }) => sum + not_kept, 0),
  };
}

export async function readRun(
  client: Pick<Pool, 'query'>,
  organisationId: string,
  runId: string,
): Promise<StoredRun> {
  const { rows } = await client.query<StoredRun>({
    name: 'find run',
    text: `select ${columns} from runs where organisation_id = $1 and run_id = $2`,
    values: [organisationId, runId],
  });
  if (!rows[0]) throw new RequestError('run_not_found');
  return rows[0];
}

export async function findRun(
  client: Pick<Pool, 'query'>,
  organisationId: string,
  runId: string,
): Promise<Run> {
  const stored = await readRun(client, organisationId, runId);
  const sums = (await sumReceipts(client, organisationId, [stored])).get(runId);
  const files = stored.files.map((sent, file) => {
    const { requests, counts } = sums?.get(file) ?? none;
    const { not_sent = 0, not_kept = 0 } = stored.unseen.find((one) => one.file === file) ?? {};
    const { name, bytes, sha256, type } = sent;
    return { file, name, bytes, sha256, type, requests, counts, not_sent, not_kept };
  });
  return { ...summaryOf(stored, sums), files };
}

export const runFilters = {
  name: optional(
    text({ codePointsMax: runLimits.nameCodePointsMax, description: 'only runs with this name' }),
  ),
  status: optional(oneOf(runStatuses, { description: 'only runs with this status' })),
  from: optional(dateTime({ description: 'only runs that were opened at this time or later' })),
  to: optional(dateTime({ description: 'only runs that were opened before this time' })),
  cursor: optional(uuid({ description: 'the `next_cursor` of the previous page' })),
  limit: optional(perPage('runs', runLimits.perPageMax, runLimits.perPageDefault)),
} satisfies Record<string, Field>;

/**
 * The runs that have not ended, and are active or not, as in `summaryOf`. The times are literals, because planning the search
 * in all weeks of a year would take 40 ms. With `exists`, it could read the recent receipts of all runs.
 */
async function openRuns(client: Client, status: Scalar): Promise<string> {
  const since = new Date((await databaseTime(client)).getTime() - runLimits.interruptedMs);
  const first = `'${uuidFloor(since.getTime())}'`;
  return `(
    select * from runs r where organisation_id = $1 and ${status === 'running' ? '' : 'not'} (
      r.run_id >= ${first} or coalesce(r.heartbeat_at >= '${since.toISOString()}', false) or coalesce((
        select true from receipts where organisation_id = $1 and run_id = r.run_id and request_id >= ${first} limit 1),
        false))) as open`;
}

export async function runPage(
  pool: Pool,
  organisationId: string,
  query: Readonly<Record<string, Scalar>>,
): Promise<{ readonly runs: readonly RunSummary[]; readonly next_cursor: string | null }> {
  const { name, status, from, to, cursor, limit = runLimits.perPageDefault } = query;
  const ended = endings.find((one) => one === status);
  const isOpen = status !== undefined && ended === undefined;
  const filter = {
    ...(name !== undefined && { name }),
    ...(status !== undefined && { status: ended ?? 'open' }),
  };
  const asked = { from, to, cursor, limit } as AskedPage;
  return inTransaction(
    pool,
    async (client: Client) => {
      const table = { name: isOpen ? await openRuns(client, status) : 'runs', id: 'run_id', columns };
      const { rows, next } = await newestFirst<StoredRun>(client, table, organisationId, filter, asked);
      const sums = rows.length > 0 ? await sumReceipts(client, organisationId, rows) : new Map();
      return { runs: rows.map((row) => summaryOf(row, sums.get(row.run_id))), next_cursor: next };
    },
    'begin isolation level repeatable read read only',
  );
}

/** The files whose records no stored request has. */
export async function unsentFiles(
  client: Pick<Pool, 'query'>,
  organisationId: string,
  run: StoredRun,
): Promise<readonly RunFile[]> {
  const sums = (await sumReceipts(client, organisationId, [run])).get(run.run_id);
  return run.files.filter((_, file) => !sums?.has(file));
}
