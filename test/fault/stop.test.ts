// @module-tag full

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { exchange } from '../support/exchange.ts';
import { holdUpload } from '../support/held-upload.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';

/** A stopping process finishes pending requests, and stores no data from requests that it does not answer. */

const rounds = 5;
const answeredPerRound = 50;
let databaseUrl: string;
let key: string;
let itemId: string;
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  const run = (...args: string[]) => runCommand(args, { DATABASE_URL: databaseUrl });
  await run('organisations', 'create', 'acme');
  key = JSON.parse((await run('keys', 'issue', '--organisation', 'acme', '--json')).stdout).key;
  const server = await start();
  itemId = randomUUID();
  await apiOf(server.url, key).batch('tags', [newTag({ tag_id: itemId })]);
  await server.stop();
});

let running: BuiltServer | undefined;
async function start(env: Record<string, string> = {}): Promise<BuiltServer> {
  running = await startBuiltServer({ DATABASE_URL: databaseUrl, STOP_TIMEOUT_MS: '60000', ...env });
  return running;
}
afterEach(() => running?.stop());

/** Stops the process, and returns the duration and the exit status. */
async function terminate({ process: child }: BuiltServer) {
  const ended = once(child, 'close');
  const began = performance.now();
  child.kill('SIGTERM');
  const [exitCode, signal] = await ended;
  return { exitCode, signal, ms: performance.now() - began };
}

/** Waits until the service has read everything sent so far. The service answers later requests only after that. */
async function untilRead({ url }: BuiltServer): Promise<void> {
  for (let request = 0; request < 3; request++) await apiOf(url).get('/health/live');
}

/** A request with a mark that identifies it in the database, whatever its result. */
interface Sent {
  readonly mark: string;
  readonly kind: 'upload' | 'interaction';
  /** The status of the response, or undefined if the connection failed. */
  status?: number;
  /** The Connection header. */
  connection?: string | undefined;
}

/** Sends requests one after another on the agent's connections, until no connection can be opened. */
async function keepSending(url: string, kind: Sent['kind'], agent: Agent, all: Sent[]): Promise<void> {
  for (let open = true; open; ) {
    const sent: Sent = { mark: randomUUID(), kind };
    all.push(sent);
    const upload = { records: many(20, (at) => newTag(at === 0 ? { tag_id: sent.mark } : {})) };
    const item = { item_type: 'TAG', item_id: itemId };
    const interaction = { interaction_type: 'SHARE', ...item, user_id: sent.mark, event_timestamp: 1 };
    try {
      const path = kind === 'upload' ? '/v1/data/tags' : '/user-interactions';
      const body = kind === 'upload' ? upload : interaction;
      const headers = { 'idempotency-key': sent.mark };
      const { status, headers: answered } = await exchange(url + path, { agent, key, body, headers });
      sent.status = status;
      sent.connection = answered.connection;
    } catch (error) {
      open = (error as { code?: string }).code !== 'ECONNREFUSED';
      // No part of the request was ever sent.
      if (!open) all.splice(all.indexOf(sent), 1);
    }
  }
}

/** Returns the marks found in the database, by table. */
async function stored() {
  const marks = async (statement: string) =>
    new Set((await queryDatabase<{ mark: string }>(databaseUrl, statement)).map(({ mark }) => mark));
  return {
    records: await marks('select tag_id::text as mark from tags'),
    receipts: await marks('select idempotency_key as mark from receipts where idempotency_key is not null'),
    uploadKeys: await marks('select idempotency_key as mark from upload_idempotency_keys'),
    interactions: await marks('select user_id as mark from interactions where user_id is not null'),
    interactionKeys: await marks('select idempotency_key as mark from interaction_idempotency_keys'),
  };
}

describe('SIGTERM', () => {
  it(`under load loses nothing that was answered and keeps nothing that was not, ${rounds} times`, async () => {
    const all: Sent[] = [];
    const outcome = { answered: 0, refused: 0, broken: 0, slow: 0, longestMs: 0 };
    for (let round = 0; round < rounds; round++) {
      const before = all.length;
      const server = await start();
      const agent = new Agent({ keepAlive: true });
      const load = (['upload', 'interaction'] as const).flatMap((kind) =>
        many(8, () => keepSending(server.url, kind, agent, all)),
      );
      const held = await Promise.all(
        many(4, () => holdUpload(server.url, key, 50_000, { heldBytes: 20_000 })),
      );
      const answered = () => all.filter(({ status }) => status !== undefined).length;
      await expect.poll(answered, { interval: 50 }).toBeGreaterThan(before + answeredPerRound);
      await sleep(round * 70);
      await untilRead(server);
      const ended = terminate(server);
      // A slow client may finish its request during the shutdown.
      await sleep(500);
      for (const one of held) one.finish();
      const answers = await Promise.all(held.map(({ answer }) => answer));
      expect(answers.map((answer) => answer?.status)).toEqual(many(4, () => 200));
      outcome.slow += answers.length;
      await Promise.all(load);
      // If the process had not stopped before its timeout, its exit code would not be 0.
      const { exitCode, signal, ms } = await ended;
      expect({ exitCode, signal }).toEqual({ exitCode: 0, signal: null });
      outcome.longestMs = Math.max(outcome.longestMs, Math.round(ms));
      const found = await stored();
      expect(held.filter(({ tagId }) => !found.records.has(tagId))).toEqual([]);
      agent.destroy();
    }
    const found = await stored();
    for (const { mark, kind, status, connection } of all) {
      const there = [
        found.records.has(mark),
        found.receipts.has(mark),
        found.uploadKeys.has(mark),
        found.interactions.has(mark),
        found.interactionKeys.has(mark),
      ];
      const good = status === (kind === 'upload' ? 200 : 201);
      const upload = good && kind === 'upload';
      const interaction = good && kind === 'interaction';
      expect({ mark, kind, status, there }).toEqual({
        mark,
        kind,
        status,
        there: [upload, upload, upload, interaction, interaction],
      });
      expect([200, 201, 503, undefined]).toContain(status);
      if (status === 503) expect(connection).toBe('close');
      outcome[good ? 'answered' : status === 503 ? 'refused' : 'broken']++;
    }
    console.log(`${rounds} stops under load:`, outcome);
    expect(outcome.answered).toBeGreaterThan(rounds * answeredPerRound);
  });

  it('interrupts requests that do not finish in time, reports it by its exit code, and stores nothing of them', async () => {
    const server = await start({ STOP_TIMEOUT_MS: '2000' });
    const held = await holdUpload(server.url, key, 50_000, { heldBytes: 20_000 });
    await untilRead(server);
    const { exitCode, signal, ms } = await terminate(server);
    expect({ exitCode, signal }).toEqual({ exitCode: 1, signal: null });
    expect(ms).toBeGreaterThanOrEqual(1_900);
    const answer = await held.answer;
    expect([undefined, 408, 503]).toContain(answer?.status);
    expect((await stored()).records.has(held.tagId)).toBe(false);
    const line = JSON.parse(server.log.at(-1)!);
    expect(line).toMatchObject({ level: 50, signal: 'SIGTERM', requests_cut_short: 1 });
    expect(line.duration_ms).toBeGreaterThanOrEqual(1_900);
    expect(line.msg).toMatch(/^stopped; .*interrupted$/);
  });

  it('twice does not interrupt what the first lets finish', async () => {
    const server = await start();
    const held = await holdUpload(server.url, key, 50_000, { heldBytes: 20_000 });
    await untilRead(server);
    const ended = terminate(server);
    await sleep(200);
    server.process.kill('SIGTERM');
    await sleep(200);
    held.finish();
    expect((await held.answer)?.status).toBe(200);
    expect(await ended).toMatchObject({ exitCode: 0, signal: null });
  });
});

it('a stopping process accepts no new connection', async () => {
  const server = await start();
  const held = await holdUpload(server.url, key, 50_000, { heldBytes: 20_000 });
  await untilRead(server);
  const ended = terminate(server);
  const connect = () =>
    exchange(`${server.url}/health/live`, { agent: false }).catch(({ code }: { code: string }) => code);
  await expect.poll(connect).toMatch(/^ECONN/);
  held.finish();
  expect((await held.answer)?.status).toBe(200);
  await ended;
});
