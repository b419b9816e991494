// @module-tag full

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import {
  fieldsOf,
  idFieldOf,
  makeRecord,
  recordTypes,
  type StoredIds,
  storeReferenced,
} from '../acceptance/record-types.ts';
import { apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { describedParameters } from '../support/described-parameters.ts';
import { exchangeBytes } from '../support/exchange-bytes.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/**
 * Puts a key, an email address and a birthdate into every part of a request. They must not appear in the log (at
 * `trace`, which includes every other level), in responses to uploads and errors, in health responses or in the audit log.
 * The log does contain client IP addresses, because an operator has to know who sent a request.
 */

const email = 'ada.planted@example.org';
const birthdate = '1915-12-10';
const bodyBytesMax = 100_000;

let directUrl: string;
let proxy: TcpProxy;
let key: string;
/** Another valid key, which is planted but never used to authenticate. */
let plantedKey: string;

beforeAll(async () => {
  directUrl = await createTestDatabase();
  const run = (...args: string[]) => runCommand(args, { DATABASE_URL: directUrl });
  await run('organisations', 'create', 'acme');
  await run('organisations', 'set-report', 'acme', 'on');
  const asked = [
    '--organisation',
    'acme',
    '--json',
    ...everyPermission.flatMap((scope) => ['--scope', scope]),
  ];
  const issue = async () => JSON.parse((await run('keys', 'issue', ...asked)).stdout).key as string;
  [key, plantedKey] = [await issue(), await issue()];
  proxy = await startTcpProxy(directUrl);
});
afterAll(() => proxy.close());

const secrets = () => [email, birthdate, plantedKey];

/** Finds substrings that reveal a secret. They are short, because parsers quote few letters. A key's id is not secret. */
function tracesOf(text: string): string[] {
  const [, , secret = ''] = plantedKey.split('_');
  const ownSecret = key.split('_')[2]!;
  const ofKeys = [secret.slice(0, 20), secret.slice(-20), ownSecret.slice(0, 20)];
  return [email, encodeURIComponent(email), 'ada.plan', birthdate, ...ofKeys].filter((trace) =>
    text.includes(trace),
  );
}

const description = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
const { paths } = description;
const types = Object.keys(recordTypes);

describe('with LOG_LEVEL=trace, what was planted', () => {
  let server: BuiltServer;
  let stored: StoredIds;
  beforeAll(async () => {
    server = await start(directUrl);
    stored = await storeReferenced(apiOf(server.url, key));
  });
  afterAll(() => server.stop());

  const start = (DATABASE_URL: string) =>
    startBuiltServer({ DATABASE_URL, LOG_LEVEL: 'trace', BODY_BYTES_MAX: String(bodyBytesMax) });

  /** Sends a request, checks the response for planted values unless it returns stored data, and returns the status. */
  async function send(path: string, init: RequestInit = {}, givesBack = false): Promise<number> {
    const headers = { authorization: `Bearer ${key}`, ...(init.headers as Record<string, string>) };
    const answer = await fetch(server.url + path, { ...init, headers });
    const { method = 'GET' } = init;
    const text = await answer.text();
    const readsBack = method === 'GET' && answer.status === 200 && !/^\/(health|openapi)/.test(path);
    // An answer repeats only the Idempotency-Key, which identifies its request.
    const others = [...answer.headers].filter(([name]) => name !== 'idempotency-key');
    const told = JSON.stringify(others) + (readsBack || givesBack ? '' : text);
    expect({ method, status: answer.status, traces: tracesOf(told) }).toMatchObject({ traces: [] });
    return answer.status;
  }

  const asJson = { 'content-type': 'application/json' };
  const postBytes = (path: string, body: string | Buffer, headers: Record<string, string> = {}) =>
    send(path, { method: 'POST', headers: { ...asJson, ...headers }, body: body as string });
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    postBytes(path, JSON.stringify(body), headers);

  async function sendRaw(bytes: string): Promise<void> {
    const { text } = await exchangeBytes(server.url, bytes, 300);
    expect({ bytes: bytes.split('\r\n')[0], traces: tracesOf(text) }).toMatchObject({ traces: [] });
  }

  /** Checks the log. It is written after the responses, so it is complete once it contains the last response. */
  async function expectNothingLogged(): Promise<void> {
    const { headers } = await apiOf(server.url).get('/nowhere');
    const last = headers.get('x-request-id')!;
    await expect.poll(() => server.log.some((line) => line.includes(last)), { interval: 5 }).toBe(true);
    expect(server.log.filter((line) => tracesOf(line).length > 0)).toEqual([]);
  }

  /** Returns valid records with a secret in every field that accepts it. */
  function soundRecords(type: string): object[] {
    return secrets().map((secret) => {
      const planted = fieldsOf(type).flatMap(([name, { kind }]) => {
        if (kind === 'text' || kind === 'long text') return [[name, secret]];
        if (kind === 'date') return [[name, birthdate]];
        return kind === 'date-time' ? [[name, `${birthdate}T00:00:00Z`]] : [];
      });
      return {
        ...makeRecord(type, stored),
        ...Object.fromEntries(planted),
        note: secret,
        more: { [type]: [secret] },
      };
    });
  }

  it.each(types)('in valid %s is in no answer to them', async (type) => {
    const records = soundRecords(type);
    for (const query of ['?dry_run=true', ''])
      expect(await post(`/v1/data/${type}${query}`, { records })).toBe(200);
    expect(await post(`/v1/data/${type}`, { records: [...records, {}] })).toBe(207);
    // The record is stored, and returned to clients that may read it.
    const path = `/v1/data/${type}/${(records[0] as Record<string, string>)[idFieldOf(type)]}`;
    expect(tracesOf(JSON.stringify((await apiOf(server.url, key).get(path)).body))).not.toEqual([]);
    await expectNothingLogged();
  });

  it.each(types)('in bad %s is in no answer to them', async (type) => {
    const shapes = (secret: string): unknown[] => [
      secret,
      [secret],
      { [idFieldOf(type)]: secret },
      `${secret}\0`,
    ];
    const records = secrets()
      .flatMap(shapes)
      .flatMap((bad) => {
        const all = Object.fromEntries(fieldsOf(type).map(([name]) => [name, bad]));
        const sound = makeRecord(type, stored);
        const one = fieldsOf(type)
          .slice(1)
          .map(([name]) => ({ ...sound, [name]: bad }));
        return [bad, all, ...one.slice(0, 3), { ...all, [idFieldOf(type)]: randomUUID() }];
      });
    for (const query of ['?dry_run=true', ''])
      expect(await post(`/v1/data/${type}${query}`, { records })).toBeGreaterThanOrEqual(207);
    // Failed records are kept, and returned to clients that may read them. Summaries and replays contain no values.
    expect(await send(`/v1/rejections?type=${type}&limit=1000`)).toBe(200);
    expect(await send(`/v1/rejections/summary?type=${type}`)).toBe(200);
    await send(`/v1/rejections/replay?type=${type}`, { method: 'POST' });
    await expectNothingLogged();
  });

  const checkedFields =
    'interaction_type item_type item_id event_timestamp student_id platform source recommendation_id'.split(
      ' ',
    );

  it('in interactions is in no answer to bad ones, and in no log', async () => {
    const sound = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: stored.shops, event_timestamp: 1 };
    for (const secret of secrets()) {
      const kept = { ...sound, user_id: secret, city: secret, country: secret };
      const init = { method: 'POST', body: JSON.stringify(kept), headers: asJson };
      expect(await send('/user-interactions', init, true)).toBe(201);
      for (const field of checkedFields)
        expect(await post('/user-interactions', { ...sound, user_id: secret, [field]: secret })).toBe(400);
      expect(await post('/user-interactions', { ...sound, user_id: [secret], item_id: randomUUID() })).toBe(
        400,
      );
      expect(await post('/user-interactions', { ...sound, note: secret })).toBe(201);
      expect(await send(`/user-interactions?user_id=${encodeURIComponent(secret)}`)).toBe(200);
      const bad = checkedFields.map((field) => ({ ...kept, [field]: secret }));
      const missing = { ...kept, item_id: randomUUID() };
      expect(await post('/user-interactions', missing)).toBe(400);
      for (const query of ['?dry_run=true', '']) {
        const records = [kept, { ...kept, note: secret }, missing, ...bad, secret, [secret]];
        expect(await post(`/user-interactions/batch${query}`, { records })).toBe(207);
      }
      expect(await send('/user-interactions', { headers: { accept: 'application/x-ndjson' } })).toBe(200);
      expect(await send('/v1/changes?limit=1000', {}, true)).toBe(200);
      const report = '/v1/reports/recommendations?group_by=country';
      expect(await send(report)).toBe(200);
      expect(await send(`${report}&cursor=${encodeURIComponent(`=${secret}`)}`)).toBe(400);
      expect(await send(`${report}&cursor=${encodeURIComponent(secret)}`)).toBe(400);
      expect(await send(`${report}&window=${encodeURIComponent(secret)}`)).toBe(400);
      expect(await send('/v1/rejections?type=interactions&limit=1000')).toBe(200);
      expect(await send('/v1/rejections/summary?type=interactions')).toBe(200);
      expect(await send('/v1/rejections/replay?type=interactions', { method: 'POST' })).toBe(400);
    }
    await expectNothingLogged();
  });

  it('in a body that is not JSON, not UTF-8, too large or of another type is in no answer', async () => {
    for (const secret of secrets()) {
      const json = JSON.stringify({ records: [{ name: secret }] });
      for (const path of ['/v1/data/tags', '/user-interactions']) {
        const broken = [
          secret,
          `"${secret}`,
          `{"records":${secret}}`,
          `{"${secret}" 1}`,
          json.slice(0, -4),
          `${json}${secret}`,
        ];
        for (const body of broken) expect(await postBytes(path, body)).toBe(400);
        const latin1 = Buffer.from(`{"records":"${secret} \xe9"}`, 'latin1');
        expect(await postBytes(path, latin1)).toBe(400);
        const large = JSON.stringify({ records: [{ name: secret.repeat(bodyBytesMax / 10) }] });
        expect(await postBytes(path, large)).toBe(413);
        expect(await postBytes(path, gzipSync(large), { 'content-encoding': 'gzip' })).toBe(413);
        for (const coding of ['gzip', 'br', 'zstd', 'deflate'])
          expect(await postBytes(path, json, { 'content-encoding': coding })).toBe(400);
        expect(
          await postBytes(path, deflateSync(json).subarray(0, -5), { 'content-encoding': 'deflate' }),
        ).toBe(400);
        for (const type of ['text/plain', `application/${secret}`, 'application/x-www-form-urlencoded'])
          expect(await postBytes(path, json, { 'content-type': type })).toBe(415);
        expect(await postBytes(path, json, { 'content-encoding': secret })).toBe(415);
      }
      expect(await post('/v1/data/tags', { records: secret })).toBe(400);
      expect(await post('/v1/data/tags', { [secret]: 1, records: [] })).toBe(400);
      expect(await post('/v1/erasures', { customer_ids: [secret], mode: secret, [secret]: 1 })).toBe(400);
      expect(await post('/v1/access-requests', { customer_ids: [secret], [secret]: 1 })).toBe(400);
      expect(await post('/v1/access-requests', { user_ids: [secret] })).toBe(202);
      expect(await post('/v1/erasures', { user_ids: [secret] })).toBe(202);
      expect(
        await post('/v1/runs', { name: secret, files: [{ name: `/${secret}`, [secret]: secret }] }),
      ).toBe(400);
      expect(await post('/v1/runs', { [secret]: secret, files: secret })).toBe(400);
    }
    await expectNothingLogged();
  });

  it('in names of runs and files is in no line of the log', async () => {
    for (const secret of secrets()) {
      const files = [{ name: secret, bytes: 1, sha256: '9f'.repeat(32), type: 'interactions' }];
      const run = { name: secret, client_version: secret, files };
      const own = apiOf(server.url, key);
      const keyed = { 'idempotency-key': secret };
      const { status, body } = await own.post('/v1/runs', { ...run, again: true }, keyed);
      expect({ status, body }).toMatchObject({
        status: 201,
        body: { name: secret, files: [{ name: secret }] },
      });
      expect(await post('/v1/runs', run)).toBe(409);
      expect(await post('/v1/runs', { ...run, name: 'n' }, keyed)).toBe(422);
      await own.get(`/v1/runs?name=${encodeURIComponent(secret)}`);
    }
    await expectNothingLogged();
  });

  it('in headers is in no answer', async () => {
    const names =
      'cookie x-api-key user-agent referer origin accept accept-encoding from range if-range'.split(' ');
    const proxies = [
      'x-request-id',
      'request-id',
      'x-forwarded-for',
      'x-forwarded-host',
      'forwarded',
      'traceparent',
    ];
    for (const secret of secrets()) {
      const headers = Object.fromEntries([...names, ...proxies].map((name) => [name, secret]));
      expect(await send('/v1/data', { headers })).toBe(200);
      expect(await send('/v1/data/tags/x', { headers })).toBe(404);
      for (const authorization of [
        secret,
        `Basic ${secret}`,
        `Bearer ${secret}x`,
        `Bearer  ${secret}, ${secret}`,
        `bearer\t${secret}`,
      ])
        expect(await send('/v1/data', { headers: { authorization } })).toBe(401);
      const upload = (name: string) => {
        const records = [{ tag_id: randomUUID(), name }];
        return post('/v1/data/tags', { records }, { 'idempotency-key': `${secret} again` });
      };
      expect(await upload('vegan')).toBe(200);
      expect(await upload('halal')).toBe(422);
      const records = [{ tag_id: randomUUID(), name: 'vegan' }];
      expect(await post('/v1/data/tags', { records }, { 'idempotency-key': secret.repeat(30) })).toBe(400);
    }
    await expectNothingLogged();
  });

  it('in addresses and queries is in no answer, for every parameter of every operation', async () => {
    for (const secret of secrets().map(encodeURIComponent)) {
      const at = (path: string) => path.replace(/\{\w+\}/, secret);
      for (const path of Object.keys(paths)) {
        for (const method of Object.keys(paths[path])) {
          const parameters = describedParameters(description, paths[path][method]);
          const names = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
          const query = [...names, 'api_key', 'access_token', 'unknown']
            .map((name) => `${name}=${secret}`)
            .join('&');
          const init = method === 'get' ? {} : { method: method.toUpperCase(), body: '{}', headers: asJson };
          expect(await send(`${at(path)}?${query}`, init)).toBe(400);
          if (path !== at(path)) expect(await send(at(path), init)).toBe(404);
        }
      }
      for (const path of [
        `/${secret}`,
        `/v1/data/${secret}`,
        `/v1/data/tags/${secret}/${secret}`,
        `/docs/${secret}`,
      ])
        expect(await send(path)).toBe(404);
      for (const path of [`/%zz${secret}`, `/v1/data/tags?limit=%zz${secret}`, `/health/live?${secret}=1`])
        await send(path, {}, path.includes('?'));
      for (const name of ['api_key', 'access_token', 'key', 'token'])
        expect(await send(`/v1/data?${name}=${secret}`, { headers: { authorization: '' } })).toBe(401);
    }
    await expectNothingLogged();
  });

  it('in input that is not HTTP is in no answer', async () => {
    for (const secret of secrets()) {
      const host = 'Host: localhost\r\n';
      await sendRaw(`${secret}\r\n\r\n`);
      await sendRaw(`${secret} / HTTP/1.1\r\n${host}\r\n`);
      await sendRaw(`GET /${secret} x HTTP/1.1\r\n${host}\r\n`);
      await sendRaw(`GET / ${secret}\r\n${host}\r\n`);
      await sendRaw(`GET / HTTP/1.1\r\n${host}${secret}\r\n\r\n`);
      await sendRaw(`GET / HTTP/1.1\r\n${host}X: ${secret}\0\r\n\r\n`);
      await sendRaw(`GET / HTTP/1.1\r\n${host}X: ${secret.repeat(1_000)}\r\n\r\n`);
      await sendRaw(`POST / HTTP/1.1\r\n${host}Transfer-Encoding: ${secret}\r\n\r\n${secret}`);
      await sendRaw(`POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nExpect: ${secret}\r\n\r\n`);
      await sendRaw(`GET http://${secret}/health/live HTTP/1.1\r\nHost: ${secret}\r\n\r\n`);
      await sendRaw(`POST /v1/data/tags HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n${secret}\r\n`);
    }
    await expectNothingLogged();
  });

  it('while the database is unavailable, or becomes so, is in no answer and no log', async () => {
    await proxy.accept();
    const usual = server;
    server = await start(proxy.databaseUrl);
    onTestFinished(async () => {
      proxy.unwatch();
      await server.stop();
      server = usual;
    });
    const sound = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: stored.shops, event_timestamp: 1 };
    const attempts = async () => {
      for (const secret of secrets()) {
        const headers = { 'idempotency-key': `${secret} ${randomUUID()}` };
        const records = [{ ...makeRecord('customers', stored), gender: secret, birthdate }];
        await post('/v1/data/customers', { records }, headers);
        await post('/v1/data/customers', { records });
        await post('/user-interactions', { ...sound, user_id: secret, item_id: randomUUID() }, headers);
        await send(`/v1/data/customers/${encodeURIComponent(secret)}`);
        await send(`/user-interactions?user_id=${encodeURIComponent(secret)}`);
        await send('/v1/data', { headers: { authorization: `Bearer ${plantedKey}` } });
        for (const path of ['/health/live', '/health/ready']) await send(path);
      }
    };
    const cuts = {
      'at the beginning': 'begin\0',
      'at the end': 'commit\0',
      'at an interaction': 'interactions',
    };
    for (const word of Object.values(cuts)) {
      proxy.watch((bytes, link) => {
        if (bytes.includes(word)) link.cut();
        return !bytes.includes(word);
      });
      await attempts();
      proxy.unwatch();
    }
    await proxy.refuse();
    await attempts();
    await proxy.accept();
    await expect.poll(() => send('/health/ready')).toBe(200);
    await expectNothingLogged();
    expect(
      server.log.some((line) => JSON.parse(line).code === 'database_unavailable'),
      'there was an error to log',
    ).toBe(true);
  });

  it('in a row that the database refuses and quotes is in no answer and no log', async () => {
    const rule = 'alter table customers add constraint planted check (gender is null) not valid';
    await queryDatabase(directUrl, rule);
    onTestFinished(async () => {
      await queryDatabase(directUrl, 'alter table customers drop constraint planted');
    });
    const records = secrets().map((gender) => ({ ...makeRecord('customers', stored), gender, birthdate }));
    expect(await post('/v1/data/customers', { records })).toBe(500);
    await expectNothingLogged();
    expect(server.log.some((line) => line.includes('23514'))).toBe(true);
  });

  it('is in no health answer, and in no entry of the audit log', async () => {
    for (const path of ['/health/live', '/openapi.json']) expect(await send(path)).toBe(200);
    await expect.poll(() => send('/health/ready')).toBe(200);
    const entries = await server.run('audit', '--json');
    expect(entries).toContain('key.issue');
    expect(tracesOf(entries)).toEqual([]);
    for (const args of [
      ['keys', 'list', '--json'],
      ['organisations', 'list', '--json'],
    ])
      expect(tracesOf(await server.run(...args))).toEqual([]);
  });
});
