import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { METHODS, request } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectError, uuidV7 } from '../support/expect-error.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';

/**
 * Tests every way in which a well-formed HTTP request can be wrong. The response is always a 4xx of the same shape, and
 * the service never crashes.
 */

let server: BuiltServer;
/** A second server on the same database, with a size limit that is large enough for ordinary bodies. */
let roomy: BuiltServer;
let key: string;
let api: Api;
let roomyApi: Api;
const bodyBytesMax = 10_000;
beforeAll(async () => {
  server = await startBuiltServer({ BODY_BYTES_MAX: String(bodyBytesMax) });
  roomy = await startBuiltServer({ DATABASE_URL: server.databaseUrl });
  key = await server.createKey('acme');
  api = apiOf(server.url, key);
  roomyApi = apiOf(roomy.url, key);
});
afterAll(async () => {
  // No input may cause a server error.
  const troubles = [...server.log, ...roomy.log].filter((line) => JSON.parse(line).level >= 50);
  await Promise.all([server.stop(), roomy.stop()]);
  expect(troubles).toEqual([]);
});

const newTag = () => ({ tag_id: randomUUID(), name: 'vegan' });
const oneTag = () => JSON.stringify({ records: [newTag()] });
const jsonType = 'Content-Type: application/json';

function post(headers: readonly string[], body: string | Buffer, path = '/v1/data/tags'): Promise<Answer> {
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  return sendRaw(server.url, rawPost(path, [`Authorization: Bearer ${key}`, length, ...headers], body));
}

describe('bodies', () => {
  const latin1 = () => Buffer.from(oneTag().replace('vegan', 'crème'), 'latin1');
  it.each([
    ['cut short', () => oneTag().slice(0, -1)],
    ['with something after it', () => `${oneTag()}x`],
    ['two of them', () => oneTag() + oneTag()],
    ['not JSON', () => 'records=1'],
    ['with a trailing comma', () => '{"records":[],}'],
    ['with single quotes', () => "{'records':[]}"],
    ['with NaN', () => '{"records":NaN}'],
    ['empty', () => ''],
    ['of spaces', () => '   '],
    ['in Latin-1', latin1],
    [
      'with half a character',
      () => Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xe2, 0x82]), Buffer.from('"}')]),
    ],
    [
      'with an overlong character',
      () => Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xc0, 0xaf]), Buffer.from('"}')]),
    ],
    ['in UTF-16', () => Buffer.from(oneTag(), 'utf16le')],
  ] as [string, () => string | Buffer][])('a body %s is 400', async (_what, body) => {
    for (const path of ['/v1/data/tags', '/user-interactions'])
      expectError(await post([jsonType], body(), path), 400);
  });

  it('a body that is not UTF-8 is reported as such', async () => {
    expect((await post([jsonType], latin1())).body.message).toMatch(/UTF-8/);
  });

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/jsonx',
    'application/problem+json',
    'json',
    '/',
  ])('a body of type %s is 415', async (type) => {
    expectError(await post([`Content-Type: ${type}`], oneTag()), 415);
  });

  it('a body of no type is 415', async () => {
    expectError(await post([], oneTag()), 415);
  });

  it.each([
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
  ])('a body of type %s is accepted', async (type) => {
    expect((await post([`Content-Type: ${type}`], oneTag())).status).toBe(200);
  });
});

// These tests run concurrently, because the server waits five seconds for the rest of a body that is too large.
describe('the size of a body', { concurrent: true }, () => {
  const tooLarge = Buffer.alloc(bodyBytesMax + 1, ' ');

  it('is 413 beyond the limit as declared, before any of it is sent', async () => {
    const headers = [`Authorization: Bearer ${key}`, jsonType, `Content-Length: ${bodyBytesMax + 1}`];
    expectError(await sendRaw(server.url, rawPost('/v1/data/tags', headers)), 413);
  });

  it('is 413 beyond the limit as sent in chunks', async () => {
    const headers = [`Authorization: Bearer ${key}`, jsonType, 'Transfer-Encoding: chunked'];
    const chunk = `${(1_000).toString(16)}\r\n${' '.repeat(1_000)}\r\n`;
    expectError(await sendRaw(server.url, rawPost('/v1/data/tags', headers, chunk.repeat(50))), 413);
  });

  it('is 413 beyond 32 MiB by default', async () => {
    const headers = [`Authorization: Bearer ${key}`, jsonType, `Content-Length: ${32 * 1024 * 1024 + 1}`];
    expectError(await sendRaw(roomy.url, rawPost('/v1/data/tags', headers)), 413);
  });

  it('may be the limit itself', async () => {
    expect((await post([jsonType], oneTag().padEnd(bodyBytesMax, ' '))).status).toBe(200);
    expectError(await post([jsonType], tooLarge), 413);
  });
});

describe('compressed bodies', () => {
  const codings: [string, (bytes: Buffer) => Buffer][] = [
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['deflate', deflateSync],
  ];
  const send = (coding: string, bytes: Buffer) => post([jsonType, `Content-Encoding: ${coding}`], bytes);

  it.each(codings)('in %s are accepted', async (coding, compress) => {
    const { status, body } = await send(coding, compress(Buffer.from(oneTag())));
    expect(status).toBe(200);
    expect(body.batches[0].data.counts.created).toBe(1);
  });

  it.each(codings)('in %s that expand beyond the limit are 413', async (coding, compress) => {
    const bomb = compress(Buffer.alloc(50_000_000, ' '));
    expect(bomb.length).toBeLessThan(bodyBytesMax * 10);
    expectError(await send(coding, bomb.subarray(0, bodyBytesMax)), 413);
  });

  it.each(codings)(
    'in %s that are something else, or cut short, are 400 and reported as such',
    async (coding, compress) => {
      const whole = compress(Buffer.from(oneTag()));
      for (const bytes of [Buffer.from(oneTag()), whole.subarray(0, -9), Buffer.alloc(0)]) {
        const answer = await send(coding, bytes);
        expectError(answer, 400);
        expect(answer.body.message).toMatch(/decompress/);
      }
    },
  );

  it('in an unknown coding are 415', async () => {
    for (const coding of ['compress', 'lzma', 'gzip, gzip', 'gzip;q=1', '*']) {
      expectError(await send(coding, gzipSync(oneTag())), 415);
    }
  });

  it('may have their coding in capitals, as in HTTP', async () => {
    expect((await send('GZIP', gzipSync(oneTag()))).status).toBe(200);
  });

  it('without a coding may be called identity', async () => {
    expect((await send('identity', Buffer.from(oneTag()))).status).toBe(200);
  });
});

describe('addresses', () => {
  it.each([
    '/nowhere',
    '/v1',
    '/v1/datas/shops',
    '/user-interactions/a/b',
    '/v1/data/tags/x/',
    '/v1/data/shops//',
    '//v1/data/shops',
  ])('%s is 404, and the answer mentions the reference', async (path) => {
    const answer = await api.get(path);
    expectError(answer, 404);
    expect(answer.body.message).toContain('/docs');
  });

  it.each(['/health/:a(b/', '/health/*a/', '/v1/requests/:a(b/', '/v1/requests/:request_id/'])(
    '%s, which a router could treat as a pattern, is 404',
    async (path) => {
      const { status, body } = await api.get(path);
      expect([status, body.code]).toEqual([404, 'not_found']);
      expect(body.message).not.toContain('(b');
    },
  );

  it.each(['/v1/data/shops', '/user-interactions', '/v1/rejections/replay', '/health/live', '/v1/requests'])(
    '%s with a trailing slash is 404, and the answer names it without, whatever the method',
    async (path) => {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const answer = await api.send(`${path}/?limit=1`, { method });
        expectError(answer, 404);
        expect(answer.body.message).toContain(`use ${path}, without the slash`);
      }
    },
  );

  it.each(['nothing', 'Shops', 'shop', 'shop_tags', '', '__proto__', 'constructor'])(
    'the type %j is 404, and the answer lists the types',
    async (type) => {
      const answer = await api.upload(type, [newTag()]);
      expectError(answer, 404);
      for (const known of types) expect(answer.body.message).toContain(known);
    },
  );

  it.each(['/v1/data/%zz', '/v1/data/%', '/%ff', '/user-interactions/%c3%28'])(
    '%s cannot be decoded and is 400',
    async (path) => {
      const head = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`;
      expectError(await sendRaw(server.url, head), 400);
    },
  );

  it('an upload with an unknown parameter is 400 and writes nothing', async () => {
    const tag = newTag();
    expectError(await api.post('/v1/data/tags?dryrun=true', { records: [tag] }), 400, ['dryrun']);
    expect((await api.batch('tags', [tag])).counts.created).toBe(1);
  });
});

const { paths } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
const types = Object.keys(paths)
  .filter((path) => /^\/v1\/data\/[^/]+$/.test(path))
  .map((path) => path.slice('/v1/data/'.length));

describe('methods', () => {
  it.each(Object.keys(paths))('%s accepts its own methods and answers every other with 405', async (path) => {
    const own = Object.keys(paths[path]).map((method) => method.toUpperCase());
    const allowed = own.includes('GET') ? ['HEAD', ...own] : own;
    const address = path.replace(/\{\w+\}/, randomUUID());
    // CONNECT requests a tunnel, not a resource.
    for (const method of METHODS.filter((one) => !allowed.includes(one) && one !== 'CONNECT')) {
      const answer = await sendMethod(method, address);
      expect([method, answer.status]).toEqual([method, 405]);
      expect(answer.headers.get('allow')?.split(', ').sort()).toEqual([...allowed].sort());
      if (method === 'HEAD') expect(answer.headers.get('x-request-id')).toMatch(uuidV7);
      else expectError(answer, 405);
    }
  });

  /** Sends a request with any method, which fetch cannot do. */
  function sendMethod(method: string, path: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}` };
      const sent = request(server.url + path, { method, headers }, async (response) => {
        const text = (await response.toArray()).join('');
        const received = new Headers(response.headers as Record<string, string>);
        resolve({ status: response.statusCode ?? 0, headers: received, body: text && JSON.parse(text) });
      });
      sent.on('error', reject).end();
    });
  }
});

describe('malicious JSON', () => {
  const nested = (levels: number, open = '[', close = ']') => open.repeat(levels) + close.repeat(levels);
  const deep = nested(100_000);
  const deepObject = `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`;
  const million = 'k'.repeat(1_000_000);
  const tag = (extra: string) => `{"records":[{"tag_id":"${randomUUID()}",${extra}}]}`;

  it.each([
    ['100,000 arrays as the body', 400, () => deep],
    ['100,000 objects as the body', 400, () => deepObject],
    ['100,000 arrays as the records', 400, () => `{"records":${deep}}`],
    ['100,000 arrays as a record', 400, () => `{"records":[${deep}]}`],
    ['100,000 objects as a record', 400, () => `{"records":[${deepObject}]}`],
    ['100,000 arrays as a field', 400, () => tag(`"name":${deep}`)],
    ['100,000 objects as an unknown field', 400, () => tag(`"name":"x","more":${deepObject}`)],
    ['100,000 arrays, not closed', 400, () => '['.repeat(100_000)],
    ['a name of a megabyte', 400, () => tag(`"name":"x","${million}":1`)],
    ['a megabyte in a field', 400, () => tag(`"name":"${million}"`)],
    ['a megabyte for an id', 400, () => `{"records":[{"tag_id":"${million}","name":"x"}]}`],
    ['a number of a megabyte', 400, () => tag(`"name":${'9'.repeat(1_000_000)}`)],
    [
      '100,000 unknown names',
      400,
      () => tag(`"name":"x",${[...Array(100_000).keys()].map((at) => `"k${at}":1`).join()}`),
    ],
    [
      'records twice, the last without any',
      400,
      () => `{"records":[${JSON.stringify(newTag())}],"records":[]}`,
    ],
    ['a field twice, the last of the wrong type', 400, () => tag('"name":"x","name":1')],
    ['a field twice, the last right', 400, () => tag('"name":1,"name":"x"')],
    ['__proto__ for records', 400, () => '{"__proto__":{"records":[{}]}}'],
    ['__proto__ of records', 400, () => '{"records":{"__proto__":[]}}'],
    ['__proto__ with a length', 400, () => '{"records":{"length":1,"0":{},"__proto__":[]}}'],
    ['constructor.prototype', 200, () => tag('"name":"x","constructor":{"prototype":{"is_deleted":"x"}}')],
    ['toString in a field', 400, () => tag('"name":{"toString":1}')],
    ['NUL in a field', 400, () => tag('"name":"a\\u0000b"')],
    ['half a surrogate pair in a field', 400, () => tag('"name":"\\ud800"')],
    ['1e400 in a field', 400, () => tag('"name":1e400')],
  ] as [string, number, () => string][])(
    '%s is %i, and no error of the service',
    async (_what, status, body) => {
      const headers = { 'content-type': 'application/json' };
      const answer = await roomyApi.send('/v1/data/tags', { method: 'POST', headers, body: body() });
      expect(answer.status).toBe(status);
      expect(JSON.stringify(answer.body).length).toBeLessThan(20_000);
    },
  );

  it.each([
    ['100,000 arrays', deep],
    ['100,000 objects', deepObject],
    ['10,000 arrays', nested(10_000)],
    ['10,000 arrays in a field', `{"city":${nested(10_000)}}`],
    ['a name of a megabyte', `{"${million}":1}`],
    ['__proto__', '{"__proto__":{"item_type":"TAG"}}'],
  ])(
    '%s as an interaction is 400, or 413 if it is large, with an Idempotency-Key or without',
    async (_what, body) => {
      for (const more of [{}, { 'idempotency-key': randomUUID() }]) {
        const headers = { 'content-type': 'application/json', ...more };
        const { status } = await roomyApi.send('/user-interactions', { method: 'POST', headers, body });
        expect(status).toBe(body.length > 64 * 1024 ? 413 : 400);
      }
    },
  );
});
