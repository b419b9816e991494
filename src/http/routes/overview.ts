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
    'upload, and how many rejections are open. Interactions are counted among them; for those, the last upload is when ' +
    'the last one was received, alone or in a batch. Types that were never uploaded are left out.',
  permission: 'data:read',
  answers: {
    200: { description: 'The types.', schema: { $ref: '#/components/schemas/Overview' } },
  },
  async handle(call, { pool }) {
    const { organisationId } = principalOf(call);
    return { status: 200, body: await overviewOf(pool.for(organisationId), organisationId) };
  },
};
