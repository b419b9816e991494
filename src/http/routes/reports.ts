import { correlation, definitions } from '../../reports/definitions.ts';
import {
  type Figures,
  type RecommendationsReport,
  recommendationsReport,
  reportParameters,
} from '../../reports/read-report.ts';
import { type Operation, principalOf } from '../operation/operation.ts';

const figures: Figures = {
  touches: 1200,
  engaged_recommendations: 830,
  students: 410,
  discount_codes: 96,
  transactions: 41,
  transactions_by_offer: 30,
  transactions_by_shop: 11,
  revenue: 1033.5,
  savings: 154.2,
  share_of_transactions: 0.082,
};
const { engaged_recommendations: _, ...ofBrowsing } = figures;
const both = { recommendations: figures, browsing: ofBrowsing };

const example: RecommendationsReport = {
  from: '2026-03-01',
  to: '2026-04-01',
  window: '24h',
  group_by: 'item_type',
  as_of: '2026-04-02T08:15:00.000Z',
  correlation,
  definitions: { touch: definitions.touch },
  total: both,
  all: { transactions: 500, revenue: 12904.75, savings: 1718.4 },
  unusable: { service_without_recommendation: 7, recommendation_without_service: 0 },
  groups: [],
  next_cursor: null,
};

const recommendations: Operation = {
  id: 'report-recommendations',
  method: 'GET',
  path: '/v1/reports/recommendations',
  tag: 'Reports',
  summary: 'Report what recommendations earn',
  description:
    'Returns, for a range of days and for each group, how often students followed recommendations, their discount codes, and ' +
    'the transactions that are credited to the last touch within the window, beside the same figures for browsing. Days are ' +
    'UTC, by `event_time` and `created`; the range is 366 days at the most. Changes count within a minute, late data and ' +
    'deletions included; everything stored before `as_of` is counted. The figures are correlation, not cause.',
  permission: 'data:read',
  query: reportParameters,
  answers: {
    200: {
      description: 'The report, with one page of its groups.',
      schema: { $ref: '#/components/schemas/RecommendationsReport' },
      example,
    },
    409: {
      description:
        'The report is switched off for the organisation, as it is by default; the operator switches it on.',
      schema: { $ref: '#/components/schemas/Error' },
    },
  },
  async handle(call, { pool, cursors }) {
    const { organisationId } = principalOf(call);
    const signer = await cursors.for(organisationId, 'report');
    const body = await call.step('read report', () =>
      recommendationsReport(pool.for(organisationId), organisationId, call.query, signer),
    );
    return { status: 200, body };
  },
};

export const reportOperations: readonly Operation[] = [recommendations];
