import { type IncomingHttpHeaders, request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { apiOf } from '../support/api.ts';
import { expectError, uuidV7 } from '../support/expect-error.ts';
import { sendRaw } from '../support/raw-http.ts';
import { expectReady } from '../support/ready.ts';

/** Tests how browsers and caches see the API reference's files, which are public and are compressed only once. */

let server: AdminServer;
beforeAll(async () => {
  server = await startAdminServer();
});
afterAll(() => server.stop());

/** Returns a response without decoding it, unlike `fetch`. */
function ask(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Asked> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, async (response) => {
      const pieces: Buffer[] = await response.toArray();
      const { statusCode: status = 0, headers: got } = response;
      resolve({ status, headers: got, bytes: Buffer.concat(pieces) });
    });
    sent.on('error', reject).end();
  });
}

interface Asked {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
}

async function scriptUrlOf(base: string): Promise<string> {
  const page = (await ask(`${base}/docs/`)).bytes.toString();
  const [, src = ''] = /<script[^>]* src="([^"]+)"/.exec(page) ?? [];
  return new URL(src, `${base}/docs/`).href;
}

describe.each([
  ['public', () => server.url, 'Intake'],
  ['admin', () => server.adminUrl, 'Intake admin'],
])('of the %s API', (_api, baseOf, title) => {
  const urls = async () => [`${baseOf()}/docs/`, `${baseOf()}/openapi.json`, await scriptUrlOf(baseOf())];

  it('have the requested encoding, each with its own strong tag', async () => {
    for (const url of await urls()) {
      const plain = await ask(url);
      const [br, gzip] = [
        await ask(url, { 'accept-encoding': 'gzip, br' }),
        await ask(url, { 'accept-encoding': 'gzip' }),
      ];
      for (const [answer, encoding] of [
        [plain, undefined],
        [br, 'br'],
        [gzip, 'gzip'],
      ] as const) {
        expect(answer.status).toBe(200);
        expect(answer.headers['content-encoding']).toBe(encoding);
        expect(answer.headers.vary).toBe('accept-encoding');
        expect(answer.headers.etag).toMatch(/^"[\w-]{22}"$/);
        expect(answer.headers['x-request-id']).toMatch(uuidV7);
        expect(Number(answer.headers['content-length'])).toBe(answer.bytes.length);
      }
      expect(new Set([plain, br, gzip].map(({ headers }) => headers.etag)).size).toBe(3);
      expect(brotliDecompressSync(br.bytes).equals(plain.bytes)).toBe(true);
      expect(gunzipSync(gzip.bytes).equals(plain.bytes)).toBe(true);
      expect(br.bytes.length).toBeLessThan(plain.bytes.length);
    }
  });

  it('are 304 for a client that has them in that encoding, and for nobody else', async () => {
    for (const url of await urls()) {
      const accept = { 'accept-encoding': 'br' };
      const first = await ask(url, accept);
      const etag = first.headers.etag ?? '';
      for (const known of [etag, `W/${etag}`, `"another", ${etag}`, '*']) {
        const again = await ask(url, { ...accept, 'if-none-match': known });
        expect({ known, status: again.status, length: again.bytes.length }).toEqual({
          known,
          status: 304,
          length: 0,
        });
        for (const name of ['etag', 'vary', 'cache-control'])
          expect(again.headers[name]).toBe(first.headers[name]);
        expect(again.headers).not.toHaveProperty('content-type');
      }
      for (const headers of [{ ...accept, 'if-none-match': '"another"' }, { 'if-none-match': etag }])
        expect((await ask(url, headers)).status).toBe(200);
    }
  });

  it('answer HEAD as GET, without the file', async () => {
    for (const url of await urls()) {
      const [get, head] = [await ask(url), await ask(url, {}, 'HEAD')];
      expect({ status: head.status, length: head.bytes.length }).toEqual({ status: 200, length: 0 });
      for (const name of ['etag', 'vary', 'cache-control', 'content-type'])
        expect(head.headers[name]).toBe(get.headers[name]);
      expect(head.headers['content-length']).toBe(String(get.bytes.length));
    }
  });

  it('are revalidated each time, except for the script, whose address contains its hash', async () => {
    const [page = '', description = '', script = ''] = await urls();
    for (const url of [page, description]) expect((await ask(url)).headers['cache-control']).toBe('no-cache');
    expect((await ask(script)).headers['cache-control']).toBe('public, max-age=31536000, immutable');
    // A page from another version requests another script. It gets the current script, which must not be cached.
    for (const other of [script.replace(/\?.*/, ''), script.replace(/\?.*/, '?another')]) {
      const { status, headers } = await ask(other);
      expect([status, headers['cache-control']]).toEqual([200, 'no-cache']);
    }
  });

  it('accept no other method, and the page names its API', async () => {
    for (const url of [`${baseOf()}/docs`, ...(await urls())]) {
      const refused = await apiOf(url).send('', { method: 'POST' });
      expectError(refused, 405);
      expect(refused.headers.get('allow')).toBe('GET, HEAD');
    }
    const page = await ask(`${baseOf()}/docs/`);
    expect(page.bytes.toString()).toContain(`<title>${title} API reference</title>`);
    expect(page.headers['content-security-policy']).toMatch(/^default-src 'self'; .*frame-ancestors 'none'$/);
  });
});

it('are also served at /docs, with or without a slash', async () => {
  const { status, headers } = await apiOf(server.url).get('/docs');
  expect([status, headers.get('location')]).toEqual([301, '/docs/']);
});

it('78: the bare address redirects to the reference, on both APIs and without a key, and is not cached', async () => {
  for (const [url, path] of [
    [server.url, '/'],
    [server.adminUrl, '/'],
    [server.url, '/?from=bookmark'],
  ] as const) {
    const { status, headers } = await apiOf(url).get(path);
    expect([status, headers.get('location'), headers.get('cache-control')]).toEqual([
      302,
      '/docs/',
      'no-cache',
    ]);
  }
  expectError(await apiOf(server.url).send('/', { method: 'POST' }), 405);
});

it('are not sent in an encoding that the client refuses', async () => {
  for (const [accept, encoding] of [
    ['br;q=0, gzip', 'gzip'],
    ['br;q=0, gzip;q=0', undefined],
    ['*, br;q=0', 'gzip'],
  ] as const) {
    const { status, headers } = await ask(`${server.url}/openapi.json`, { 'accept-encoding': accept });
    expect([status, headers['content-encoding']]).toEqual([200, encoding]);
  }
});

it('with API_REFERENCE=off are addresses like any other that there is nothing at', async () => {
  const off = await startAdminServer({ API_REFERENCE: 'off' });
  try {
    const key = await off.createKey('acme');
    for (const path of ['/', '/docs', '/docs/', '/docs/scalar.js', '/openapi.json']) {
      expectError(await apiOf(off.url).get(path), 401);
      expectError(await apiOf(off.adminUrl).get(path), 401);
      for (const answer of [await apiOf(off.url, key).get(path), await off.admin.get(path)]) {
        expectError(answer, 404);
        expect(answer.body.message).not.toContain('/docs');
      }
      const post = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`;
      expectError(await sendRaw(off.url, post), 404);
    }
    await expectReady(off.url);
  } finally {
    await off.stop();
  }
});
