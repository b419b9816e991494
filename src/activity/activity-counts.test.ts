import { expect, it } from 'vitest';
import { limits } from '../limits.ts';
import { ActivityCounts, measures } from './activity-counts.ts';

const line = {
  organisation_id: 'acme',
  operation_id: 'upload-shops',
  status: 200,
  body_bytes: 100,
  dry_run: undefined,
  counts: { received: 7, failed: 2 },
} as const;

it('counts a request by its kind', () => {
  const counts = new ActivityCounts();
  counts.answered(line);
  counts.answered({ ...line, operation_id: 'upload-interactions' });
  counts.answered({ ...line, dry_run: true });
  counts.answered({ ...line, status: 429, counts: undefined });
  counts.answered({ ...line, operation_id: 'record-interaction', status: 201, counts: undefined });
  counts.answered({ ...line, operation_id: 'record-interaction', status: 400, counts: undefined });
  counts.answered({ ...line, operation_id: 'get-overview', body_bytes: undefined, counts: undefined });
  counts.answered({ ...line, organisation_id: undefined });
  expect([...counts.take()]).toEqual([
    ['acme', { requests: 7, records: 7, interactions: 8, bytes: 600, rejections: 5, limits_hit: 1 }],
  ]);
  expect(counts.take().size).toBe(0);
});

it('returns the busiest organisations by each measure', () => {
  const counts = new ActivityCounts();
  const all = Array.from({ length: 2_000 }, (_, at) => {
    const received = (at * 7_919) % 2_003;
    const body_bytes = (at * 104_729) % 2_011;
    counts.answered({ ...line, organisation_id: `o${at}`, body_bytes, counts: { received, failed: 0 } });
    return { id: `o${at}`, received, body_bytes };
  });
  const busiest = (by: 'received' | 'body_bytes') =>
    all
      .toSorted((one, other) => other[by] - one[by])
      .slice(0, limits.busiestOrganisationsMax)
      .map(({ id }) => id);
  // Every organisation has made one request, so the organisations that were counted first win the tie.
  const byRequests = all.slice(0, limits.busiestOrganisationsMax).map(({ id }) => id);
  const expected = new Set([...byRequests, ...busiest('received'), ...busiest('body_bytes')]);
  expect(new Set(counts.take().keys())).toEqual(expected);
  expect(expected.size).toBeLessThanOrEqual(measures.length * limits.busiestOrganisationsMax);
});

it('counts no more organisations than it has room for', () => {
  const counts = new ActivityCounts();
  for (let at = 0; at < limits.activeOrganisationsMax; at++)
    counts.answered({ ...line, organisation_id: `o${at}` });
  counts.answered({ ...line, organisation_id: 'late', body_bytes: 1e9 });
  counts.answered({ ...line, organisation_id: 'o7', body_bytes: 1e9 });
  const taken = counts.take();
  expect(taken.has('late')).toBe(false);
  expect(taken.get('o7')?.requests).toBe(2);
});
