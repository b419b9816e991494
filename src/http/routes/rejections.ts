import { RequestError, retryAfter } from '../../errors.ts';
import { overallStatus } from '../../ingest/answer.ts';
import {
  discardRejections,
  rejectionFilters,
  rejectionPage,
  rejectionPaging,
  rejectionSummary,
} from '../../ingest/find-rejections.ts';
import { replayCursor, replayRejections } from '../../ingest/replay-rejections.ts';
import { limits } from '../../limits.ts';
import type { RejectionFilter } from '../../store/rejections.ts';
import { type Call, type Operation, principalOf } from '../operation.ts';

const tag = 'Rejections';
const badParameter = {
  400: { description: 'A parameter is unknown or wrong.', schema: { $ref: '#/components/schemas/Error' } },
};

/** Filters that were put into a body would otherwise be passed over, and everything be meant. */
function refuseBody({ body }: Call): void {
  if (body === undefined || body.length === 0) return;
  const message = 'is not read here; give what you ask for as query parameters, such as ?type=transactions';
  throw new RequestError('invalid_request', { details: [{ field: 'body', code: 'unknown_field', message }] });
}

const list: Operation = {
  id: 'list-rejections',
  method: 'GET',
  path: '/v1/rejections',
  tag,
  summary: 'List rejections',
  description:
    'Gives the records that were refused and have not been put right, the oldest first, each with what was wrong with ' +
    'it. One leaves when it is replayed with success, discarded, or when an upload stores the same id.',
  permission: 'data:read',
  query: { ...rejectionFilters, ...rejectionPaging },
  answers: {
    200: { description: 'One page.', schema: { $ref: '#/components/schemas/RejectionPage' } },
    ...badParameter,
  },
  async handle(call, { pool }) {
    return { status: 200, body: await rejectionPage(pool, principalOf(call).organisationId, call.query) };
  },
};

const summary: Operation = {
  id: 'summarise-rejections',
  method: 'GET',
  path: '/v1/rejections/summary',
  tag,
  summary: 'Summarise rejections',
  description:
    'Counts rejections by type, code and field, with when each was first and last seen and an example.',
  permission: 'data:read',
  query: rejectionFilters,
  answers: {
    200: {
      description: 'The most frequent first.',
      schema: { $ref: '#/components/schemas/RejectionSummary' },
    },
    ...badParameter,
  },
  async handle(call, { pool }) {
    const { organisationId } = principalOf(call);
    return { status: 200, body: await rejectionSummary(pool, organisationId, call.query as RejectionFilter) };
  },
};

const replay: Operation = {
  id: 'replay-rejections',
  method: 'POST',
  path: '/v1/rejections/replay',
  tag,
  summary: 'Try rejections again',
  description:
    'Checks rejected records again, for example once what they refer to has been uploaded: what passes is stored and ' +
    `leaves the list, what does not stays with its new reason. Takes up to ${limits.rejectionsPerReplayMax.toLocaleString('en')} ` +
    'records a call, the oldest first; `remaining` says how many of those asked for are left. Where there are more than ' +
    'that, pass `next_cursor` on as `cursor`, with the same filters, until it is null: then each has been tried.',
  permission: 'data:write',
  query: { ...rejectionFilters, cursor: replayCursor },
  answers: {
    200: { description: 'No record failed.', schema: { $ref: '#/components/schemas/ReplayAnswer' } },
    207: { description: 'Some failed again.', schema: { $ref: '#/components/schemas/ReplayAnswer' } },
    400: {
      description: 'Every record failed again, or a parameter is unknown or wrong.',
      schema: {
        oneOf: [{ $ref: '#/components/schemas/ReplayAnswer' }, { $ref: '#/components/schemas/Error' }],
      },
    },
  },
  async handle(call, { pool, requestLimits }) {
    refuseBody(call);
    const principal = principalOf(call);
    const { organisationId, keyId } = principal;
    const replayed = { organisationId, keyId, requestId: call.requestId, startedMs: performance.now() };
    const { cursor, ...filter } = call.query;
    const body = await replayRejections(
      pool,
      replayed,
      filter as RejectionFilter,
      cursor as string | undefined,
      (error) => call.log.error({ err: error }, 'a replay was broken off'),
    );
    // How many there are is known only now: whoever had more than their share waits with the next request.
    const tried = body.batches.reduce((sum, { data }) => sum + data.counts.received, 0);
    if (tried > 0) await requestLimits.count('records', principal, tried).catch(() => {});
    const unfinished = body.batches.some(({ status }) => status === 500);
    const status = body.batches.length === 0 ? 200 : overallStatus(body.batches);
    return { status, body, ...(unfinished && { headers: retryAfter }) };
  },
};

const discard: Operation = {
  id: 'discard-rejections',
  method: 'DELETE',
  path: '/v1/rejections',
  tag,
  summary: 'Discard rejections',
  description: 'Removes the rejections that match; without a filter, all of them.',
  permission: 'data:write',
  query: rejectionFilters,
  answers: {
    200: {
      description: 'How many were removed.',
      schema: {
        type: 'object',
        required: ['discarded'],
        properties: { discarded: { type: 'integer', minimum: 0 } },
      },
      example: { discarded: 12 },
    },
    ...badParameter,
  },
  async handle(call, { pool }) {
    refuseBody(call);
    const { organisationId } = principalOf(call);
    const discarded = await discardRejections(pool, organisationId, call.query as RejectionFilter);
    return { status: 200, body: { discarded } };
  },
};

export const rejectionOperations: readonly Operation[] = [list, summary, replay, discard];
