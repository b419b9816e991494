import { randomBytes, randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';

/** What is not HTTP, or is HTTP that two readers could take for two different things. */

let server: BuiltServer;
let key: string;
beforeAll(async () => {
  server = await startBuiltServer();
  key = await server.createKey('acme');
});
afterAll(() => server.stop());

const host = 'Host: localhost\r\n';
const get = (headers: string, path = '/health/live') => `GET ${path} HTTP/1.1\r\n${headers}\r\n`;
const body = () => JSON.stringify({ records: [{ tag_id: randomUUID(), name: 'vegan' }] });
const upload = (headers: string[], sent: string) =>
  rawPost(
    '/v1/data/tags',
    [`Authorization: Bearer ${key}`, 'Content-Type: application/json', ...headers],
    sent,
  );
const chunked = (sent: string) => `${sent.length.toString(16)}\r\n${sent}\r\n0\r\n\r\n`;

describe('requests that are not HTTP', () => {
  it.each([
    [
      'binary garbage',
      () => Buffer.concat([Buffer.from([0, 1, 2, 255]), randomBytes(500), Buffer.from('\r\n\r\n')]),
    ],
    ['a line of text', () => 'hello\r\n\r\n'],
    ['a TLS handshake', () => Buffer.from('16030100f8010000f40303', 'hex')],
    ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a method that does not exist', () => `FETCH /health/live HTTP/1.1\r\n${host}\r\n`],
    ['a version that does not exist', () => `GET /health/live HTTP/9.9\r\n${host}\r\n`],
    ['a space in the address', () => `GET /health/live now HTTP/1.1\r\n${host}\r\n`],
    ['a byte that is no ASCII in the address', () => Buffer.from(`GET /é HTTP/1.1\r\n${host}\r\n`, 'latin1')],
    ['a header without a name', () => get(`${host}: x\r\n`)],
    ['a header without a colon', () => get(`${host}x\r\n`)],
    ['a space before the colon', () => get('Host : localhost\r\n')],
    ['NUL in a header', () => get(`${host}X: a\0b\r\n`)],
    ['a folded header', () => get(`${host}X: a\r\n b\r\n`)],
    ['no Host', () => get('')],
    ['two Hosts', () => get(`${host}Host: elsewhere\r\n`)],
  ] as [string, () => string | Buffer][])('%s is 400', async (_what, bytes) => {
    expectError(await sendRaw(server.url, bytes()), 400);
  });

  it.each([
    ['in one', () => `X: ${'x'.repeat(20_000)}\r\n`],
    ['in many', () => 'X: x\r\n'.repeat(4_000)],
    ['in a name', () => `${'x'.repeat(20_000)}: x\r\n`],
  ])('too many bytes of headers, %s, are 431', async (_what, headers) => {
    expectError(await sendRaw(server.url, get(host + headers())), 431);
  });

  it('too long an address is 431', async () => {
    expectError(await sendRaw(server.url, get(host, `/${'x'.repeat(20_000)}`)), 431);
  });

  it('an expectation that cannot be met is 417, and one that can is met', async () => {
    const length = (sent: string) => `Content-Length: ${sent.length}`;
    const sent = body();
    expectError(await sendRaw(server.url, upload([length(sent), 'Expect: something'], sent)), 417);
    expect((await sendRaw(server.url, upload([length(sent), 'Expect: 100-continue'], sent))).status).toBe(
      200,
    );
  });
});

describe('requests that could be read in two ways', () => {
  it.each([
    [
      'two different lengths',
      (sent: string) => upload([`Content-Length: ${sent.length}`, 'Content-Length: 5'], sent),
    ],
    ['the same length twice', (sent) => upload(Array(2).fill(`Content-Length: ${sent.length}`), sent)],
    ['a list of lengths', (sent) => upload([`Content-Length: ${sent.length}, ${sent.length}`], sent)],
    ['a length with a sign', (sent) => upload([`Content-Length: +${sent.length}`], sent)],
    ['a negative length', (sent) => upload(['Content-Length: -1'], sent)],
    ['a length in hexadecimal', (sent) => upload([`Content-Length: 0x${sent.length.toString(16)}`], sent)],
    ['a length beyond all numbers', (sent) => upload([`Content-Length: ${'9'.repeat(30)}`], sent)],
    [
      'a length and chunks',
      (sent) => upload([`Content-Length: ${sent.length}`, 'Transfer-Encoding: chunked'], chunked(sent)),
    ],
    [
      'chunks and a length',
      (sent) => upload(['Transfer-Encoding: chunked', 'Content-Length: 4'], chunked(sent)),
    ],
    ['an unknown transfer encoding', (sent) => upload(['Transfer-Encoding: xchunked'], chunked(sent))],
    [
      'chunks that are not the last encoding',
      (sent) => upload(['Transfer-Encoding: chunked, gzip'], chunked(sent)),
    ],
    [
      'two transfer encodings',
      (sent) => upload(['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], chunked(sent)),
    ],
    [
      'a space before the colon of a transfer encoding',
      (sent) => upload(['Transfer-Encoding : chunked'], chunked(sent)),
    ],
    ['a chunk with a length of 0x', (sent) => upload(['Transfer-Encoding: chunked'], `0x${chunked(sent)}`)],
    ['a chunk with a negative length', (sent) => upload(['Transfer-Encoding: chunked'], `-${chunked(sent)}`)],
    [
      'a chunk longer than it says',
      (sent) => upload(['Transfer-Encoding: chunked'], `5\r\n${sent}\r\n0\r\n\r\n`),
    ],
    [
      'chunks ended by bare line feeds',
      (sent) => upload(['Transfer-Encoding: chunked'], chunked(sent).replaceAll('\r', '')),
    ],
    [
      'headers ended by bare line feeds',
      (sent) =>
        Buffer.from(
          upload([`Content-Length: ${sent.length}`], sent)
            .toString()
            .replaceAll('\r', ''),
        ),
    ],
    ['a bare line feed within the headers', (sent) => upload([`X: a\nContent-Length: ${sent.length}`], sent)],
    [
      'a bare carriage return within the headers',
      (sent) => upload([`X: a\rContent-Length: ${sent.length}`], sent),
    ],
  ] as [string, (sent: string) => Buffer][])('%s is 400, and stores nothing', async (_what, make) => {
    const sent = body();
    expectError(await sendRaw(server.url, make(sent)), 400);
    const { records } = JSON.parse(sent);
    expect((await apiOf(server.url, key).batch('tags', records)).counts.created).toBe(1);
  });

  it('the body of a refused request is never taken for the next request', async () => {
    const hidden = get(host, '/health/live');
    for (const status of [401, 404, 405, 415]) {
      const path = status === 404 ? '/nowhere' : '/v1/data/tags';
      const authorization = status === 401 ? [] : [`Authorization: Bearer ${key}`];
      const post = rawPost(
        path,
        [...authorization, `Content-Length: ${hidden.length}`, 'Content-Type: text/plain'],
        hidden,
      );
      const request = status === 405 ? Buffer.from(post.toString().replace('POST', 'PUT')) : post;
      const answers = (await receive(request, 300)).match(/HTTP\/1\.1 \d+/g);
      expect(answers).toEqual([`HTTP/1.1 ${status}`]);
    }
  });

  /** All that comes back within some time. */
  function receive(bytes: Buffer, ms: number): Promise<string> {
    const { hostname, port } = new URL(server.url);
    return new Promise((resolve) => {
      let text = '';
      const socket = connect(Number(port), hostname, () => socket.write(bytes));
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.on('error', () => {}).on('close', () => resolve(text));
      setTimeout(() => socket.destroy(), ms);
    });
  }
});

describe('connections', () => {
  it('one that is cut within a request does no harm to others, and is no error of the service', async () => {
    const { hostname, port } = new URL(server.url);
    for (const part of ['GET /hea', upload(['Content-Length: 500'], '{"rec').toString(), '']) {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      socket.end(part);
      await new Promise((resolve) => socket.on('close', resolve).resume());
    }
    const { status, headers } = await apiOf(server.url).get('/health/ready');
    expect(status).toBe(200);
    const last = headers.get('x-request-id')!;
    await expect.poll(() => server.log.some((line) => line.includes(last))).toBe(true);
    const { level, msg } = server.log.map((line) => JSON.parse(line)).find((line) => line.level >= 50) ?? {};
    expect({ level, msg }).toEqual({});
  });
});
