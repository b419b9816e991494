import { receiptFilters, receiptFor, receiptPage } from '../../receipts/find-receipts.ts';
import { uuid } from '../../registry/fields.ts';
import { notFound, onePage } from '../operation/described-answers.ts';
import { type Operation, principalOf } from '../operation/operation.ts';

const tag = 'Receipts';

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
    200: { description: 'The receipt.', schema: { $ref: '#/components/schemas/Receipt' } },
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
  answers: { 200: onePage('ReceiptPage') },
  async handle(call, { pool }) {
    const { organisationId } = principalOf(call);
    return { status: 200, body: await receiptPage(pool.for(organisationId), organisationId, call.query) };
  },
};

export const requestOperations: readonly Operation[] = [list, get];
