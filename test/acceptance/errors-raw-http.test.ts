import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { expectReady } from '../support/ready.ts';

/** Tests input that is not HTTP. security/smuggling.test.ts tests ambiguous requests. */

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
    [
      'a byte in the address that is not ASCII',
      () => Buffer.from(`GET /é HTTP/1.1\r\n${host}\r\n`, 'latin1'),
    ],
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

  it('an expectation that cannot be met is 417, and `100-continue` is met', async () => {
    const length = (sent: string) => `Content-Length: ${sent.length}`;
    const sent = body();
    expectError(await sendRaw(server.url, upload([length(sent), 'Expect: something'], sent)), 417);
    expect((await sendRaw(server.url, upload([length(sent), 'Expect: 100-continue'], sent))).status).toBe(
      200,
    );
  });
});

describe('connections', () => {
  /** Returns the lines about failures once everything that was sent earlier has been handled. */
  async function failuresLogged(): Promise<{ level: number; msg: string; status?: number }[]> {
    await expectReady(server.url);
    const last = (await apiOf(server.url).get('/v1/data')).headers.get('x-request-id')!;
    await expect.poll(() => server.log.some((line) => line.includes(last))).toBe(true);
    const logged = server.log.map((line) => JSON.parse(line));
    return logged.filter(({ level, status }) => level >= 50 || status >= 500);
  }

  async function send(bytes: string | Buffer): Promise<Socket> {
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => {});
    await new Promise((resolve) => socket.write(bytes, resolve));
    return socket;
  }

  it('a connection that is cut within a request does no harm to others, and is not an error of the service', async () => {
    for (const part of ['GET /hea', upload(['Content-Length: 500'], '{"rec').toString(), '']) {
      const socket = await send(part);
      const closed = new Promise((resolve) => socket.on('close', resolve).resume());
      socket.end();
      await closed;
    }
    expect(await failuresLogged()).toEqual([]);
  });

  it('a client that is killed while it sends a body, waits or reads an answer is not an error of the service', async () => {
    const tags = Array.from({ length: 5_000 }, () => ({
      tag_id: randomUUID(),
      name: randomBytes(100).toString('base64'),
    }));
    expect((await apiOf(server.url, key).upload('tags', tags)).status).toBe(200);
    const sent = Buffer.from(JSON.stringify({ records: tags }));
    const zipped = gzipSync(sent);
    const headersOf = (bytes: Buffer, more: string[] = []) =>
      upload([`Content-Length: ${bytes.length}`, ...more], '');
    const plain = headersOf(sent);
    const compressed = headersOf(zipped, ['Content-Encoding: gzip']);
    const requests = [
      Buffer.concat([plain, sent.subarray(0, 200_000)]),
      Buffer.concat([compressed, zipped.subarray(0, 200_000)]),
      Buffer.concat([plain, sent]),
      Buffer.concat([compressed, zipped]),
    ];
    // The kernel of a killed client resets its connections.
    for (const bytes of requests) (await send(bytes)).resetAndDestroy();
    for (const encoding of ['identity', 'gzip', 'br']) {
      const headers = `${host}Authorization: Bearer ${key}\r\nAccept: application/x-ndjson\r\nAccept-Encoding: ${encoding}\r\n`;
      const socket = await send(get(headers, '/v1/data/tags'));
      await once(socket, 'data');
      socket.resetAndDestroy();
    }
    expect(await failuresLogged()).toEqual([]);
  });
});
