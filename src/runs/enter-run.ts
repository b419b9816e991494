// runs/: uploads of one or several files, which the requests of a client can name.

import { invalidRequest, RequestError } from '../errors.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import type { UploadType } from '../registry/upload-types.ts';
import { firstRequestOf } from './find-runs.ts';
import { runLimits } from './limits.ts';

/** What a request says about itself. */
export interface RunPart {
  readonly runId: string;
  /** The file's index in the run. */
  readonly file: number;
  /** The number of the request's first record in the file, from 1. */
  readonly firstRecord: number | null;
}

/**
 * Requests share the lock until they commit, and the end of the run takes it alone: after it, nothing is stored in the run.
 * The row is not locked, because even a shared lock on it would be written to disk with every batch.
 */
export async function enterRun(
  client: Client,
  organisationId: string,
  { runId, file }: RunPart,
  type: UploadType,
): Promise<void> {
  const [, { rows }] = await Promise.all([
    lockRun(client, runId, '_shared'),
    client.query<{ status: string; type: string | null }>({
      name: 'enter run',
      text: `select status, files -> $3::integer ->> 'type' as type from runs
             where organisation_id = $1 and run_id = $2`,
      values: [organisationId, runId, file],
    }),
  ]);
  const [run] = rows;
  if (!run) throw new RequestError('run_not_found');
  if (run.status !== 'open') throw new RequestError('run_ended');
  if (run.type === type) return;
  const message =
    run.type === null
      ? 'is not the index of a file of the run, from 0'
      : `is a file of ${run.type}, and this request has ${type}`;
  throw invalidRequest({ field: 'file', code: 'invalid_value', message });
}

export async function lockRun(client: Client, runId: string, shared: '' | '_shared'): Promise<void> {
  await client.query({
    name: shared ? 'share run' : 'lock run',
    text: `select pg_advisory_xact_lock${shared}(hashtextextended($1, 0))`,
    values: [`run ${runId}`],
  });
}

/**
 * The requests with failed records, in the order received, up to limits: listing 500,000 rejections of 5,000 requests takes about a
 * second. Rejections know their request, but not their run.
 */
export async function failedRequestsOf(
  pool: Pick<Pool, 'query'>,
  organisationId: string,
  runId: string,
): Promise<{ readonly requestIds: readonly string[]; readonly isWhole: boolean }> {
  const { rows } = await pool.query<{ request_id: string; failed: number }>({
    name: 'failed requests of a run',
    text: `select request_id, failed from receipts
           where organisation_id = $1 and run_id = $2 and request_id >= $3 and failed > 0
           order by request_id limit ${runLimits.failedRequestsMax + 1}`,
    values: [organisationId, runId, firstRequestOf(runId)],
  });
  let failedBefore = 0;
  const requestIds: string[] = [];
  for (const { request_id, failed } of rows.slice(0, runLimits.failedRequestsMax)) {
    if (failedBefore >= runLimits.failedRecordsMax) break;
    requestIds.push(request_id);
    failedBefore += failed;
  }
  return { requestIds, isWhole: requestIds.length === rows.length };
}
