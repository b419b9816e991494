import { invalidRequest, retryAfter } from '../../errors.ts';
import { limits } from '../../limits.ts';
import {
  discardRejections,
  rejectionFilters,
  rejectionPage,
  rejectionPaging,
  rejectionSummary,
} from '../../rejections/find-rejections.ts';
import type { RejectionFilter } from '../../rejections/rejections.ts';
import { failedRequestsOf } from '../../runs/enter-run.ts';
import { overallStatus, sumCounts } from '../../uploads/answer/answer.ts';
import { type Replayed, replayCursor, replayRejections } from '../../uploads/replay-rejections.ts';
import { described, onePage } from '../operation/described-answers.ts';
import { type Call, type Operation, ownOf, type Parts, principalOf } from '../operation/operation.ts';

const tag = 'Rejections';

/** Filters in the body would be ignored, so every rejection would match. */
function refuseBody({ body }: Call): void {
  if (body === undefined || body.length === 0) return;
  const message = 'is not read here; send filters as query parameters, such as ?type=transactions';
  throw invalidRequest({ field: 'body', code: 'unknown_field', message });
}

/** Rejections know their request, but not their run. */
async function filterOf(call: Call, parts: Parts): Promise<RejectionFilter> {
  const {
    request_id: requestId,
    run_id: runId,
    type,
    code,
    field,
  } = call.query as Partial<Record<string, string>>;
  const kinds = { ...(type && { type }), ...(code && { code }), ...(field && { field }) };
  if (runId === undefined) return { ...kinds, ...(requestId && { requestIds: [requestId] }) };
  const { requestIds, isWhole } = await failedRequestsOf(...ownOf(call, parts), runId);
  if (!isWhole) {
    const message = 'names a run with too many failed records; filter by type, code or request_id instead';
    throw invalidRequest({ field: 'run_id', code: 'too_large', message });
  }
  return { ...kinds, requestIds: requestIds.filter((id) => id === (requestId ?? id)) };
}

const list: Operation = {
  id: 'list-rejections',
  method: 'GET',
  path: '/v1/rejections',
  tag,
  summary: 'List rejections',
  description:
    'Returns failed records that are kept, the oldest first, each with its errors. A rejection is removed when its replay ' +
    'succeeds, when it is discarded, or when an upload stores a record with its id.',
  permission: 'data:read',
  query: { ...rejectionFilters, ...rejectionPaging },
  answers: { 200: onePage('RejectionPage') },
  async handle(call, parts) {
    const [pool, organisationId] = ownOf(call, parts);
    const read = async () => rejectionPage(pool, organisationId, await filterOf(call, parts), call.query);
    return {
      status: 200,
      body: await parts.longReads.take(organisationId, read, limits.rejectionsRestMsMax),
    };
  },
};

const summary: Operation = {
  id: 'summarise-rejections',
  method: 'GET',
  path: '/v1/rejections/summary',
  tag,
  summary: 'Summarise rejections',
  description:
    'Counts rejections by type, code and field, with the first and last time of each and an example.',
  permission: 'data:read',
  query: rejectionFilters,
  answers: { 200: described('The most frequent first.', 'RejectionSummary') },
  async handle(call, parts) {
    const [pool, organisationId] = ownOf(call, parts);
    const read = async () => rejectionSummary(pool, organisationId, await filterOf(call, parts));
    return { status: 200, body: await parts.longReads.take(organisationId, read) };
  },
};

const replayAnswer = { $ref: '#/components/schemas/ReplayAnswer' };

const replay: Operation = {
  id: 'replay-rejections',
  method: 'POST',
  path: '/v1/rejections/replay',
  tag,
  summary: 'Replay rejections',
  description:
    'Validates rejections again, for example once the records they refer to are uploaded. Those that pass are stored and ' +
    `removed from the rejections; the others stay with their new errors. A call replays up to ${limits.rejectionsPerReplayMax.toLocaleString('en')} ` +
    'records, the oldest first; `remaining` says how many that match are left. If there are more, send `next_cursor` as ' +
    '`cursor`, with the same filters, until it is null: then each has been tried.',
  permission: 'data:write',
  storesRecords: true,
  query: { ...rejectionFilters, cursor: replayCursor },
  answers: {
    200: { description: 'No record failed.', schema: replayAnswer, hasQuota: true },
    207: { description: 'Some failed again.', schema: replayAnswer, hasQuota: true },
    400: {
      description: 'Every record failed again, or a parameter is unknown or wrong.',
      schema: { oneOf: [replayAnswer, { $ref: '#/components/schemas/Error' }] },
      hasQuota: true,
    },
  },
  async handle(call, parts) {
    const { pool, checker, references, requestLimits, cursors } = parts;
    refuseBody(call);
    const principal = principalOf(call);
    const { organisationId, keyId } = principal;
    const { requestId } = call;
    const { cursor } = call.query;
    const filter = await filterOf(call, parts);
    const replayed = await replayRejections(
      {
        pool: pool.atOwner(organisationId),
        checker,
        references,
        signer: await cursors.for(organisationId, 'replay'),
      },
      {
        organisationId,
        keyId,
        requestId,
        startedMs: performance.now(),
        filter,
        cursor: cursor as string | undefined,
      },
      (error) => call.log.error({ err: error }, 'a replay was broken off'),
    );
    const { batches } = replayed;
    // The number of records is known only at this point, so the limit takes effect on the organisation's next request.
    const counts = sumCounts(batches);
    if (counts.received > 0) await requestLimits.count('records', principal, counts.received).catch(() => {});
    const unfinished = batches.some(({ status }) => status === 500);
    const status = batches.length === 0 ? 200 : overallStatus(batches);
    const body = replayBody(requestId, replayed);
    const bytes = batches.reduce((sum, { text }) => sum + text.length, 0);
    return { status, body, bytes, counts, ...(unfinished && { headers: retryAfter }) };
  },
};

/** Streamed, because 50,000 records that fail again take up 35 MB. `type` is null if the records have several types. */
async function* replayBody(
  requestId: string,
  { batches, remaining, nextCursor }: Replayed,
): AsyncGenerator<Buffer> {
  const [type = null, ...others] = new Set(batches.map((batch) => batch.type));
  const head = JSON.stringify({ request_id: requestId, type: others.length === 0 ? type : null });
  yield Buffer.from(`${head.slice(0, -1)},"batches":[`);
  for (const [at, { text }] of batches.entries()) yield Buffer.from(at === 0 ? text : `,${text}`);
  yield Buffer.from(`],"remaining":${remaining},"next_cursor":${JSON.stringify(nextCursor)}}`);
}

const discard: Operation = {
  id: 'discard-rejections',
  method: 'DELETE',
  path: '/v1/rejections',
  tag,
  summary: 'Discard rejections',
  description:
    'Deletes the rejections that match; without a filter, all of them. A call takes about ' +
    `${limits.discardRejectionsMs / 1_000} seconds at most; if \`has_more\` is true, send the same request again for the rest.`,
  permission: 'data:write',
  query: rejectionFilters,
  answers: {
    200: {
      description: 'How many were deleted, and whether there are more.',
      schema: {
        type: 'object',
        required: ['discarded', 'has_more'],
        properties: {
          discarded: { type: 'integer', minimum: 0 },
          has_more: {
            type: 'boolean',
            description: 'whether time ran out before all were deleted; then send the same request again',
          },
        },
      },
    },
  },
  async handle(call, parts) {
    refuseBody(call);
    const filter = await filterOf(call, parts);
    const { discarded, hasMore } = await discardRejections(...ownOf(call, parts), filter);
    return { status: 200, body: { discarded, has_more: hasMore } };
  },
};

export const rejectionOperations: readonly Operation[] = [list, summary, replay, discard];
