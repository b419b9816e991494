import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { uuidV7 } from '../support/expect-error.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { countWaiting } from '../support/query-database.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { expectReady } from '../support/ready.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/** Tests the operator's log: a line per request, a line at start and stop, and the state of PostgreSQL. */

type Line = Record<string, unknown>;
const linesOf = ({ log }: BuiltServer): Line[] => log.map((line) => JSON.parse(line));
const messages = (server: BuiltServer) => linesOf(server).map(({ msg }) => String(msg));

/** Returns a request's log line, without the level and the time. The line is written after the response. */
async function lineOf(server: BuiltServer, headers: Headers): Promise<Line> {
  const id = headers.get('x-request-id');
  const find = () => linesOf(server).find((line) => line.request_id === id && line.msg === 'answered');
  await expect.poll(find, { interval: 5 }).toBeDefined();
  const { level: _level, time: _time, ...line } = find()!;
  return line;
}

describe('a request', () => {
  let server: BuiltServer;
  let key: string;
  let api: Api;
  let organisationId: string;
  beforeAll(async () => {
    server = await startBuiltServer();
    key = await server.createKey('acme');
    api = apiOf(server.url, key);
    [{ organisation_id: organisationId }] = JSON.parse(await server.run('organisations', 'list', '--json'));
  });
  afterAll(() => server.stop());

  const who = () => ({
    request_id: expect.stringMatching(uuidV7),
    organisation_id: organisationId,
    key_id: key.split('_')[1],
    client_address: '127.0.0.1',
    duration_ms: expect.any(Number),
    msg: 'answered',
  });
  const nothing = { created: 0, updated: 0, unchanged: 0, stale: 0, failed: 0 };
  const post = (path: string, body: string, headers: Record<string, string> = {}) =>
    api.send(path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });

  it('that uploads has its operation, the size of its body and the outcomes of its records, and nothing else', async () => {
    const [old, shop] = [newShop(), newShop()];
    await api.upload('shops', [old]);
    const body = JSON.stringify({ records: [shop, { ...old, name: 'Other' }, shop, {}] });
    const { headers } = await post('/v1/data/shops?dry_run=false', body);
    expect(await lineOf(server, headers)).toEqual({
      ...who(),
      operation_id: 'upload-shops',
      body_bytes: body.length,
      counts: { received: 4, created: 1, updated: 1, unchanged: 1, stale: 0, failed: 1 },
      status: 207,
    });
  });

  it('with a large body, compressed, has its size as it was read in another thread', async () => {
    const [shop] = [newShop()];
    await api.upload('shops', [shop]);
    const records = many(2_500, () => newTransaction(shop.shop_id));
    const body = JSON.stringify({ records });
    const { headers } = await api.send('/v1/data/transactions', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
      body: gzipSync(body),
    });
    expect(await lineOf(server, headers)).toMatchObject({
      operation_id: 'upload-transactions',
      body_bytes: body.length,
      counts: { ...nothing, received: 2_500, created: 2_500 },
      status: 200,
    });
  });

  it('that is a dry run is marked as such, and a repeated one counts nothing twice', async () => {
    const body = JSON.stringify({ records: [newShop()] });
    const dry = await post('/v1/data/shops?dry_run=true', body);
    expect(await lineOf(server, dry.headers)).toMatchObject({
      dry_run: true,
      counts: { ...nothing, received: 1, created: 1 },
    });
    const idempotent = { 'idempotency-key': randomUUID() };
    const first = await lineOf(server, (await post('/v1/data/shops', body, idempotent)).headers);
    expect(first.counts).toEqual({ ...nothing, received: 1, created: 1 });
    const second = await lineOf(server, (await post('/v1/data/shops', body, idempotent)).headers);
    expect(second.counts).toEqual({ ...nothing, received: 1, repeated: 1 });
  });

  it('that replays has the outcomes of the rejections', async () => {
    const shop = newShop();
    await api.upload('transactions', [newTransaction(shop.shop_id), newTransaction(randomUUID())]);
    await api.upload('shops', [shop]);
    const { headers, status } = await api.send('/v1/rejections/replay?type=transactions', {
      method: 'POST',
    });
    expect(await lineOf(server, headers)).toEqual({
      ...who(),
      operation_id: 'replay-rejections',
      counts: { ...nothing, received: 2, created: 1, failed: 1 },
      status,
    });
  });

  it('that records or reads an interaction has its operation and no counts', async () => {
    const shop = newShop();
    await api.upload('shops', [shop]);
    const body = JSON.stringify({
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      event_timestamp: 1,
    });
    const { headers } = await post('/user-interactions', body);
    const line = { ...who(), operation_id: 'record-interaction', body_bytes: body.length, status: 201 };
    expect(await lineOf(server, headers)).toEqual(line);
    const read = await api.get('/user-interactions?user_id=olga%40example.org');
    expect(await lineOf(server, read.headers)).toEqual({
      ...who(),
      operation_id: 'list-interactions',
      status: 200,
    });
  });

  it('that records an interaction is logged only now and then, unless it fails or takes long', async () => {
    const sampled = await startBuiltServer({ DATABASE_URL: server.databaseUrl });
    const own = apiOf(sampled.url, key);
    const shop = newShop();
    await own.upload('shops', [shop]);
    const share = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: shop.shop_id, event_timestamp: 1 };
    const recorded = [];
    for (const _ of many(8, () => 0)) recorded.push(await own.post('/user-interactions', share));
    expect(recorded.map(({ status }) => status)).toEqual(Array(8).fill(201));
    const failed = await own.post('/user-interactions', { ...share, item_id: randomUUID() });
    expect(await lineOf(sampled, failed.headers)).toMatchObject({ status: 400, code: 'invalid_request' });
    // A request whose Idempotency-Key is held by another transaction waits until that transaction ends.
    const holder = new pg.Client({ connectionString: server.databaseUrl });
    await holder.connect();
    await holder.query('begin');
    await holder.query(
      `insert into interaction_idempotency_keys (organisation_id, idempotency_key, body_sha256, interaction_id, claimed_at)
       values ($1, 'held', '', gen_random_uuid(), now())`,
      [organisationId],
    );
    const waiting = own.post('/user-interactions', share, { 'idempotency-key': 'held' });
    await expect.poll(() => countWaiting(server.databaseUrl)).toBe(1);
    await holder.query('select pg_sleep(1.1)');
    await holder.query('rollback');
    await holder.end();
    const slow = await waiting;
    expect(await lineOf(sampled, slow.headers)).toMatchObject({ status: 201 });
    await sampled.stop();
    const ids = recorded.map(({ headers }) => headers.get('x-request-id'));
    const isUsual = ({ request_id, duration_ms }: Line) =>
      ids.includes(String(request_id)) && Number(duration_ms) < 1_000;
    const logged = linesOf(sampled)
      .filter(isUsual)
      .map(({ request_id }) => ids.indexOf(String(request_id)));
    // Slow requests are always logged, and a slow machine may make some of these requests slow. Of the remaining
    // requests, every hundredth is logged, beginning with the first.
    expect(logged.length).toBe(1);
  });

  it('that is refused has the error code, and its key if known', async () => {
    const { organisation_id: _organisation, key_id: _key, ...unknown } = who();
    const wrong = await apiOf(server.url, `${key}x`).get('/v1/data/shops/olga');
    expect(await lineOf(server, wrong.headers)).toEqual({
      ...unknown,
      operation_id: 'get-shops',
      status: 401,
      code: 'unauthorized',
    });
    const malformed = await post('/v1/data/shops', '{');
    expect(await lineOf(server, malformed.headers)).toEqual({
      ...who(),
      operation_id: 'upload-shops',
      body_bytes: 1,
      status: 400,
      code: 'malformed_json',
    });
  });

  it('that is not an operation has the method, and the route if there is one, never the address', async () => {
    const nowhere = await api.get('/olga@example.org');
    const expected = { ...who(), method: 'GET', status: 404, code: 'not_found' };
    expect(await lineOf(server, nowhere.headers)).toEqual(expected);
    const wrongMethod = await api.send('/v1/data/shops/olga', { method: 'PUT' });
    expect(await lineOf(server, wrongMethod.headers)).toEqual({
      ...who(),
      method: 'PUT',
      route: expect.stringMatching(/^\/v1\/data\/shops\/:\w+$/),
      status: 405,
      code: 'method_not_allowed',
    });
    const undecodable = await sendRaw(server.url, rawPost('/v1/data/olga%zz', ['Content-Length: 0']));
    expect(await lineOf(server, undecodable.headers)).toEqual({
      request_id: expect.stringMatching(uuidV7),
      client_address: '127.0.0.1',
      status: 400,
      code: 'malformed_request',
      msg: 'answered',
    });
    expect(server.log.join('\n')).not.toContain('olga');
  });

  it('for a health check is only logged at debug; SIGUSR2 switches to debug and back, with one line each', async () => {
    const signals = () => messages(server).filter((message) => message.startsWith('SIGUSR2'));
    const checkHealth = async () => {
      expect((await apiOf(server.url).get('/health/live')).status).toBe(200);
      await expectReady(server.url);
      // Lines are written in order.
      await lineOf(server, (await api.get('/v1/data')).headers);
    };
    const logged = () =>
      linesOf(server).filter((line) => String(line.operation_id).startsWith('health-')).length;
    await checkHealth();
    expect(logged()).toBe(0);
    server.process.kill('SIGUSR2');
    await expect.poll(signals).toEqual(['SIGUSR2: the log level is debug from now on']);
    await checkHealth();
    const atDebug = logged();
    expect(atDebug).toBeGreaterThan(1);
    server.process.kill('SIGUSR2');
    await expect.poll(signals).toHaveLength(2);
    expect(signals()[1]).toBe('SIGUSR2: the log level is info from now on');
    await checkHealth();
    expect(logged()).toBe(atDebug);
  });

  it('has names in snake_case', async () => {
    const names = linesOf(server).flatMap((line) => Object.keys(line));
    expect([...new Set(names)].filter((name) => !/^[a-z]+(_[a-z]+)*$/.test(name))).toEqual([]);
  });
});

describe('behind a trusted proxy', () => {
  let server: BuiltServer;
  beforeAll(async () => {
    const databaseUrl = await createTestDatabase();
    server = await startBuiltServer({
      ADMIN_PORT: '0',
      DATABASE_URL: databaseUrl,
      ADMIN_DATABASE_URL: databaseUrl,
      DATABASE_CONNECTIONS_MAX: '7',
      // The server listens on all of the machine's addresses.
      HOST: '0.0.0.0',
      TRUSTED_PROXY: '127.0.0.1',
    });
  });
  afterAll(() => server.stop());

  // An IP address does not identify a person on its own, and an operator has to know where a request came from.
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['198.51.100.1, 2001:db8::7', '2001:db8::7'],
    ['olga@example.org', undefined],
  ])('a request for %s is logged with the address %s', async (forwarded, logged) => {
    const headers = ['X-Forwarded-Proto: https', `X-Forwarded-For: ${forwarded}`, 'Content-Length: 0'];
    const answer = await sendRaw(server.url, rawPost('/v1/data/shops', headers));
    expect((await lineOf(server, answer.headers)).client_address).toBe(logged);
    expect(server.log.join('\n')).not.toContain('olga');
  });

  it('the start is one line, with the version, the addresses and the maximum of connections', async () => {
    const { port } = new URL(server.url);
    // Each listener logs separately, so on a busy machine the later line may be written first.
    const listening = () => linesOf(server).filter(({ msg }) => String(msg).includes('listening'));
    await expect.poll(listening).toHaveLength(2);
    expect(listening().toSorted((one, other) => String(one.msg).localeCompare(String(other.msg)))).toEqual([
      {
        level: 30,
        time: expect.any(String),
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        node_version: process.versions.node,
        address: '127.0.0.1',
        port: expect.any(Number),
        connections: { admin: 2, readiness: 1 },
        msg: expect.stringMatching(/^Admin API listening at http:\/\/127/),
      },
      {
        level: 30,
        time: expect.any(String),
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        node_version: process.versions.node,
        address: '0.0.0.0',
        port: Number(port),
        connections: { requests: 7, interactions: 3, keys: 3, maintenance: 7, readiness: 1 },
        msg: expect.stringMatching(/^Server listening at http:/),
      },
    ]);
    await server.stop();
    expect(linesOf(server).at(-1)).toEqual({
      level: 30,
      time: expect.any(String),
      signal: 'SIGTERM',
      duration_ms: expect.any(Number),
      requests_cut_short: 0,
      msg: 'stopped',
    });
  });
});

describe('PostgreSQL that is unavailable', () => {
  let proxy: TcpProxy;
  beforeAll(async () => {
    proxy = await startTcpProxy(await createTestDatabase());
  });
  afterAll(() => proxy.close());

  const told = (server: BuiltServer) => messages(server).filter((said) => said.startsWith('PostgreSQL'));
  const place = () => {
    const { hostname: host, port } = new URL(proxy.databaseUrl);
    return { host, port: Number(port) };
  };

  it('is logged once when it fails and once when it is back, with host and port and without a stack', async () => {
    await proxy.accept();
    const server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
    const key = await server.createKey('acme');
    const api = apiOf(server.url, key);
    expect((await api.upload('shops', [newShop()])).status).toBe(200);
    await proxy.refuse();
    await expect.poll(() => told(server)).toHaveLength(1);
    const { host, port } = place();
    expect(told(server)[0]).toMatch(`PostgreSQL at ${host}:${port} cannot be used (`);
    // This loop takes longer than every retry interval: key polling, leader election and readiness checks.
    for (let second = 0; second < 8; second++) {
      expect((await apiOf(server.url).get('/health/ready')).status).toBe(503);
      const refused = await api.upload('shops', [newShop()]);
      expect(refused.status).toBe(503);
      const line = await lineOf(server, refused.headers);
      expect(line).toMatchObject({ operation_id: 'upload-shops', status: 503, code: 'database_unavailable' });
      expect(line.cause).toMatch(/\w/);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    expect(told(server)).toHaveLength(1);
    await proxy.accept();
    await expect.poll(() => told(server)).toHaveLength(2);
    expect(told(server)[1]).toBe(`PostgreSQL at ${host}:${port} can be used again`);
    const back = linesOf(server).find(({ away_ms }) => away_ms !== undefined);
    expect(back).toMatchObject({ level: 30, host, port, away_ms: expect.any(Number) });
    expect((await api.upload('shops', [newShop()])).status).toBe(200);
    const others = linesOf(server).filter(
      ({ level, msg }) => Number(level) >= 50 && !told(server).includes(String(msg)),
    );
    expect(others).toEqual([]);
    expect(server.log.join('\n')).not.toMatch(/\bat .+\.js:\d+/);
    await server.stop();
  });

  it('at the start is waited for, with a line in the log', async () => {
    await proxy.refuse();
    const server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl, LOG_LEVEL: 'debug' });
    const { host, port } = place();
    expect(told(server)).toEqual([
      `PostgreSQL at ${host}:${port} cannot be used (ECONNREFUSED); waiting for it, and answering 503 meanwhile`,
    ]);
    const ready = async () => (await apiOf(server.url).get('/health/ready')).status;
    expect(await ready()).toBe(503);
    await proxy.accept();
    await expect.poll(() => told(server)).toHaveLength(2);
    await expect.poll(ready).toBe(200);
    await server.stop();
    expect(linesOf(server)).toContainEqual(expect.objectContaining({ operation_id: 'health-ready' }));
  });
});
