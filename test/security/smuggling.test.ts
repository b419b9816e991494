// @module-tag full

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { exchangeBytes } from '../support/exchange-bytes.ts';
import { expectReady } from '../support/ready.ts';

/** Tests requests that a proxy and the service could parse differently. The hidden second request must get no response. */

let server: BuiltServer;
/** A server with short timeouts, because a request that never ends looks like a slow request. */
let impatient: BuiltServer;
let key: string;
beforeAll(async () => {
  server = await startBuiltServer();
  const timeouts = { HEADERS_TIMEOUT_MS: '1000', REQUEST_TIMEOUT_MS: '1500' };
  impatient = await startBuiltServer({ DATABASE_URL: server.databaseUrl, ...timeouts });
  key = await server.createKey('acme');
});
afterAll(() => Promise.all([server.stop(), impatient.stop()]));

const hidden = 'GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: hidden\r\n\r\n';
const newTags = () => [{ tag_id: randomUUID(), name: 'vegan' }];
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const chunked = (text: string) => `${chunk(text)}0\r\n\r\n`;

/** Returns an upload with exactly these headers and this body. */
const upload = (headers: readonly string[], body: string, version = 'HTTP/1.1') =>
  [
    `POST /v1/data/tags ${version}`,
    'Host: localhost',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    ...headers,
    '',
    body,
  ].join('\r\n');

/** Sends both headers. The hidden request follows the last chunk, but Content-Length includes it in the body. */
function inTwoWays(sent: string, encodings: readonly string[]): string {
  const body = chunked(sent) + hidden;
  return upload([`Content-Length: ${body.length}`, ...encodings], body);
}

/** With the full length, the hidden request is part of the body. With a shorter length, it follows the body. */
const withLengths = (sent: string, ...lengths: string[]) =>
  upload(
    lengths.map((length) =>
      length.replace('whole', String(sent.length + hidden.length)).replace('part', String(sent.length)),
    ),
    sent + hidden,
  );

const inChunks = (chunks: string, headers: readonly string[] = []) =>
  upload(['Transfer-Encoding: chunked', ...headers], chunks);

type Case = readonly [what: string, make: (sent: string) => string];

async function expectOneRefusal(
  make: (sent: string) => string,
  allowed: readonly number[] = [400],
  by = server,
) {
  const tags = newTags();
  const { statuses, text, closed } = await exchangeBytes(by.url, make(JSON.stringify({ records: tags })));
  expect(statuses.length, text).toBeLessThanOrEqual(1);
  for (const status of statuses) expect(allowed, text).toContain(status);
  expect({ text, closed }).toMatchObject({ closed: true });
  // The refused request did not store anything.
  expect((await apiOf(server.url, key).batch('tags', tags)).counts.created).toBe(1);
}

it('two consecutive requests are two, so the tests below would detect a hidden one', async () => {
  const bytes = hidden + hidden.replace('X: hidden', 'Connection: close');
  expect((await exchangeBytes(server.url, bytes)).statuses).toEqual([200, 200]);
});

describe('a length', () => {
  const cases: Case[] = [
    ['twice, the same', (sent) => withLengths(sent, 'Content-Length: whole', 'Content-Length: whole')],
    [
      'twice, the shorter first',
      (sent) => withLengths(sent, 'Content-Length: part', 'Content-Length: whole'),
    ],
    ['twice, the longer first', (sent) => withLengths(sent, 'Content-Length: whole', 'Content-Length: part')],
    ['twice, in two spellings', (sent) => withLengths(sent, 'Content-Length: part', 'CONTENT-LENGTH: whole')],
    ['as a list of the same', (sent) => withLengths(sent, 'Content-Length: part, part')],
    ['as a list of two', (sent) => withLengths(sent, 'Content-Length: part, whole')],
    ['with a plus', (sent) => withLengths(sent, 'Content-Length: +part')],
    ['with a minus', (sent) => withLengths(sent, 'Content-Length: -part')],
    ['of minus one', (sent) => withLengths(sent, 'Content-Length: -1')],
    ['in hexadecimal', (sent) => withLengths(sent, 'Content-Length: 0xpart')],
    ['with a fraction', (sent) => withLengths(sent, 'Content-Length: part.0')],
    ['with an exponent', (sent) => withLengths(sent, 'Content-Length: 1e2')],
    ['with a space within', (sent) => withLengths(sent, 'Content-Length: 1 part')],
    ['with a letter behind', (sent) => withLengths(sent, 'Content-Length: parta')],
    ['in quotes', (sent) => withLengths(sent, 'Content-Length: "part"')],
    ['of digits beyond ASCII', (sent) => withLengths(sent, 'Content-Length: \xb2')],
    ['of nothing', (sent) => withLengths(sent, 'Content-Length:')],
    ['beyond all numbers', (sent) => withLengths(sent, `Content-Length: ${'9'.repeat(30)}`)],
    ['that wraps round at 64 bits', (sent) => withLengths(sent, 'Content-Length: 18446744073709551626')],
    ['with a space before the colon', (sent) => withLengths(sent, 'Content-Length : part')],
    ['with a tab before the colon', (sent) => withLengths(sent, 'Content-Length\t: part')],
    ['on a folded line', (sent) => withLengths(sent, 'Content-Length:\r\n part')],
    [
      'folded into another',
      (sent) => withLengths(sent, 'X: a\r\n Content-Length: whole', 'Content-Length: part'),
    ],
    ['behind a bare line feed', (sent) => withLengths(sent, 'X: a\nContent-Length: part')],
    ['behind a bare carriage return', (sent) => withLengths(sent, 'X: a\rContent-Length: part')],
    ['behind NUL', (sent) => withLengths(sent, 'X: a\0Content-Length: part')],
    ['with NUL in its value', (sent) => withLengths(sent, 'Content-Length: part\0')],
    ['with a vertical tab in its value', (sent) => withLengths(sent, 'Content-Length: \x0bpart')],
  ];
  it.each(cases)('%s is refused as one request', async (_what, make) => {
    await expectOneRefusal(make);
  });
});

describe('a transfer encoding', () => {
  const cases: Case[] = [
    ['with a length', (sent) => inTwoWays(sent, ['Transfer-Encoding: chunked'])],
    [
      'before a length',
      (sent) => inChunks(chunked(sent) + hidden, [`Content-Length: ${chunked(sent).length + hidden.length}`]),
    ],
    ['with a length, in capitals', (sent) => inTwoWays(sent, ['TRANSFER-ENCODING: CHUNKED'])],
    ...[
      'xchunked',
      'chunkedx',
      'chunked-false',
      '"chunked"',
      'chunked, identity',
      'identity, chunked',
      'identity',
      'chunked, gzip',
      'gzip, chunked',
      'gzip',
      'chunked, chunked',
      'chunked;q=1',
      ', chunked',
      'chunked,',
      'chun ked',
      '\x0bchunked',
      'chunked\x0b',
      '\x0cchunked',
      '\0chunked',
      'chunked\0',
      '\xa0chunked',
      '\r\n chunked',
      '\r\n\tchunked',
      'chunked\r\n , identity',
      '\nchunked',
      'x\nTransfer-Encoding: chunked',
      'x\rTransfer-Encoding: chunked',
      '',
    ].map(
      (value): Case => [
        `of ${JSON.stringify(value)} with a length`,
        (sent) => inTwoWays(sent, [`Transfer-Encoding: ${value}`]),
      ],
    ),
    ...[
      'gzip, chunked',
      'identity, chunked',
      'xchunked',
      'chunked, gzip',
      'chunked, identity',
      'chunkedx',
      '\x0bchunked',
      'gzip',
      'identity',
    ].map(
      (value): Case => [
        `of ${JSON.stringify(value)} alone`,
        (sent) => upload([`Transfer-Encoding: ${value}`], chunked(sent) + hidden),
      ],
    ),
    [
      'twice, the second another',
      (sent) => inChunks(chunked(sent) + hidden, ['Transfer-Encoding: identity']),
    ],
    [
      'twice, the first another',
      (sent) => upload(['Transfer-Encoding: identity', 'Transfer-Encoding: chunked'], chunked(sent) + hidden),
    ],
    [
      'twice, the second unknown, with a length',
      (sent) => inTwoWays(sent, ['Transfer-Encoding: chunked', 'Transfer-encoding: x']),
    ],
    ['with a space before the colon', (sent) => inTwoWays(sent, ['Transfer-Encoding : chunked'])],
    ['with a space before its name', (sent) => inTwoWays(sent, [' Transfer-Encoding: chunked'])],
    [
      'in the first line of the headers, folded',
      (sent) => inTwoWays(sent, ['X: a', '\tTransfer-Encoding: chunked']),
    ],
    ['in HTTP/1.0', (sent) => upload(['Transfer-Encoding: chunked'], chunked(sent) + hidden, 'HTTP/1.0')],
    [
      'in HTTP/1.0, with a length and kept alive',
      (sent) =>
        upload(
          ['Transfer-Encoding: chunked', 'Content-Length: 5', 'Connection: keep-alive'],
          chunked(sent) + hidden,
          'HTTP/1.0',
        ),
    ],
  ];
  it.each(cases)('%s is refused as one request', async (_what, make) => {
    await expectOneRefusal(make);
  });
});

describe('chunks', () => {
  const size = (sent: string) => sent.length.toString(16);
  const cases: Case[] = [
    ['with a size of 0x', (sent) => inChunks(`0x${chunked(sent)}${hidden}`)],
    ['with a size below zero', (sent) => inChunks(`-${chunked(sent)}${hidden}`)],
    ['with a size with a plus', (sent) => inChunks(`+${chunked(sent)}${hidden}`)],
    ['with a space before the size', (sent) => inChunks(` ${chunked(sent)}${hidden}`)],
    ['with no size', (sent) => inChunks(`\r\n${sent}\r\n0\r\n\r\n${hidden}`)],
    ['with a size that is not a number', (sent) => inChunks(`zz\r\n${sent}\r\n0\r\n\r\n${hidden}`)],
    [
      'with a size of 64 bits and more',
      (sent) => inChunks(`1000000000000000${size(sent)}\r\n${sent}${hidden}`),
    ],
    ['with a size that wraps to zero', (sent) => inChunks(`10000000000000000\r\n\r\n${hidden}${sent}`)],
    ['with a size behind NUL', (sent) => inChunks(`\0${chunked(sent)}${hidden}`)],
    ['with NUL behind the size', (sent) => inChunks(`${size(sent)}\0\r\n${sent}\r\n0\r\n\r\n${hidden}`)],
    ['longer than declared', (sent) => inChunks(`5\r\n${sent}\r\n0\r\n\r\n${hidden}`)],
    [
      'shorter than declared',
      (sent) => inChunks(`${(sent.length + 2).toString(16)}\r\n${sent}\r\n0\r\n\r\n${hidden}`),
    ],
    ['ended by a bare line feed', (sent) => inChunks(`${size(sent)}\r\n${sent}\n0\n\n${hidden}`)],
    [
      'whose size ends with a bare line feed',
      (sent) => inChunks(`${size(sent)}\n${sent}\r\n0\r\n\r\n${hidden}`),
    ],
    [
      'whose size ends with a bare carriage return',
      (sent) => inChunks(`${size(sent)}\r${sent}\r\n0\r\n\r\n${hidden}`),
    ],
    [
      'with a line feed in an extension',
      (sent) => inChunks(`${size(sent)};a\nb\r\n${sent}\r\n0\r\n\r\n${hidden}`),
    ],
    [
      'with a bare carriage return in an extension',
      (sent) => inChunks(`${size(sent)};a\rb\r\n${sent}\r\n0\r\n\r\n${hidden}`),
    ],
    ['with NUL in an extension', (sent) => inChunks(`${size(sent)};a\0b\r\n${sent}\r\n0\r\n\r\n${hidden}`)],
    [
      'with extensions of 20 kB',
      (sent) => inChunks(`${size(sent)};${'a'.repeat(20_000)}\r\n${sent}\r\n0\r\n\r\n${hidden}`),
    ],
    ['without the line at their end', (sent) => inChunks(`${chunk(sent)}0\r\n${hidden}`)],
    ['whose end is a bare line feed', (sent) => inChunks(`${chunk(sent)}0\r\n\n${hidden}`)],
    ['with a trailer that is not a header', (sent) => inChunks(`${chunk(sent)}0\r\nX\r\n\r\n${hidden}`)],
    [
      'with a length in a trailer',
      (sent) => inChunks(`${chunk(sent)}0\r\nContent-Length: 5\r\n\r\n${hidden}`),
    ],
    ['with a folded trailer', (sent) => inChunks(`${chunk(sent)}0\r\nX: a\r\n b\r\n\r\n${hidden}`)],
  ];
  it.each(cases)('%s are refused as one request', async (_what, make) => {
    await expectOneRefusal(make, [400, 413]);
  });
});

describe.concurrent('incomplete chunks', () => {
  it.each([
    ['that never end', (sent: string) => inChunks(chunk(sent))],
    ['of which the last lacks its line', (sent: string) => inChunks(`${chunk(sent)}0\r\n`)],
    ['with an incomplete one', (sent: string) => inChunks(`${(sent.length * 2).toString(16)}\r\n${sent}`)],
    ['of the largest size there is', (sent: string) => inChunks(`ffffffffffffffff\r\n${sent}${hidden}`)],
  ])('%s are 408 in time, and nothing is stored', async (_what, make) => {
    await expectOneRefusal(make, [408], impatient);
  });
});

describe('headers and request lines', () => {
  const plain = (line: string, headers: readonly string[]) => (sent: string) =>
    [line, ...headers, `Content-Length: ${sent.length + hidden.length}`, '', sent + hidden].join('\r\n');
  const post = 'POST /v1/data/tags HTTP/1.1';
  const host = 'Host: localhost';
  const cases: Case[] = [
    ['two Hosts', plain(post, [host, 'Host: elsewhere'])],
    ['the same Host twice', plain(post, [host, host])],
    ['two Hosts, one in capitals', plain(post, [host, 'HOST: elsewhere'])],
    ['no Host', plain(post, [])],
    ['a Host with a space before the colon', plain(post, ['Host : localhost'])],
    ['a Host on a folded line', plain(post, ['Host:', ' localhost'])],
    ['a Host folded into two', plain(post, [host, ' elsewhere'])],
    ['a header that starts with a space', plain(post, [` ${host}`])],
    ['a header without a colon', plain(post, [host, 'X'])],
    ['a header without a name', plain(post, [host, ': x'])],
    ['a header with a space in its name', plain(post, [host, 'Content Length: 5'])],
    ['a header with NUL in its name', plain(post, [host, 'X\0: a'])],
    ['a header with NUL in its value', plain(post, [host, 'X: a\0b'])],
    ['a header with a control character', plain(post, [host, 'X: a\x01b'])],
    ['a header with a bare line feed', plain(post, [host, 'X: a\nY: b'])],
    ['a header with a bare carriage return', plain(post, [host, 'X: a\rY: b'])],
    ['headers ended by bare line feeds', (sent) => plain(post, [host])(sent).replaceAll('\r', '')],
    ['headers ended by bare carriage returns', (sent) => plain(post, [host])(sent).replaceAll('\n', '')],
    [
      'a last header ended by a line feed alone',
      (sent) => `${post}\r\n${host}\r\nContent-Length: ${sent.length}\n\n${sent}${hidden}`,
    ],
    ['HTTP/0.9', () => `GET /health/live\r\n\r\n${hidden}`],
    ['HTTP/0.9, said', plain('POST /v1/data/tags HTTP/0.9', [host])],
    ['a version of three parts', plain('POST /v1/data/tags HTTP/1.1.1', [host])],
    ['a version in lower case', plain('POST /v1/data/tags http/1.1', [host])],
    ['a version that does not exist', plain('POST /v1/data/tags HTTP/1.9', [host])],
    ['a version of HTTP/2', plain('POST /v1/data/tags HTTP/2.0', [host])],
    ['a tab before the version', plain('POST /v1/data/tags\tHTTP/1.1', [host])],
    ['a space behind the version', plain(`${post} `, [host])],
    ['a line feed in the address', plain('POST /v1/data/tags\nX: HTTP/1.1', [host])],
    ['NUL in the address', plain('POST /v1/data/tags\0 HTTP/1.1', [host])],
    ['a method in lower case', plain('post /v1/data/tags HTTP/1.1', [host])],
    ['a tunnel', plain('CONNECT localhost:80 HTTP/1.1', [host])],
    ['an upgrade of HTTP', plain('PRI * HTTP/2.0', [])],
  ];
  it.each(cases)('with %s are refused as one request', async (_what, make) => {
    await expectOneRefusal(make, [400, 405, 505]);
  });
});

describe('a valid message is one request, whatever it resembles', () => {
  const length = (sent: string) => `Content-Length: ${sent.length}`;
  const close = 'Connection: close';
  const padded = (sent: string) => `${sent} ${' '.repeat(hidden.length)}`;
  it.each([
    [
      'names with underscores do not exist in HTTP',
      (sent: string) =>
        upload([length(sent), 'Content_Length: 5', 'Transfer_Encoding: chunked', close], sent),
    ],
    [
      'nor do names with dots, or longer ones',
      (sent: string) =>
        upload([length(sent), 'Content.Length: 5', 'X-Transfer-Encoding: chunked', close], sent),
    ],
    [
      'an extension of a chunk is skipped',
      (sent: string) => inChunks(`${sent.length.toString(16)};a=1\r\n${sent}\r\n0;b\r\n\r\n`, [close]),
    ],
    [
      'a trailer changes nothing about the request',
      (sent: string) =>
        inChunks(`${chunk(sent)}0\r\nX-Dry-Run: true\r\nAuthorization: none\r\n\r\n`, [close]),
    ],
    [
      'an absolute address is the address',
      (sent: string) =>
        upload([length(sent), close], sent).replace('/v1/data', 'http://elsewhere.example/v1/data'),
    ],
    [
      'an upgrade is not taken up',
      (sent: string) => upload([length(sent), 'Connection: close, Upgrade', 'Upgrade: h2c'], sent),
    ],
    [
      'two spaces in the request line are one',
      (sent: string) => upload([length(sent), close], sent).replace(' HTTP', '  HTTP'),
    ],
    ['a body may look like a request', (sent: string) => upload([length(padded(sent)), close], padded(sent))],
  ])('%s', async (_what, make) => {
    const tags = newTags();
    const sent = JSON.stringify({ records: tags });
    const { statuses, closed, text } = await exchangeBytes(server.url, make(sent));
    expect({ statuses, closed, text }).toMatchObject({ statuses: [200], closed: true });
    expect((await apiOf(server.url, key).batch('tags', tags)).counts.unchanged).toBe(1);
  });

  /** The last request closes the connection, so all responses have arrived once the connection is closed. */
  it('the body of a refused request is never read as the next one', async () => {
    const body = `Content-Length: ${hidden.length}`;
    const authorization = `Authorization: Bearer ${key}`;
    const requests: [status: number, line: string, headers: string[]][] = [
      [401, 'POST /v1/data/tags', []],
      [404, 'POST /nowhere', [authorization]],
      [405, 'PUT /v1/data/tags', [authorization]],
      [415, 'POST /v1/data/tags', [authorization, 'Content-Type: text/plain']],
      [200, 'GET /health/live', []],
    ];
    const last = 'GET /health/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    for (const [status, line, headers] of requests) {
      const head = [`${line} HTTP/1.1`, 'Host: localhost', ...headers, body, '', hidden].join('\r\n');
      const { statuses, closed } = await exchangeBytes(server.url, head + last);
      expect({ statuses, closed }).toEqual({ statuses: [status, 404], closed: true });
    }
  });

  it('after all that, there was no error of the service', async () => {
    await expectReady(server.url);
    expect(server.log.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
  });
});
