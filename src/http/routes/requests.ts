import { limits } from '../../limits.ts';
import { dailyReceipts } from '../../receipts/daily-receipts.ts';
import { receiptFilters, receiptFor, receiptPage } from '../../receipts/find-receipts.ts';
import { countUpTo, optional, uuid } from '../../registry/fields.ts';
import { described, notFound, onePage } from '../operation/described-answers.ts';
import { type Operation, ownOf } from '../operation/operation.ts';

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
  answers: { 200: described('The receipt.', 'Receipt'), 404: notFound },
  async handle(call, parts) {
    return { status: 200, body: receiptFor(...ownOf(call, parts), call.params.request_id ?? '') };
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
  async handle(call, parts) {
    return { status: 200, body: await receiptPage(...ownOf(call, parts), call.query) };
  },
};

export const dayCount = optional(countUpTo(limits.receiptDaysMax, limits.receiptDaysDefault));

const days: Operation = {
  id: 'count-requests',
  method: 'GET',
  path: '/v1/requests/daily',
  tag,
  summary: 'Count uploads by day',
  description:
    'Returns for each of the last days, in UTC and the newest first, how many uploads there were, and the outcomes of ' +
    'their records.',
  permission: 'data:read',
  query: { days: dayCount },
  answers: { 200: described('A row for each day.', 'DaysOfUploads') },
  async handle(call, parts) {
    const { days: count } = call.query as { days?: number };
    return { status: 200, body: { days: await dailyReceipts(...ownOf(call, parts), count) } };
  },
};

export const requestOperations: readonly Operation[] = [list, days, get];
