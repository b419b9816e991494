import { type Measure, measures } from '../../activity/activity-counts.ts';
import { busiestOrganisations, serviceState } from '../../activity/find-activity.ts';
import { limits } from '../../limits.ts';
import { waitingWork } from '../../maintenance/waiting-work.ts';
import { countUpTo, oneOf, optional } from '../../registry/fields.ts';
import { described } from '../operation/described-answers.ts';
import type { Operation } from '../operation/operation.ts';
import type { AdminParts } from './parts.ts';

const tag = 'Service';

const top: Operation<AdminParts> = {
  id: 'list-busiest-organisations',
  method: 'GET',
  path: '/admin/v1/top',
  tag,
  summary: 'List the busiest organisations',
  description:
    'Returns the busiest organisations of the last minutes, the busiest first. Each process records its ' +
    `${limits.busiestOrganisationsMax} busiest by each measure once a minute, so the last minute may be missing.`,
  permission: null,
  query: {
    by: optional(oneOf(measures, { description: 'the measure to compare, default requests' })),
    minutes: optional(countUpTo(limits.busiestMinutesMax, limits.busiestMinutesDefault)),
    limit: optional(countUpTo(limits.busiestOrganisationsMax, limits.busiestDefault)),
  },
  answers: { 200: described('The busiest.', 'BusiestOrganisations') },
  async handle(call, { pool }) {
    const {
      by = 'requests',
      minutes = limits.busiestMinutesDefault,
      limit: count = limits.busiestDefault,
    } = call.query as { by?: Measure; minutes?: number; limit?: number };
    return { status: 200, body: await busiestOrganisations(pool, { by, minutes, count }) };
  },
};

const service: Operation<AdminParts> = {
  id: 'get-service',
  method: 'GET',
  path: '/admin/v1/service',
  tag,
  summary: 'See the state of the service',
  description:
    'Returns the running processes, when each maintenance chore last succeeded and last failed, which background work ' +
    'is waiting, how far ahead partitions exist, the nodes of a cluster, and for how many days the service keeps receipts, rejections and deleted ' +
    'organisations.',
  permission: null,
  answers: { 200: described('The state in the last minute.', 'Service') },
  async handle(_call, { pool, config }) {
    const work = Object.entries(await waitingWork(pool, config));
    return {
      status: 200,
      body: {
        ...(await serviceState(pool)),
        waiting: work.map(([name, { waiting, oldestSeconds }]) => ({
          work: name,
          count: waiting,
          oldest_seconds: oldestSeconds,
        })),
        receipts_kept_days: config.receiptsKeptDays,
        deleted_organisations_kept_days: config.deletedOrganisationsKeptDays,
      },
    };
  },
};

export const activityOperations: readonly Operation<AdminParts>[] = [top, service];
