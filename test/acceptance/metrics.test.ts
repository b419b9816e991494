import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { freePort } from '../support/free-port.ts';
import { scrapeMetrics } from '../support/scrape-metrics.ts';

let server: BuiltServer;
let api: Api;
let metricsUrl: string;
beforeAll(async () => {
  const port = await freePort();
  metricsUrl = `http://127.0.0.1:${port}/metrics`;
  server = await startBuiltServer({ METRICS_PORT: String(port) });
  api = apiOf(server.url, await server.createKey('acme'));
});
afterAll(() => server.stop());

const scrape = () => scrapeMetrics(metricsUrl);

const newTag = () => ({ tag_id: randomUUID(), name: 'vegan' });

it('requests, records, batches and statements are counted', async () => {
  await api.batch('tags', [newTag(), newTag(), { tag_id: 'no' }]);
  await api.get('/v1/data/tags/no');
  const before = await scrape();
  expect(before.get('intake_requests_total{operation="upload-tags",status="207"}')).toBe(1);
  expect(before.get('intake_requests_total{operation="get-tags",status="404"}')).toBe(1);
  expect(before.get('intake_request_errors_total{code="record_not_found"}')).toBe(1);
  expect(before.get('intake_records_total{operation="upload-tags",outcome="created"}')).toBe(2);
  expect(before.get('intake_records_total{operation="upload-tags",outcome="failed"}')).toBe(1);
  expect(before.get('intake_batch_duration_seconds_count')).toBe(1);
  expect(before.get('intake_request_duration_seconds_count{operation="upload-tags"}')).toBe(1);
  await api.post('/v1/data/tags?dry_run=true', { records: [newTag()] });
  await api.batch('tags', [newTag()]);
  const after = await scrape();
  expect(after.get('intake_records_total{operation="upload-tags",outcome="created"}')).toBe(3);
  expect(after.get('intake_statement_duration_seconds_count{statement="look-up"}')).toBe(
    (before.get('intake_statement_duration_seconds_count{statement="look-up"}') ?? 0) + 2,
  );
});

it('readiness is a metric, and health probes are not counted as requests', async () => {
  for (const path of ['/health/live', '/health/ready']) await api.get(path);
  // If the machine stalls, the process is briefly not ready.
  await expect.poll(async () => (await scrape()).get('intake_ready')).toBe(1);
  const found = await scrape();
  expect([...found.keys()].filter((series) => series.includes('health'))).toEqual([]);
  // Without REDIS_URL this series does not exist, so it cannot trigger an alert.
  expect(found.has('intake_redis_up')).toBe(false);
});

it('interactions, keys, pools, memory, maintenance and the build have metrics', async () => {
  const tag = newTag();
  await api.batch('tags', [tag]);
  const { status } = await api.post('/user-interactions', {
    interaction_type: 'SHARE',
    platform: 'WEB',
    event_timestamp: new Date().toISOString(),
    item_type: 'TAG',
    item_id: tag.tag_id,
  });
  expect(status).toBe(201);
  const rolledUp = 'intake_maintenance_last_success_timestamp_seconds{chore="roll up counts"}';
  const isComplete = async () => {
    // If a busy machine did not poll for key changes in time, this request looks up the key and caches it again.
    await api.get('/v1/data/tags/no');
    const series = await scrape();
    return (
      (series.get('intake_key_lookups_total{result="hit"}') ?? 0) > 3 &&
      (series.get('intake_partitions_ahead_days') ?? 0) > 30 &&
      (series.get(rolledUp) ?? 0) > 0 &&
      // The age stays below four seconds unless the process is delayed.
      (series.get('intake_key_changes_age_seconds') ?? 5) < 4
    );
  };
  await expect.poll(isComplete).toBe(true);
  const found = await scrape();
  expect(found.get('intake_interaction_flush_rows_count')).toBe(1);
  expect(found.get('intake_interactions_waiting')).toBe(0);
  // At least the first request is a miss.
  const misses = found.get('intake_key_lookups_total{result="miss"}');
  expect(misses).toBeGreaterThan(0);
  expect(found.get('intake_statement_duration_seconds_count{statement="find api key"}')).toBe(misses);
  expect(found.get('intake_pool_connections_max{pool="requests"}')).toBe(10);
  expect(found.get('intake_pool_connections_in_use{pool="requests"}')).toBe(0);
  expect(found.get('intake_pool_waiting{pool="requests"}')).toBe(0);
  expect(found.get('intake_bytes_in_flight')).toBe(0);
  expect(found.get('intake_maintenance_leader')).toBe(1);
  expect(found.has('intake_rejections_open')).toBe(true);
  // Without TLS there is no certificate that could expire.
  expect(found.has('intake_certificate_expiry_timestamp_seconds')).toBe(false);
  expect(Math.abs(Date.now() / 1_000 - (found.get(rolledUp) ?? 0))).toBeLessThan(60);
  expect([...found.keys()].some((series) => series.startsWith('intake_build_info{version='))).toBe(true);
  expect(found.get('nodejs_eventloop_lag_seconds')).toBeGreaterThanOrEqual(0);
});

it('nothing else is served there, and without the setting nothing at all', async () => {
  expect((await fetch(metricsUrl.replace('/metrics', '/'))).status).toBe(404);
  expect((await fetch(metricsUrl, { method: 'POST' })).status).toBe(404);
  expect((await api.get('/metrics')).status).toBe(404);
});
