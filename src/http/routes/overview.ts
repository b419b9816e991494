import { overviewOf } from '../../ingest/overview.ts';
import { type Operation, principalOf } from '../operation.ts';

export const overviewOperation: Operation = {
  id: 'get-overview',
  method: 'GET',
  path: '/v1/data',
  tag: 'Records',
  summary: 'See what there is',
  description:
    'Says for each type how many records the organisation has, the newest `updated` ever stored, when something was last ' +
    'uploaded, and how many rejections are open. Types of which nothing was ever sent are left out.',
  permission: 'data:read',
  answers: {
    200: {
      description: 'What there is.',
      schema: { $ref: '#/components/schemas/Overview' },
      example: {
        types: [
          {
            type: 'shops',
            records: 512,
            newest_updated: '2026-03-14T09:26:53Z',
            last_upload: '2026-03-14T09:30:00.123Z',
            open_rejections: 0,
          },
        ],
      },
    },
  },
  async handle(call, { pool }) {
    return { status: 200, body: await overviewOf(pool, principalOf(call).organisationId) };
  },
};
