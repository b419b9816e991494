// @module-tag full

import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { freePort } from '../support/free-port.ts';
import { expectInTime } from '../support/in-time.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { expectReady } from '../support/ready.ts';
import { type CollectedSpan, startTraceCollector, type TraceCollector } from '../support/trace-collector.ts';

/** Tests the traces that the service sends to an OpenTelemetry collector, which show how a request spends its time. */

const telling = fileURLToPath(new URL('../support/tell-opentelemetry.ts', import.meta.url));
const loadedBy = ({ log }: BuiltServer) => log.filter((line) => line.includes('"loads @opentelemetry'));

const startMs = ({ startTimeUnixNano }: CollectedSpan) => Number(startTimeUnixNano) / 1e6;
/** A span reads two clocks when it begins. If the process is interrupted in between, the span is shifted. */
const shiftMs = 100;
const endMs = ({ endTimeUnixNano }: CollectedSpan) => Number(endTimeUnixNano) / 1e6;
const durationMs = (span: CollectedSpan) => endMs(span) - startMs(span);
const attributeOf = ({ attributes }: CollectedSpan, key: string) =>
  Object.values(attributes.find((attribute) => attribute.key === key)?.value ?? {})[0];

function newCaller(flags = '01') {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-${flags}` } };
}

function interactionWith(shop: { shop_id: string }) {
  return {
    interaction_type: 'SHARE',
    platform: 'WEB',
    event_timestamp: new Date().toISOString(),
    item_type: 'SHOP',
    item_id: shop.shop_id,
  };
}

describe('with a collector', () => {
  let collector: TraceCollector;
  let server: BuiltServer;
  let api: Api;
  beforeAll(async () => {
    collector = await startTraceCollector();
    server = await startBuiltServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: 'intake-under-test',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    });
    api = apiOf(server.url, await server.createKey('acme'));
  });
  afterAll(async () => {
    await server.stop();
    await collector.close();
  });

  const spansOf = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId);

  async function requestSpan({
    traceId,
    spanId,
  }: {
    traceId: string;
    spanId: string;
  }): Promise<CollectedSpan> {
    const find = () => spansOf(traceId).find((span) => span.parentSpanId === spanId);
    await expect.poll(find).toBeDefined();
    return find()!;
  }

  it("an upload is one tree under the caller's span, and its parts make up its duration", async () => {
    // Warm up the validation threads and the connections.
    await api.upload(
      'shops',
      many(5_000, () => newShop()),
    );
    // Other load can only lengthen the gaps between the spans, so one good attempt is enough.
    let share = 0;
    for (const endMs = performance.now() + 240_000; share <= 0.8 && performance.now() < endMs; )
      share = await shareOfParts();
    expect(share).toBeGreaterThan(0.8);
    expect(JSON.stringify(collector.resources[0])).toContain('"intake-under-test"');
  });

  /** Returns the share of an upload's duration that its child spans cover. */
  async function shareOfParts(): Promise<number> {
    const caller = newCaller();
    const records = many(5_000, () => newShop());
    const answer = await api.post('/v1/data/shops', { records }, caller.headers);
    expect(answer.status).toBe(200);
    const root = await requestSpan(caller);
    expect(root.name).toBe('POST /v1/data/shops');
    expect(attributeOf(root, 'intake.request_id')).toBe(answer.headers.get('x-request-id'));
    const all = spansOf(caller.traceId);
    const byId = new Map(all.map((span) => [span.spanId, span]));
    for (const span of all.filter((one) => one !== root)) {
      const parent = byId.get(span.parentSpanId ?? '');
      expect(parent, `the parent of ${span.name}`).toBeDefined();
      expect(startMs(span)).toBeGreaterThanOrEqual(startMs(parent!) - shiftMs);
      expect(endMs(span)).toBeLessThanOrEqual(endMs(parent!) + shiftMs);
    }
    const children = all.filter(({ parentSpanId }) => parentSpanId === root.spanId);
    const batches = children.filter(({ name }) => name === 'batch');
    expect(batches).toHaveLength(5);
    expect(children.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['admit', 'receive body', 'read records']),
    );
    for (const { spanId } of batches) {
      const statements = all.filter(({ parentSpanId }) => parentSpanId === spanId).map(({ name }) => name);
      expect(statements).toEqual(expect.arrayContaining(['enter batch', 'look-up', 'insert new', 'commit']));
    }
    const share = children.reduce((sum, span) => sum + durationMs(span), 0) / durationMs(root);
    expect(share).toBeLessThan(1.05);
    return share;
  }

  it('the flush of an interaction is part of its trace, and linked to the others that it wrote', async () => {
    const shop = newShop();
    await api.batch('shops', [shop]);
    const callers = many(20, () => newCaller());
    const answers = callers.map(({ headers }) =>
      api.post('/user-interactions', interactionWith(shop), headers),
    );
    for (const { status } of await Promise.all(answers)) expect(status).toBe(201);
    const roots = await Promise.all(callers.map(requestSpan));
    const traceIds = roots.map(({ traceId }) => traceId);
    const steps = traceIds.map((id) => spansOf(id).find(({ name }) => name === 'record interaction')!);
    const flushes = traceIds.flatMap((id) => spansOf(id).filter(({ name }) => name === 'flush interactions'));
    for (const step of steps) {
      const flush = flushes.find(
        ({ spanId, parentSpanId }) =>
          parentSpanId === step.spanId || step.links?.some((link) => link.spanId === spanId),
      );
      expect(flush).toBeDefined();
      if (flush?.parentSpanId !== step.spanId)
        expect(flush?.links).toContainEqual(expect.objectContaining({ spanId: step.spanId }));
    }
    const rows = flushes.reduce((sum, flush) => sum + Number(attributeOf(flush, 'intake.interactions')), 0);
    expect(rows).toBe(20);
  });

  it('the lines of the log have the trace id, even if the trace is not recorded', async () => {
    for (const flags of ['01', '00']) {
      const caller = newCaller(flags);
      const { headers } = await api.get('/v1/data', caller.headers);
      const line = () => server.log.find((text) => text.includes(headers.get('x-request-id') ?? 'none'));
      await expect.poll(line).toContain(`"trace_id":"${caller.traceId}"`);
    }
  });

  it('a caller decides whether a request is traced, and an invalid traceparent is ignored', async () => {
    const unsampled = newCaller('00');
    await api.get('/v1/data', unsampled.headers);
    for (const traceparent of [
      'x',
      `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`,
      `ff-${'1'.repeat(32)}-${'1'.repeat(16)}-01`,
    ])
      expect((await api.get('/v1/data', { traceparent })).status).toBe(200);
    const sampled = newCaller();
    await api.get('/v1/data', sampled.headers);
    await requestSpan(sampled);
    expect(spansOf(unsampled.traceId)).toEqual([]);
    expect(spansOf('1'.repeat(32))).toEqual([]);
  });

  it('without a valid key the caller decides nothing', async () => {
    const callers = many(200, () => newCaller());
    const stranger = apiOf(server.url, 'wrong');
    const spansBefore = collector.spans.length;
    for (const [at, { headers }] of callers.entries()) {
      if (at % 2) expect((await stranger.get('/v1/data', headers)).status).toBe(401);
      else expect((await fetch(`${server.url}/health/live`, { headers })).status).toBe(200);
    }
    const known = newCaller();
    await api.get('/v1/data', known.headers);
    await requestSpan(known);
    expect(callers.filter(({ traceId }) => spansOf(traceId).length > 0)).toEqual([]);
    // By default, the service traces one request in a hundred, and each trace has a few spans.
    expect(collector.spans.length - spansBefore).toBeLessThan(100);
  });

  it('a request that is refused after its key was accepted is traced, with the refusal', async () => {
    const refused = newCaller();
    expect((await api.get('/v1/nowhere', refused.headers)).status).toBe(404);
    const request = await requestSpan(refused);
    expect(attributeOf(request, 'error.type')).toBe('not_found');
    expect(spansOf(refused.traceId).map(({ name }) => name)).toContain('admit');
  });

  it('reading a page has a span for its statement', async () => {
    const caller = newCaller();
    expect((await api.get('/v1/data/shops', caller.headers)).status).toBe(200);
    const root = await requestSpan(caller);
    const children = spansOf(caller.traceId).filter(({ parentSpanId }) => parentSpanId === root.spanId);
    const statements = children.filter((span) => attributeOf(span, 'db.system.name') === 'postgresql');
    expect(statements).toHaveLength(1);
  });

  it('a failed statement is an error of the service, and a mistake of the client is not', async () => {
    const hasFailed = ({ status }: CollectedSpan) => status?.code === 2;
    const mistaken = newCaller();
    expect((await api.get('/v1/data?unknown=1', mistaken.headers)).status).toBe(400);
    await requestSpan(mistaken);
    expect(spansOf(mistaken.traceId).filter(hasFailed)).toEqual([]);
    await queryDatabase(server.databaseUrl, 'alter table tags rename to tags_away');
    onTestFinished(async () => {
      await queryDatabase(server.databaseUrl, 'alter table tags_away rename to tags');
    });
    const failing = newCaller();
    const records = [{ tag_id: randomUUID(), name: 'vegan' }];
    expect((await api.post('/v1/data/tags', { records }, failing.headers)).status).toBe(500);
    const request = await requestSpan(failing);
    const failed = spansOf(failing.traceId).filter(hasFailed);
    expect(failed).toContainEqual(request);
    expect(failed.map((span) => attributeOf(span, 'error.type'))).toContain('42P01');
  });

  it('no span has anything that was sent, including the address', async () => {
    const caller = newCaller();
    const shop = { ...newShop(), name: 'planted-name' };
    await api.post('/v1/data/shops', { records: [shop, { shop_id: 'planted-id' }] }, caller.headers);
    const { traceId, spanId } = caller;
    await requestSpan(caller);
    const again = { ...newCaller(), traceId, spanId };
    await api.get('/v1/rejections?cursor=planted-cursor', again.headers);
    await api.get(`/v1/data/shops/${shop.shop_id}`, caller.headers);
    await expect.poll(() => spansOf(traceId).some(({ name }) => name.startsWith('GET '))).toBe(true);
    expect(JSON.stringify(collector.spans)).not.toContain('planted');
    expect(JSON.stringify(collector.spans)).not.toContain(shop.shop_id);
  });
});

it('a sampler by trace id ignores a trace id without a valid key', async () => {
  const collector = await startTraceCollector();
  onTestFinished(() => collector.close());
  const server = await startBuiltServer({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.0001',
    OTEL_BSP_SCHEDULE_DELAY: '100',
  });
  // Every sampling ratio includes the smallest trace id.
  const traceId = `${'0'.repeat(31)}1`;
  const headers = { traceparent: `00-${traceId}-${'1'.repeat(16)}-00` };
  for (const key of ['wrong', await server.createKey('acme')])
    await apiOf(server.url, key).get('/v1/data', headers);
  const statuses = () =>
    collector.spans
      .filter((span) => span.traceId === traceId && span.kind === 2)
      .map((span) => attributeOf(span, 'http.response.status_code'));
  // Spans that are sent only when the process stops are lost if that takes too long.
  await expect.poll(statuses).toContain(200);
  await server.stop();
  expect(statuses()).toEqual([200]);
});

it('without a collector nothing of OpenTelemetry is loaded', async () => {
  const server = await startBuiltServer({ NODE_OPTIONS: `--import=${telling}` });
  await expectReady(server.url);
  await server.stop();
  expect(loadedBy(server)).toEqual([]);
  const tracing = await startBuiltServer({
    NODE_OPTIONS: `--import=${telling}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`,
  });
  await tracing.stop();
  expect(loadedBy(tracing).length).toBeGreaterThan(5);
});

it('a collector that is unreachable, or never answers, does no harm and does not delay the shutdown', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as { port: number };
  onTestFinished(() => void silent.close());
  const stopInTime = async (at: number) => {
    const server = await startBuiltServer({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${at}`,
      OTEL_BSP_SCHEDULE_DELAY: '100',
    });
    const api = apiOf(server.url, await server.createKey('acme'));
    for (let round = 0; round < 20; round++)
      expect((await api.post('/v1/data/shops', { records: [newShop()] }, newCaller().headers)).status).toBe(
        200,
      );
    const beganMs = performance.now();
    await server.stop();
    const ms = performance.now() - beganMs;
    expect(server.process.exitCode).toBe(0);
    expect(server.log.join('\n')).toContain('"msg":"stopped"');
    return [{ what: 'the stop', ms, promisedMs: 5_000 }];
  };
  for (const at of [await freePort(), port]) await expectInTime(() => stopInTime(at));
});
