import { recommendationsReport, reportParameters } from '../../reports/read-report.ts';
import { described, refused } from '../operation/described-answers.ts';
import { type Operation, ownOf } from '../operation/operation.ts';

const recommendations: Operation = {
  id: 'report-recommendations',
  method: 'GET',
  path: '/v1/reports/recommendations',
  tag: 'Reports',
  summary: 'Report what recommendations earn',
  description:
    'Returns, for a range of days and for each group, how often students followed recommendations, their discount codes, and ' +
    'the transactions that are credited to the last touch within the window, next to the same figures for browsing. Days are ' +
    'UTC, by `event_time` and `created`; the range is 366 days at most. Changes count within a minute, late data and ' +
    'deletions included; everything stored before `as_of` is counted. The figures are correlation, not cause.',
  permission: 'data:read',
  query: reportParameters,
  answers: {
    200: described('The report, with one page of its groups.', 'RecommendationsReport'),
    409: refused(
      'The report is switched off for the organisation, which is the default; the operator can switch it on.',
    ),
  },
  async handle(call, parts) {
    const [pool, organisationId] = ownOf(call, parts);
    const signer = await parts.cursors.for(organisationId, 'report');
    const body = await call.step('read report', () =>
      recommendationsReport(pool, organisationId, call.query, signer),
    );
    return { status: 200, body };
  },
};

export const reportOperations: readonly Operation[] = [recommendations];
