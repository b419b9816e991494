// @module-tag full

import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { Intake } from '../src/index.ts';
import { limits } from '../src/limits.ts';
import { type Answer, endless, json, startHostileServer } from './support/hostile-server.ts';
import { hasTerminal, runInTerminal } from './support/run-in-terminal.ts';
import { type Ended, type Place, runIntake } from './support/run-intake.ts';

/** This file tests what a broken or malicious server can do to the library and the command. */

const key = 'intake_0123456789abcdef_secret';
let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'intake-hostile-'));
  return () => rmSync(cwd, { recursive: true });
});

const shop = { shop_id: randomUUID(), name: 'a', region: 'GB' };
const interaction = {
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id: randomUUID(),
  event_timestamp: 1,
} as const;
const put = (name: string, text: string) => writeFileSync(join(cwd, name), text);

async function start(answer: Answer) {
  const server = await startHostileServer(answer);
  onTestFinished(server.close);
  const place: Place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  return { ...server, place, intake: new Intake({ url: server.url, key }) };
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/**
 * This text sets the title, clears the screen with one-byte and two-byte escapes, reverses the text direction, and starts a
 * new line.
 */
const nasty = 'nice\u001b]0;owned\u0007\u009b2J\u001b[2J\u202egnp.exe\u2028\rOk\nError: all is well';
const escapedNasty =
  'nice\\u001b]0;owned\\u0007\\u009b2J\\u001b[2J\\u202egnp.exe\\u2028\\u000dOk\\u000aError: all is well';
const unsafe = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u;

function expectHarmless({ stdout, stderr }: Omit<Ended, 'exitCode'>): void {
  for (const line of `${stdout}\n${stderr}`.split('\n')) expect(line).not.toMatch(unsafe);
}

const types = { types: [{ type: nasty, records: 1, open_rejections: 0, last_upload: nasty }] };
const counts = { received: 1, created: 0, updated: 0, unchanged: 0, stale: 0, failed: 1 };
const failedUpload = {
  request_id: nasty,
  batches: [
    {
      status: 400,
      data: {
        counts,
        errors: [{ index: 0, field: '__proto__', code: 'reference_not_found', message: nasty }],
        warnings: [{ field: nasty, code: nasty, message: nasty, count: 1 }],
      },
    },
  ],
};

it('no escape sequence or line of a service gets through', async () => {
  const error = {
    code: 'invalid_request',
    message: nasty,
    permission: nasty,
    details: [{ field: nasty, code: nasty, message: nasty }],
  };
  // This is the only unsafe character that can occur in a header.
  const wrong = await start(json(400, error, { 'x-request-id': 'a\u009b2Jb' }));
  for (const args of [['status'], ['export', 'shops']]) {
    const ended = await runIntake(wrong.place, ...args);
    expectHarmless(ended);
    expect(ended).toMatchObject({ exitCode: 2, stdout: '' });
    expect(ended.stderr.split('\n')).toEqual([
      `Error: ${escapedNasty}`,
      `  ${escapedNasty} ${escapedNasty}`,
      'Request id: a\\u009b2Jb',
      '',
    ]);
  }
});

it('nor does one in a table or a summary, and JSON for a program stays exact', async () => {
  const good = await start(json(200, types));
  const shown = await runIntake(good.place, 'status');
  expectHarmless(shown);
  expect(shown.stdout).toContain(escapedNasty);
  const { stdout } = await runIntake(good.place, 'status', '--json');
  expect(JSON.parse(stdout)).toEqual(types.types);
  put('shops.csv', `shop_id,name,region\n${randomUUID()},a,GB\n`);
  const failing = await start(json(400, failedUpload));
  const summary = await runIntake(failing.place, 'upload', 'shops.csv');
  expectHarmless(summary);
  expect(summary).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^This service is of an older release.*\n$/),
  });
  expect(summary.stdout).toContain(escapedNasty);
});

it('nor one in a file or its name', async () => {
  const away = await start(json(200, {}));
  const name = 'shops-\u001b[2J.csv';
  put(name, `shop_id,name,region,"remark\u009b2J\nError: all is well"\n${randomUUID()},,GB,x\n`);
  const checked = await runIntake(away.place, 'check', name);
  expectHarmless(checked);
  expect(checked.exitCode).toBe(1);
  expect(checked.stderr.match(/^Error/m)).toBeNull();
  expect(checked.stderr).toContain('remark\\u009b2J\\u000aError: all is well');
  put(name, `shop_idd,name,"named\nError: all is well"\n`);
  const refused = await runIntake(away.place, 'check', name, '--map', 'named\nError: all is well=name');
  expectHarmless(refused);
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr.match(/^Error/gm)).toHaveLength(1);
});

it.skipIf(!hasTerminal)('a terminal gets them escaped, a file gets the bytes', async () => {
  const lines = `${JSON.stringify({ shop_id: randomUUID(), name: `\u009b2J\u202e${nasty}` })}\n`;
  const server = await start((outgoing) =>
    outgoing.writeHead(200, { 'content-type': 'application/x-ndjson' }).end(lines),
  );
  expect((await runIntake(server.place, 'export', 'shops')).stdout).toBe(lines);
  expect((await runIntake(server.place, 'export', 'shops', '--format', 'csv')).stdout).toContain(nasty);
  for (const format of ['ndjson', 'csv']) {
    const shown = await runInTerminal(server.place, 'export', 'shops', '--format', format);
    expect(shown.replaceAll(/\r?\n/g, '')).not.toMatch(unsafe);
    expect(shown).toContain('\\u009b2J\\u202e');
  }
  const failing = await start(json(400, { code: 'invalid_request', message: nasty }));
  const said = await runInTerminal(failing.place, 'status');
  expect(said).toContain('\u001b[31mError:\u001b[39m');
  expect(said.replace('\u001b[31m', '').replace('\u001b[39m', '').replaceAll(/\r\n/g, '')).not.toMatch(
    unsafe,
  );
});

it.each<[string, Answer]>([
  ['JSON', endless('application/json', ' '.repeat(65_536))],
  ['text', endless('text/html', 'x'.repeat(65_536))],
  ['an error', endless('application/json', ' '.repeat(65_536), 400)],
  ['a line', endless('application/x-ndjson', 'x'.repeat(65_536))],
])('an endless answer of %s ends with an error', async (_what, answer) => {
  const { intake } = await start(answer);
  const failure = { message: expect.stringMatching(/^The (answer|export) .* (than \d+ (bytes|characters))/) };
  await expect(intake.data.overview()).rejects.toMatchObject(failure);
  await expect(collect(intake.data.list('shops'))).rejects.toMatchObject(failure);
});

it('the command reports an endless answer', async () => {
  const { place } = await start(endless('application/x-ndjson', 'x'.repeat(65_536)));
  const { exitCode, stdout, stderr } = await runIntake(place, 'export', 'shops');
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  expect(stderr).toMatch(/^Error: The (answer|export) .* (than \d+ (bytes|characters))/);
});

it('so do endless headers, and an answer that trickles', async () => {
  const headers = await start((outgoing) => {
    const { socket } = outgoing;
    socket?.write('HTTP/1.1 200 OK\r\n');
    const send = () => {
      while (socket?.writable && socket.write(`x-more: ${'x'.repeat(8_000)}\r\n`));
    };
    socket?.on('drain', send).on('error', () => {});
    send();
  });
  const once = { key, retryForMs: 0 };
  await expect(new Intake({ url: headers.url, ...once }).data.overview()).rejects.toMatchObject({
    code: 'connection_failed',
  });
  const { attemptTimeoutMs } = limits;
  limits.attemptTimeoutMs = 300;
  onTestFinished(() => {
    limits.attemptTimeoutMs = attemptTimeoutMs;
  });
  for (const type of ['application/json', 'application/x-ndjson']) {
    const trickling = await start((outgoing) => {
      outgoing.writeHead(200, { 'content-type': type });
      const timer = setInterval(() => outgoing.write(' '), 20);
      outgoing.on('close', () => clearInterval(timer));
    });
    const intake = new Intake({ url: trickling.url, ...once });
    const failure = expect.objectContaining({ code: 'connection_failed' });
    if (type === 'application/json') await expect(intake.data.overview()).rejects.toEqual(failure);
    else await expect(collect(intake.data.list('shops'))).rejects.toEqual(failure);
  }
});

it('a redirect is not followed, so the key stays here', async () => {
  const other = await start(json(200, types));
  for (const status of [301, 302, 303, 307, 308]) {
    const { intake, seen } = await start((outgoing) =>
      outgoing.writeHead(status, { location: `${other.url}/v1/data` }).end(),
    );
    const failure = { code: 'unexpected_answer', status };
    await expect(intake.data.overview()).rejects.toMatchObject(failure);
    await expect(collect(intake.data.list('shops'))).rejects.toMatchObject(failure);
    await expect(intake.upload('shops', [shop]).finish()).rejects.toMatchObject(failure);
    expect(seen).toHaveLength(3);
  }
  expect(other.seen).toEqual([]);
});

it('pages and exports that repeat themselves end', async () => {
  let count = 0;
  const page = () => ({
    requests: [],
    rejections: [],
    interactions: [],
    batches: [],
    next_cursor: ['a', 'b', 'c'][++count % 3],
  });
  const { intake, seen } = await start((outgoing, incoming) => json(200, page())(outgoing, incoming));
  const lists: AsyncIterable<unknown>[] = [
    intake.requests.list(),
    intake.rejections.list(),
    intake.rejections.replay(),
    intake.interactions.list(),
  ];
  for (const list of lists) await expect(collect(list)).rejects.toMatchObject({ code: 'unexpected_answer' });
  expect(seen.length).toBeLessThan(60);
  const line = `${JSON.stringify({ shop_id: randomUUID() })}\n`;
  const repeating = await start(endless('application/x-ndjson', line));
  await expect(collect(repeating.intake.data.list('shops'))).rejects.toMatchObject({
    code: 'unexpected_answer',
  });
});

it('a refused key has stored nothing, and the upload reports that', async () => {
  const { place } = await start(json(401, { code: 'unauthorized', message: 'no' }));
  put('shops.csv', `shop_id,name,region\n${randomUUID()},a,GB\n`);
  const { exitCode, stderr } = await runIntake(place, 'upload', 'shops.csv');
  expect(exitCode).toBe(2);
  expect(stderr).toBe(
    'Error: The service does not accept the API key. Run intake login, or correct INTAKE_KEY.\nNothing in shops.csv was stored.\n',
  );
  // A journal would contain the old key's id, which is useless because the next attempt will use a different key.
  expect(existsSync(join(cwd, 'shops.csv.journal'))).toBe(false);
});

it('a Retry-After of years ends the request instead', async () => {
  for (const after of ['100000000', 'Infinity', '1e300']) {
    const { intake, seen } = await start(
      json(503, { code: 'overloaded', message: 'no' }, { 'retry-after': after }),
    );
    await expect(intake.data.overview()).rejects.toMatchObject({ status: 503 });
    expect(seen).toHaveLength(1);
  }
});

it('an unexpected answer is an error of the service, not of the program', async () => {
  const bodies = [null, [], {}, 'text', { batches: [null] }, { batches: [{ status: 200 }] }, { types: 1 }];
  for (const body of bodies) {
    const { intake } = await start(json(200, body));
    const calls: (() => Promise<unknown>)[] = [
      () => intake.data.overview(),
      () => collect(intake.data.list('shops')),
      () => intake.upload('shops', [shop]).finish(),
      () => collect(intake.requests.list()),
      () => intake.rejections.summary(),
      () => collect(intake.rejections.list()),
      () => collect(intake.rejections.replay()),
      () => collect(intake.interactions.list()),
      () => collect(intake.changes()),
      () => collect(intake.reports.recommendations()),
      () => intake.interactions.upload([interaction]).finish(),
      () => intake.record(interaction),
      () => Promise.all([intake.record(interaction), intake.record(interaction)]),
    ];
    for (const call of calls)
      await expect(call(), `${call} of ${JSON.stringify(body)}`).rejects.toMatchObject({
        code: 'unexpected_answer',
      });
  }
  const { place } = await start(json(200, {}));
  expect((await runIntake(place, 'status')).stderr).toBe(
    'Error: The answer has no list of types. Check the address and any proxy.\n',
  );
});

it('interactions of a batch with an invalid answer each fail', async () => {
  const good = {
    counts: { ...counts, received: 2 },
    errors: [],
    warnings: [],
    interaction_ids: [null, null],
  };
  const id = randomUUID();
  for (const data of [
    { ...good, interaction_ids: [id] },
    { ...good, interaction_ids: [id, nasty] },
    { ...good, interaction_ids: [id, 7] },
    { ...good, interaction_ids: 'ab' },
    { ...good, interaction_ids: undefined },
    { ...good, errors: [{ index: 'x' }] },
    { ...good, errors: [null] },
    good,
  ]) {
    const { intake } = await start(json(200, { request_id: id, batches: [{ status: 200, data }] }));
    const results = await Promise.allSettled([intake.record(interaction), intake.record(interaction)]);
    const failure = { status: 'rejected', reason: { code: 'unexpected_answer' } };
    expect(results, JSON.stringify(data)).toMatchObject([failure, failure]);
  }
});

it('an index that was not sent is not looked up', async () => {
  for (const index of [-1, 0.5, 1, 1e15, '0', null]) {
    const { data, ...batch } = failedUpload.batches[0]!;
    const errors = [{ ...data.errors[0]!, index }];
    const { intake } = await start(json(400, { batches: [{ ...batch, data: { ...data, errors } }] }));
    await expect(intake.upload('shops', [shop]).finish()).rejects.toMatchObject({
      code: 'unexpected_answer',
    });
  }
});
