import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { Intake, type IntakeError } from '../src/index.ts';
import { limits } from '../src/limits.ts';
import { type Answer, json, startHostileServer } from './support/hostile-server.ts';
import { hasTerminal, runInTerminal } from './support/run-in-terminal.ts';
import { feedIntake, type Place, runIntake } from './support/run-intake.ts';

/** This file tests how the command and the library handle answers that are wrong, incomplete or in an unusual order. */

const key = 'intake_0123456789abcdef_secret';
let cwd: string;

beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'intake-faulty-'));
  return () => rmSync(cwd, { recursive: true });
});

async function start(answer: Answer) {
  const server = await startHostileServer(answer);
  onTestFinished(server.close);
  const place: Place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  return { ...server, place, intake: new Intake({ url: server.url, key }) };
}

function setLimit(name: keyof typeof limits, value: number): void {
  const before = limits[name];
  limits[name] = value;
  onTestFinished(() => {
    limits[name] = before;
  });
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Writes enough shops for this many requests. The command sends 2,000 records per request. */
function putShops(requests: number): void {
  const rows = Array.from({ length: 2_000 * requests }, () => `${randomUUID()},a,GB`);
  writeFileSync(join(cwd, 'shops.csv'), `shop_id,name,region\n${rows.join('\n')}\n`);
}

const counts = { received: 2_000, created: 2_000, updated: 0, unchanged: 0, stale: 0, failed: 0 };
const stored = json(200, {
  request_id: randomUUID(),
  batches: [{ status: 200, data: { counts, errors: [], warnings: [] } }],
});
const unauthorized = json(401, { code: 'unauthorized', message: 'no' });

/** Checks that the command reports a partly stored upload, and that the journal for --resume exists. */
async function expectResumable(place: Place): Promise<void> {
  const { exitCode, stderr } = await runIntake(place, 'upload', 'shops.csv');
  expect(exitCode).toBe(2);
  expect(stderr).toContain('Run the same command with --resume');
  expect(stderr).not.toContain('was stored');
  expect(existsSync(join(cwd, 'shops.csv.journal'))).toBe(true);
}

it('an upload of which a proxy refuses one request may be stored in part', async () => {
  putShops(3);
  let requests = 0;
  const refused = json(403, { error: 'blocked' });
  const { place } = await start((...exchange) => (++requests === 1 ? refused : stored)(...exchange));
  await expectResumable(place);
});

it('so may one of which Intake refuses the first request after it has stored the others', async () => {
  putShops(3);
  const held: (() => void)[] = [];
  let answered = 0;
  const { place } = await start((outgoing, incoming) => {
    if (held.length === 0) return void held.push(() => unauthorized(outgoing, incoming));
    stored(outgoing, incoming);
    if (++answered === 2) held[0]?.();
  });
  await expectResumable(place);
});

it('and one of which it stores the others afterwards', async () => {
  putShops(3);
  const held: (() => void)[] = [];
  let requests = 0;
  const { place } = await start((outgoing, incoming) => {
    if (++requests > 1) held.push(() => stored(outgoing, incoming));
    else unauthorized(outgoing, incoming);
    // Answer the held requests long after the refusal has arrived.
    if (requests === 3) setTimeout(() => held.forEach((answer) => void answer()), 300);
  });
  await expectResumable(place);
});

it('and one of which the first attempt had no answer', async () => {
  putShops(1);
  let requests = 0;
  const cut = (outgoing: ServerResponse) => void outgoing.socket?.destroy();
  const { place } = await start((...exchange) => (++requests === 1 ? cut : unauthorized)(...exchange));
  await expectResumable(place);
});

it('nothing is stored of an upload if Intake refuses the key each time', async () => {
  putShops(8);
  const { place, seen } = await start(unauthorized);
  const { stderr } = await runIntake(place, 'upload', 'shops.csv');
  expect(stderr).toContain('Nothing in shops.csv was stored.');
  expect(existsSync(join(cwd, 'shops.csv.journal'))).toBe(false);
  expect(seen.length).toBeGreaterThan(1);
});

/** The answer to an upload of 1,000 records per batch. Batches with status 500 are not stored. */
function answerOf(
  statuses: readonly number[],
  headers = {},
  code = 'not_stored',
  requestId: string = randomUUID(),
): Answer {
  const batches = statuses.map((status, batch) => {
    const [created, failed] = status === 500 ? [0, 1_000] : [1_000, 0];
    const errors = Array.from({ length: failed }, (_, at) => ({
      ...{ index: batch * 1_000 + at, id: null, field: null },
      ...{ code, message: 'a problem on our side' },
    }));
    const data = {
      counts: { ...counts, received: 1_000, created, failed },
      errors,
      warnings: [],
      error: 'no',
    };
    return { batch: batch + 1, status, data };
  });
  return json(new Set(statuses).size > 1 ? 207 : 200, { request_id: requestId, batches }, headers);
}

/** Longer than any request is retried. */
const retryLater = { 'retry-after': '3600' };
const away = { code: 'database_unavailable', message: 'The database is away. Nothing was stored.' };
const [isAway, isTooLarge] = [json(503, away, retryLater), json(413, { ...away, code: 'body_too_large' })];

/** Answers each upload with the next of these answers. */
async function startInTurn(...answers: Answer[]) {
  const keys: unknown[] = [];
  const started = await start((outgoing, incoming) => {
    if (incoming.method !== 'POST') return json(200, {})(outgoing, incoming);
    keys.push(incoming.headers['idempotency-key']);
    (answers.shift() ?? json(400, away))(outgoing, incoming);
  });
  return { ...started, keys };
}

const interaction = {
  ...{ interaction_type: 'SHARE', item_type: 'SHOP', item_id: randomUUID() },
  ...{ user_id: 'visitor', event_timestamp: 1 },
} as const;

it.each([
  ['the database is away', isAway],
  ['the request is too large for another process', isTooLarge],
])('a request that an attempt stored in part is unknown if then %s', async (_what, last) => {
  setLimit('backoffFirstMs', 1);
  const shop = { shop_id: randomUUID(), name: 'a', region: 'GB' };
  for (const type of ['interactions', 'shops']) {
    const { intake, keys } = await startInTurn(answerOf([200, 500]), last);
    const upload =
      type === 'shops'
        ? intake.upload(
            'shops',
            new Array(2_000).fill(0).map(() => ({ ...shop, shop_id: randomUUID() })),
          )
        : intake.interactions.upload(new Array(2_000).fill(interaction));
    const error: IntakeError = await upload.finish().then(
      () => expect.fail('it succeeded'),
      (thrown) => thrown,
    );
    expect(error).toMatchObject({ outcome: 'unknown', idempotencyKeys: [keys[0]] });
    expect(error.message).not.toContain('Nothing was stored');
    expect(keys).toEqual([keys[0], keys[0]]);
  }
});

it('records that an attempt stored are unknown if a later one reports them as not stored', async () => {
  setLimit('backoffFirstMs', 1);
  const { intake } = await startInTurn(answerOf([200, 200, 500]), answerOf([200, 500, 500], retryLater));
  const result = await intake.interactions.upload(new Array(3_000).fill(interaction)).finish();
  expect(result.counts).toMatchObject({ received: 3_000, created: 1_000, failed: 0, unknown: 2_000 });
});

it('records that no attempt stored count as failed', async () => {
  setLimit('backoffFirstMs', 1);
  const { intake } = await startInTurn(answerOf([200, 500]), answerOf([200, 500], retryLater));
  const result = await intake.interactions.upload(new Array(2_000).fill(interaction)).finish();
  expect(result.counts).toMatchObject({ received: 2_000, created: 1_000, failed: 1_000, unknown: 0 });
});

it.each([
  ['shops', 'no answer shows the rest', [answerOf([200, 500]), isAway]],
  ['interactions', 'no answer shows the rest', [answerOf([200, 500]), isAway]],
  ['interactions', 'the last answer shows it too', [answerOf([200, 500], retryLater)]],
])('the command resumes a request with %s that was stored in part, if %s', async (type, _what, answers) => {
  putShops(1);
  const rows = `${Object.values(interaction).join()}\n`.repeat(2_000);
  writeFileSync(join(cwd, 'interactions.csv'), `${Object.keys(interaction).join()}\n${rows}`);
  const { place, keys } = await startInTurn(...answers, answerOf([200, 200]));
  const first = await runIntake(place, 'upload', `${type}.csv`);
  expect(first).toMatchObject({ exitCode: 2, stdout: '' });
  expect(first.stderr).toContain('Run the same command with --resume');
  expect(first.stderr).not.toContain('was stored');
  const second = await runIntake(place, 'upload', `${type}.csv`, '--resume');
  expect(second.exitCode, second.stderr).toBe(0);
  expect(keys).toEqual(Array.from(keys, () => keys[0]));
  expect(keys).toHaveLength(answers.length + 1);
  expect(existsSync(join(cwd, `${type}.csv.journal`))).toBe(false);
});

it('the command does not count interactions from standard input as failed if they may be stored', async () => {
  const input = `${JSON.stringify(interaction)}\n`.repeat(2_000);
  const { place, keys } = await startInTurn(answerOf([200, 500], retryLater, 'outcome_unknown'));
  const { exitCode, stdout, stderr } = await feedIntake(
    place,
    input,
    'upload',
    '-',
    '--type',
    'interactions',
  );
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
  expect(stderr).toContain(`\n  intake requests --idempotency-key ${keys[0]}\n`);
  expect(existsSync(join(cwd, 'interactions.failed.ndjson'))).toBe(false);
});

it('it counts those as failed that are certainly not stored', async () => {
  const input = `${JSON.stringify(interaction)}\n`.repeat(2_000);
  const { place } = await startInTurn(answerOf([200, 500], retryLater));
  const { exitCode, stdout } = await feedIntake(place, input, 'upload', '-', '--type', 'interactions');
  expect(exitCode).toBe(1);
  expect(stdout).toContain('Correct them and upload either file');
  const failed = readFileSync(join(cwd, 'interactions.failed.ndjson'), 'utf8');
  expect(failed.trimEnd().split('\n')).toHaveLength(1_000);
});

it.each([
  [20, 'with the name history; nothing is stored twice'],
  [30, 'could be stored twice if they are uploaded again'],
])(
  'an upload that began %i hours ago reports until when the service knows its requests',
  async (hours, advice) => {
    const beganMs = Date.now() - hours * 3_600_000;
    const hex = beganMs.toString(16).padStart(12, '0');
    const id = `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(15)}`;
    const repeated = answerOf([200, 200, 200, 200, 200], {}, '', id);
    const { intake } = await start((outgoing, incoming) => {
      const isFirst = String(incoming.headers['idempotency-key']).endsWith('-0');
      (isFirst ? repeated : isAway)(outgoing, incoming);
    });
    const upload = intake.interactions.upload(new Array(5_001).fill(interaction), { name: 'history' });
    const error: IntakeError = await upload.finish().then(
      () => expect.fail('it succeeded'),
      (thrown) => thrown,
    );
    expect(error).toMatchObject({ outcome: 'unknown', idempotencyKeys: ['history-0'] });
    expect(error.message).toContain(new Date(beganMs + limits.keptForMs).toISOString());
    expect(error.message).toContain(advice);
  },
);

const busy = { batches: [], remaining: 1, next_cursor: 'here' };

it('a replay waits for its turn', async () => {
  setLimit('backoffFirstMs', 1);
  const done = { batches: [{ status: 200, data: { counts } }], remaining: 0, next_cursor: null };
  const bodies: object[] = [busy, busy, busy, busy, done];
  const { intake } = await start((...exchange) => json(200, bodies.shift())(...exchange));
  const answers = await collect(intake.rejections.replay());
  expect(answers.at(-1)).toEqual(done);
});

it('the command reports once that its replay waits for another one', async () => {
  const done = { batches: [{ status: 200, data: { counts } }], remaining: 0, next_cursor: null };
  const bodies: object[] = [busy, busy, done];
  const { place } = await start((...exchange) => json(200, bodies.shift())(...exchange));
  expect(await runIntake(place, 'rejections', 'replay')).toEqual({
    exitCode: 0,
    stdout: '2,000 tried: 2,000 passed, 0 failed again.\n',
    stderr: 'Another replay of this type is running. This one waits for its turn.\n',
  });
});

it('a replay that does not get its turn reports that another one is running', async () => {
  setLimit('backoffFirstMs', 1);
  const { intake, seen } = await start(json(200, busy));
  await expect(collect(intake.rejections.replay())).rejects.toMatchObject({
    code: 'replay_running',
    message: expect.stringMatching(/^Another replay of this type is still running/),
  });
  expect(seen).toHaveLength(limits.replayTurnsMax + 2);
});

it.each([
  { discarded: 'x', has_more: true },
  { discarded: 0, has_more: true },
  { discarded: -1, has_more: true },
  { has_more: true },
  {},
])('a removal that is answered with %j ends', async (body) => {
  let requests = 0;
  const { intake } = await start((...exchange) =>
    // Stop a client that would otherwise continue forever.
    json(++requests > 50 ? 400 : 200, body)(...exchange),
  );
  await expect(intake.rejections.discard()).rejects.toMatchObject({ code: 'unexpected_answer' });
  expect(requests).toBe(1);
});

it.each([
  ['rejections', { errors: 'no' }],
  ['rejections', { errors: [null] }],
  ['rejections', { errors: [{ field: null, message: { toString: 1 } }] }],
  ['requests', { counts: null }],
  ['requests', {}],
  ['erasures', { erasure_id: 1 }],
  ['erasures', { erasure_id: '1', state: 'swept', rows: { customers: '1' } }],
])('%s with %j inside are an error of the service', async (command, item) => {
  const { place } = await start(json(200, { [command]: [item], next_cursor: null }));
  expect(await runIntake(place, command)).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: `Error: The answer has no list of ${command}. Check the address and any proxy.\n`,
  });
});

it.skipIf(!hasTerminal)('an empty line does not confirm a removal, nor does a later one', async () => {
  const { place, seen } = await start(json(200, { discarded: 1, has_more: false }));
  const shown = await runInTerminal({ ...place, input: '\nyes\n' }, 'rejections', 'discard');
  expect(shown).toContain('Nothing was removed.');
  expect(seen).toEqual([]);
  const confirmed = await runInTerminal({ ...place, input: 'yes\n' }, 'rejections', 'discard');
  expect(confirmed).toContain('1 removed.');
});
