import { overviewOf } from '../../uploads/overview.ts';
import { described } from '../operation/described-answers.ts';
import { type Operation, ownOf } from '../operation/operation.ts';

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
  answers: { 200: described('The types.', 'Overview') },
  async handle(call, parts) {
    return { status: 200, body: await overviewOf(...ownOf(call, parts)) };
  },
};
