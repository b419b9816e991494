import { batchAnswer } from '../../ingest/answer.ts';
import { type Receipt, receiptFilters, receiptFor, receiptPage } from '../../ingest/find-receipts.ts';
import { created } from '../../ingest/outcome.ts';
import { uuid } from '../../registry/fields.ts';
import { type Operation, principalOf } from '../operation.ts';

const tag = 'Receipts';
const error = { $ref: '#/components/schemas/Error' };

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
    broken: undefined,
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
    'Gives the answer of an upload again, and when, by which key and how it came about. A receipt is written together ' +
    'with its records: where there is none, nothing was stored. Kept for 30 days unless the operator says otherwise.',
  permission: 'data:read',
  pathParameters: { request_id: uuid() },
  answers: {
    200: { description: 'The receipt.', schema: { $ref: '#/components/schemas/Receipt' }, example },
    404: { description: 'There is none with this id.', schema: error },
  },
  async handle(call, { pool }) {
    const { organisationId } = principalOf(call);
    return { status: 200, body: await receiptFor(pool, organisationId, call.params.request_id ?? '') };
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
    'Gives the receipts of uploads, the newest first, a page at a time: pass `next_cursor` on as `cursor` until it is null.',
  permission: 'data:read',
  query: receiptFilters,
  answers: {
    200: {
      description: 'One page.',
      schema: { $ref: '#/components/schemas/ReceiptPage' },
      example: { requests: [summary], next_cursor: null },
    },
    400: { description: 'A parameter is unknown or wrong.', schema: error },
  },
  async handle(call, { pool }) {
    return { status: 200, body: await receiptPage(pool, principalOf(call).organisationId, call.query) };
  },
};

export const requestOperations: readonly Operation[] = [list, get];
