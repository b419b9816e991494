import type { Pool } from '../../postgres/pool.ts';
import { measureStored } from '../../quotas/measure-usage.ts';
import { dailyReceipts } from '../../receipts/daily-receipts.ts';
import { receiptFilters, receiptPage } from '../../receipts/find-receipts.ts';
import { rejectionSummary } from '../../rejections/find-rejections.ts';
import { described, notFound, onePage } from '../operation/described-answers.ts';
import type { Call, Operation } from '../operation/operation.ts';
import { dayCount } from '../routes/requests.ts';
import { organisationOf, pathParameters } from './organisations.ts';
import type { AdminParts } from './parts.ts';

const tag = 'Organisations';

async function poolOf(call: Call, parts: AdminParts): Promise<[pool: Pool, organisationId: string]> {
  const { organisation_id: organisationId } = await organisationOf(call, parts);
  return [parts.shared.for(organisationId), organisationId];
}

const requests: Operation<AdminParts> = {
  id: 'list-requests-of-organisation',
  method: 'GET',
  path: '/admin/v1/organisations/{slug}/requests',
  tag,
  summary: 'List the receipts of an organisation',
  description:
    'Returns a page of receipts, the newest first, without the answers to single records: send `next_cursor` as `cursor` until it ' +
    'is null.',
  permission: null,
  pathParameters,
  query: receiptFilters,
  answers: { 200: onePage('ReceiptPage'), 404: notFound },
  async handle(call, parts) {
    return { status: 200, body: await receiptPage(...(await poolOf(call, parts)), call.query) };
  },
};

const rejections: Operation<AdminParts> = {
  id: 'summarise-rejections-of-organisation',
  method: 'GET',
  path: '/admin/v1/organisations/{slug}/rejections/summary',
  tag,
  summary: 'Summarise the rejections of an organisation',
  description: 'Counts rejections by type, code and field, with the first and last time of each.',
  permission: null,
  pathParameters,
  answers: { 200: described('The most frequent first.', 'RejectionCounts'), 404: notFound },
  async handle(call, parts) {
    const { rejections } = await rejectionSummary(...(await poolOf(call, parts)), {});
    // Only the organisation itself may see the records.
    return { status: 200, body: { rejections: rejections.map(({ example: _, ...counted }) => counted) } };
  },
};

const usage: Operation<AdminParts> = {
  id: 'get-usage-of-organisation',
  method: 'GET',
  path: '/admin/v1/organisations/{slug}/usage',
  tag,
  summary: 'Show how much an organisation has stored, and its uploads by day',
  description:
    'Counts stored records by type, whether or not there is a quota, and multiplies them with the average size of rows that ' +
    'it samples: like quotas, without indexes. For each of the last days, in UTC and the newest first, it returns how many ' +
    'uploads there were, and the outcomes of their records.',
  permission: null,
  pathParameters,
  query: { days: dayCount },
  answers: { 200: described('The largest type first.', 'Usage'), 404: notFound },
  async handle(call, parts) {
    const [pool, organisationId] = await poolOf(call, parts);
    const { days } = call.query as { days?: number };
    const body = {
      types: await measureStored(pool, organisationId),
      days: await dailyReceipts(pool, organisationId, days),
    };
    return { status: 200, body };
  },
};

export const uploadOperations: readonly Operation<AdminParts>[] = [requests, rejections, usage];
