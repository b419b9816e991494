import { overviewOf } from '../../uploads/overview.ts';
import { type Operation, principalOf } from '../operation/operation.ts';

export const overviewOperation: Operation = {
  id: 'get-overview',
  method: 'GET',
  path: '/v1/data',
  tag: 'Records',
  summary: 'Get an overview',
  description:
    'Returns for each type how many records the organisation has, the newest `updated` ever stored, the time of the last ' +
    'upload, and how many rejections are open. Interactions are included; their last upload is when the last interaction ' +
    'was received, alone or in a batch. Types that were never uploaded are omitted.',
  permission: 'data:read',
  answers: {
    200: { description: 'The types.', schema: { $ref: '#/components/schemas/Overview' } },
  },
  async handle(call, { pool }) {
    const { organisationId } = principalOf(call);
    return { status: 200, body: await overviewOf(pool.for(organisationId), organisationId) };
  },
};
