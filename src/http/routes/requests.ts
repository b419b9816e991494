import { type Receipt, receiptFilters, receiptFor, receiptPage } from '../../receipts/find-receipts.ts';
import { uuid } from '../../registry/fields.ts';
import { batchAnswer } from '../../uploads/answer/answer.ts';
import { created } from '../../uploads/answer/outcome.ts';
import { notFound, onePage } from '../description/responses.ts';
import { type Operation, principalOf } from '../operation/operation.ts';

const tag = 'Receipts';

const example: Receipt = (() => {
  const requestId = '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f';
  const batch = batchAnswer({
    number: 1,
    batchId: '019ced6c-5a31-7f10-9a2b-3c4d5e6f7a8b',
    requestId,
    type: 'shops',
    start: 0,
    outcomes: [created],
    warnings: [],
  });
  return {
    request_id: requestId,
    operation: 'upload',
    type: 'shops',
    status: 200,
    received: '2026-03-14T09:26:53.035Z',
    key_id: '7dQk2LrX9Ab',
    idempotency_key: null,
    body_bytes: 214,
    duration_ms: 12,
    batch_count: 1,
    complete: true,
    missing_batches: [],
    counts: batch.data.counts,
    batches: [batch],
  };
})();

const get: Operation = {
  id: 'get-request',
  method: 'GET',
  path: '/v1/requests/{request_id}',
  tag,
  summary: 'Get the receipt of an upload',
  description:
    'Returns the answer to an upload, with its time, key and duration. A receipt is committed together with its records: ' +
    'if there is none, nothing was stored. Receipts are kept for a time that the operator sets, default 30 days.',
  permission: 'data:read',
  pathParameters: {
    request_id: uuid({ description: 'the `request_id` of the upload, or its `X-Request-Id`' }),
  },
  answers: {
    200: { description: 'The receipt.', schema: { $ref: '#/components/schemas/Receipt' }, example },
    404: notFound,
  },
  async handle(call, { pool }) {
    const { organisationId } = principalOf(call);
    return {
      status: 200,
      body: receiptFor(pool.for(organisationId), organisationId, call.params.request_id ?? ''),
    };
  },
};

const { batches: _, ...summary } = example;

const list: Operation = {
  id: 'list-requests',
  method: 'GET',
  path: '/v1/requests',
  tag,
  summary: 'List receipts',
  description:
    'Returns a page of receipts, the newest first: send `next_cursor` as `cursor` until it is null.',
  permission: 'data:read',
  query: receiptFilters,
  answers: { 200: onePage('ReceiptPage', { requests: [summary], next_cursor: null }) },
  async handle(call, { pool }) {
    const { organisationId } = principalOf(call);
    return { status: 200, body: await receiptPage(pool.for(organisationId), organisationId, call.query) };
  },
};

export const requestOperations: readonly Operation[] = [list, get];
