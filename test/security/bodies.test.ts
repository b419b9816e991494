// @module-tag full
// @module-tag long

import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Answer, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { exchangeBytes } from '../support/exchange-bytes.ts';
import { expectError } from '../support/expect-error.ts';
import { expectInTime } from '../support/in-time.ts';
import { forgetPeak, residentMegabytes } from '../support/process-state.ts';
import { rawPost, sendRaw } from '../support/raw-http.ts';
import { type Served, startSteadyClient } from '../support/steady-client.ts';

/**
 * Tests bodies that try to exhaust memory or CPU time. In the meantime, another organisation's client uploads one
 * record after another and must be served as usual.
 *
 * The memory limit follows from the largest body, which is 32 MiB. While its buffer doubles, both copies exist. The old
 * buffer waits for the garbage collector, and the parsed form may be several times as large, so one body may take 12
 * times its size. A body that is refused before parsing may take 5 times its size.
 */
const bodyMegabytes = 32;
const bodyBytesMax = bodyMegabytes * 1024 * 1024;
const refusedMegabytesMax = 5 * bodyMegabytes;
const parsedMegabytesMax = 12 * bodyMegabytes;
/** A neighbour may be slower on a busy machine. Beyond this limit, the service counts as unavailable to the neighbour. */
const neighbourMsMax = 4_000;

let server: BuiltServer;
let key: string;
let othersKey: string;
beforeAll(async () => {
  server = await startBuiltServer();
  key = await server.createKey('acme');
  othersKey = await server.createKey('other');
  // The cost of lazy initialisation should not count as part of the attack.
  await post(JSON.stringify({ records: [{ name: 'x'.repeat(1_000_000) }] }));
});
afterAll(async () => {
  await server.stop();
  expect(server.log.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
});
/**
 * Sends bodies that were built earlier, because building them would delay the neighbour in the same process. A busy
 * machine can only delay garbage collection, so one good attempt out of three is enough.
 */
async function attack(megabytesMax: number, send: () => Promise<void>): Promise<void> {
  let megabytes = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 3 && megabytes >= megabytesMax; attempt++)
    await expectInTime(async () => {
      const attacked = await attackOnce(send);
      ({ megabytes } = attacked);
      return [{ what: 'the neighbour', ms: attacked.slowestMs, promisedMs: neighbourMsMax }];
    });
  expect(megabytes).toBeLessThan(megabytesMax);
}

async function attackOnce(send: () => Promise<void>): Promise<{ slowestMs: number; megabytes: number }> {
  forgetPeak(server.process.pid);
  const before = residentMegabytes(server.process.pid, 'VmRSS');
  const neighbour = startSteadyClient(server.url, othersKey);
  let served: Served;
  try {
    await send();
  } finally {
    served = await neighbour.stop();
  }
  expect(Object.keys(served.statuses)).toEqual(['200']);
  const megabytes = residentMegabytes(server.process.pid, 'VmHWM') - before;
  return { slowestMs: served.slowestMs, megabytes };
}

function post(
  body: string | Buffer,
  headers: readonly string[] = [],
  path = '/v1/data/tags',
): Promise<Answer> {
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  return sendRaw(server.url, rawPost(path, [...usual(), length, ...headers], body));
}

const usual = () => [`Authorization: Bearer ${key}`, 'Content-Type: application/json'];
const coded = (coding: string) => [`Content-Encoding: ${coding}`];
const tag = (extra = '') => `{"records":[{"tag_id":"${randomUUID()}","name":"x"${extra}}]}`;

describe('bombs', () => {
  // Each body expands to 256 MB. If bodies were fully decompressed, one of them would exceed the memory limit for one
  // body, and four of them would exceed the limit for four.
  const part = Buffer.alloc(8 * 1024 * 1024);
  const times = 32;
  const repeat = (bytes: Buffer) => Buffer.concat(Array<Buffer>(times).fill(bytes));
  /** Independent blocks, which can be repeated in one stream. */
  const blocks = repeat(deflateRawSync(part, { level: 9, finishFlush: constants.Z_FULL_FLUSH }));
  const members = repeat(gzipSync(part));
  const whole = () => Buffer.alloc(times * part.length);
  const fastBrotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
  const bombs: [what: string, coding: string, make: () => Buffer][] = [
    ['gzip', 'gzip', () => Buffer.concat([Buffer.from('1f8b0800000000000003', 'hex'), blocks])],
    ['gzip of 32 members', 'gzip', () => members],
    ['deflate', 'deflate', () => Buffer.concat([Buffer.from('789c', 'hex'), blocks])],
    ['brotli', 'br', () => brotliCompressSync(whole(), fastBrotli)],
    ['zstd', 'zstd', () => zstdCompressSync(whole())],
  ];

  it.each(bombs)('of %s are 413, one after the other and four at once', async (_what, coding, make) => {
    const bomb = make();
    expect(bomb.length).toBeLessThan(4 * 1024 * 1024);
    await attack(refusedMegabytesMax, async () => {
      for (const path of ['/v1/data/tags', '/user-interactions'])
        expectError(await post(bomb, coded(coding), path), 413);
    });
    await attack(4 * refusedMegabytesMax, async () => {
      const answers = await Promise.all(Array.from({ length: 4 }, () => post(bomb, coded(coding))));
      for (const answer of answers) expectError(answer, 413);
    });
  });

  it('within bombs are not opened twice', async () => {
    const twice = gzipSync(members);
    await attack(refusedMegabytesMax, async () => {
      for (const coding of ['gzip, gzip', 'gzip,gzip,gzip', 'gzip, br', 'br, gzip', 'gzip, identity'])
        expectError(await post(twice, coded(coding)), 415);
      expectError(await post(twice, [...coded('gzip'), ...coded('gzip')]), 415);
      expectError(await post(twice, coded('gzip')), 400);
    });
  });

  it('that are not bombs, of several members, are accepted', async () => {
    const sent = tag();
    const members = [sent.slice(0, 20), sent.slice(20)].map((text) => gzipSync(text));
    expect((await post(Buffer.concat(members), coded('gzip'))).status).toBe(200);
  });
});

describe('bodies of 32 MiB', () => {
  const padded = (bytes: number) => Buffer.from(tag().padEnd(bytes, ' '));
  const codings: [string, (bytes: Buffer) => Buffer][] = [
    ['identity', (bytes) => bytes],
    ['gzip', (bytes) => gzipSync(bytes, { level: 1 })],
    ['deflate', (bytes) => deflateSync(bytes, { level: 1 })],
    ['br', (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
    ['zstd', (bytes) => zstdCompressSync(bytes)],
  ];
  it.each(codings)('in %s are accepted, and with one byte more they are 413', async (coding, compress) => {
    const [largest, tooLarge] = [compress(padded(bodyBytesMax)), compress(padded(bodyBytesMax + 1))];
    await attack(parsedMegabytesMax, async () => {
      expect((await post(largest, coded(coding))).status).toBe(200);
      expectError(await post(tooLarge, coded(coding)), 413);
    });
  });

  it('and one byte, in chunks, are 413', async () => {
    const bytes = padded(bodyBytesMax + 1);
    const head = rawPost('/v1/data/tags', [...usual(), 'Transfer-Encoding: chunked']);
    const size = Buffer.from(`${bytes.length.toString(16)}\r\n`);
    const request = Buffer.concat([head, size, bytes, Buffer.from('\r\n0\r\n\r\n')]);
    await attack(refusedMegabytesMax, async () => expectError(await sendRaw(server.url, request), 413));
  });
});

describe('bodies that are nested', () => {
  const arrays = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  const objects = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const mixed = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${'}]'.repeat(levels / 2)}`;
  const deep = 100_000;
  const cases: [what: string, make: () => string][] = [
    ['arrays as the body', () => arrays(deep)],
    ['objects as the body', () => objects(deep)],
    ['arrays that are not closed', () => '['.repeat(deep)],
    ['objects that are not closed', () => '{"a":'.repeat(deep)],
    ['arrays as records', () => `{"records":${arrays(deep)}}`],
    ['arrays as a record', () => `{"records":[${arrays(deep)}]}`],
    ['objects as a record', () => `{"records":[${objects(deep)}]}`],
    ['arrays in a field', () => `{"records":[{"tag_id":"${randomUUID()}","name":${arrays(deep)}}]}`],
    ['objects in an unknown field', () => tag(`,"more":${objects(deep)}`)],
    ['both by turns in an unknown field', () => tag(`,"more":${mixed(deep)}`)],
    ['arrays next to the records', () => `{"more":${arrays(deep)},${tag().slice(1)}`],
    ['arrays behind a string with an escaped quote', () => tag(`,"q":"\\\\\\"","more":${arrays(deep)}`)],
    ['arrays behind a string that ends with a backslash', () => tag(`,"q":"\\\\","more":${arrays(deep)}`)],
    ['arrays in an interaction', () => `{"interaction_type":"SHARE","city":${arrays(deep)}}`],
    ['16 million arrays', () => arrays(16_000_000)],
  ];
  const codings: [string, (text: string) => Buffer][] = [
    ['identity', (text) => Buffer.from(text)],
    ['gzip', (text) => gzipSync(text)],
    ['br', (text) => brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } })],
    ['zstd', (text) => zstdCompressSync(text)],
    ['deflate', (text) => deflateSync(text)],
  ];

  /**
   * Checks that the body was refused: an upload reports a failed record, an interaction is too large (413), or the whole
   * request is invalid (400).
   */
  function expectRefused(answer: Answer): void {
    const failed = { status: 400, body: { batches: [{ data: { counts: { failed: 1 } } }] } };
    const { batches, details } = answer.body;
    if (batches) expect(answer).toMatchObject(failed);
    else if (answer.status === 413) expectError(answer, 413);
    else expectError(answer, 400, details && [details[0].field]);
  }

  it.each(cases)('100,000 levels deep, %s, are refused', async (_what, make) => {
    const text = make();
    await attack(refusedMegabytesMax, async () => {
      for (const path of ['/v1/data/tags', '/user-interactions']) {
        expectRefused(await post(text, [], path));
        expectRefused(await post(text, [`Idempotency-Key: ${randomUUID()}`], path));
      }
      expectRefused(await post(text, [], '/v1/data/tags?dry_run=true'));
    });
  });

  // Nesting is detected in the decoded text, which is the same in every encoding.
  it('are refused in every coding', async () => {
    const text = tag(`,"more":${mixed(deep)}`);
    const bodies = codings.map(([coding, compress]) => [coded(coding), compress(text)] as const);
    await attack(refusedMegabytesMax, async () => {
      for (const path of ['/v1/data/tags', '/user-interactions'])
        for (const [headers, body] of bodies) expectRefused(await post(body, headers, path));
    });
  });

  it('32 levels deep are accepted, and one more fails the record, not its neighbours', async () => {
    // The body, its list of records and the record itself are three levels.
    for (const nest of [arrays, objects]) {
      expect((await post(tag(`,"more":${nest(29)}`))).status).toBe(200);
      const [good, deeper] = [tag(), tag(`,"more":${nest(30)}`)].map((body) => body.slice(12, -2));
      const { status, body } = await post(`{"records":[${good},${deeper},${good}]}`);
      expect(status).toBe(207);
      const { counts, errors } = body.batches[0].data;
      expect(counts).toMatchObject({ received: 3, failed: 1 });
      expect(errors).toEqual([
        {
          index: 1,
          id: JSON.parse(deeper!).tag_id,
          field: null,
          code: 'nested_too_deeply',
          message: expect.stringMatching(/flat/),
        },
      ]);
    }
  });

  it('outside the records, one level more than 32 is 400 for all', async () => {
    expect((await post(`{"more":${arrays(31)},${tag().slice(1)}`)).status).toBe(200);
    const refused = await post(`{"more":${arrays(32)},${tag().slice(1)}`);
    expectError(refused, 400);
    expect(refused.body.message).toMatch(/nested/);
  });

  it('only within a string, or side by side, are not nested', async () => {
    for (const text of ['['.repeat(900), '{'.repeat(900), '\\"['.repeat(200), `\\\\\\"${'{'.repeat(100)}`])
      expect((await post(`{"records":[{"tag_id":"${randomUUID()}","name":"${text}"}]}`)).status).toBe(200);
    expect((await post(tag(`,"more":[${'[],'.repeat(1_000)}[]]`))).status).toBe(200);
  });
});

describe('names and values of many megabytes', () => {
  const long = 'k'.repeat(30 * 1024 * 1024);
  const many = () => Array.from({ length: 300_000 }, (_, at) => `"k${at}":${at}`).join();
  it.each([
    ['a name of 30 MB', 400, () => tag(`,"${long}":1`)],
    ['a value of 30 MB that is ignored', 400, () => tag(`,"more":"${long}"`)],
    ['a value of 30 MB', 400, () => `{"records":[{"tag_id":"${randomUUID()}","name":"${long}"}]}`],
    ['an id of 30 MB', 400, () => `{"records":[{"tag_id":"${long}","name":"x"}]}`],
    ['a number of 30 MB', 400, () => tag(`,"more":${'9'.repeat(long.length)}`)],
    ['300,000 names', 400, () => tag(`,${many()}`)],
    ['a name of 30 MB next to the records', 400, () => `{"${long}":1}`],
  ] as [string, number, () => string][])('%s is %i, and the answer is short', async (_what, status, make) => {
    const body = make();
    await attack(parsedMegabytesMax, async () => {
      const answer = await post(body);
      const short = JSON.stringify(answer.body).length < 10_000;
      expect({ status: answer.status, short }).toEqual({ status, short: true });
    });
  });
});

describe('bodies that arrive in unusual ways', () => {
  it('a byte per chunk they are accepted, and cost no more than others', async () => {
    const bytes = 1024 * 1024;
    const sent = tag();
    const request = Buffer.concat([
      rawPost('/v1/data/tags', [...usual(), 'Transfer-Encoding: chunked']),
      Buffer.from(`${sent.length.toString(16)}\r\n${sent}\r\n`),
      Buffer.alloc(bytes * 6, '1\r\n \r\n'),
      Buffer.from('0\r\n\r\n'),
    ]);
    await attack(refusedMegabytesMax, async () => {
      expect((await sendRaw(server.url, request)).status).toBe(200);
    });
  });

  it('a byte per packet they are accepted', async () => {
    const sent = tag();
    const request = rawPost(
      '/v1/data/tags',
      [...usual(), `Content-Length: ${sent.length}`, 'Connection: close'],
      sent,
    );
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname).setNoDelay();
    const answer = socket.toArray();
    for (const byte of request) await new Promise((resolve) => socket.write(Buffer.from([byte]), resolve));
    expect(Buffer.concat(await answer).toString()).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('longer than declared they are 400, and the rest is not a request', async () => {
    const sent = tag();
    const bytes = rawPost('/v1/data/tags', [...usual(), `Content-Length: ${sent.length - 5}`], sent);
    const { statuses, closed } = await exchangeBytes(server.url, bytes);
    expect(new Set(statuses)).toEqual(new Set([400]));
    expect(closed).toBe(true);
  });

  it('shorter than declared they are 408 in time, and nothing is stored', async () => {
    const sent = tag();
    const bytes = rawPost('/v1/data/tags', [...usual(), `Content-Length: ${sent.length + 5}`], sent);
    const timeouts = { REQUEST_TIMEOUT_MS: '3000', HEADERS_TIMEOUT_MS: '3000' };
    const impatient = await startBuiltServer({ DATABASE_URL: server.databaseUrl, ...timeouts });
    const { statuses, closed } = await exchangeBytes(impatient.url, bytes).finally(impatient.stop);
    expect({ statuses, closed }).toEqual({ statuses: [408], closed: true });
    const { records } = JSON.parse(sent);
    expect((await apiOf(server.url, key).batch('tags', records)).counts.created).toBe(1);
  });

  it('interrupted they store nothing', async () => {
    const sent = tag();
    for (const length of [sent.length + 5, bodyBytesMax]) {
      const bytes = rawPost('/v1/data/tags', [...usual(), `Content-Length: ${length}`], sent);
      const { hostname, port } = new URL(server.url);
      const socket = connect(Number(port), hostname, () => socket.end(bytes));
      const said = Buffer.concat(await socket.on('error', () => {}).toArray()).toString();
      expect(said).not.toMatch(/^HTTP\/1\.1 [25]/);
    }
    const { records } = JSON.parse(sent);
    expect((await apiOf(server.url, key).batch('tags', records)).counts.created).toBe(1);
  });
});
