// @module-tag full

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { connectionsTo, forgetPeak, residentMegabytes } from '../support/process-state.ts';
import { queryDatabase } from '../support/query-database.ts';
import { startSteadyClient } from '../support/steady-client.ts';

/** Clients that ask for much and read nothing. A neighbour must be answered sooner than their connections are ended. */

function openTo(url: string): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname)
    .setNoDelay()
    .on('error', () => {});
}

describe('those who do not read what they asked for', () => {
  const records = 75_000;
  /** An export of these is some 22 MB; one answer and one query in flight for each reader are a few of them. */
  const readers = 30;
  const growthMaxMb = 300;
  /** With room to spare, V8 leaves garbage where it is: 200 to 380 MB of it. With little, growth is what is held. */
  const NODE_OPTIONS = '--max-old-space-size=192';
  /**
   * Longer than a neighbour waits for its answer, for nothing moves on its connection meanwhile. On a machine that others
   * slow down it may wait longer than the first, so one of the three is enough.
   */
  const idles = [2_500, 10_000, 30_000];
  let idleMs: number;
  let server: BuiltServer;
  let key: string;
  const patientFor = async (ms: number) => {
    const DATABASE_URL = server?.databaseUrl ?? (await createTestDatabase());
    await server?.stop();
    idleMs = ms;
    server = await startBuiltServer({ DATABASE_URL, IDLE_TIMEOUT_MS: String(ms), NODE_OPTIONS });
  };
  beforeAll(async () => {
    await patientFor(idles[0]!);
    key = await server.createKey('acme');
    await queryDatabase(
      server.databaseUrl,
      `insert into shops (organisation_id, shop_id, name, region, is_deleted)
       select organisation_id, md5(n::text)::uuid, repeat('x', 200), 'GB', false
       from organisations cross join generate_series(1, ${records}) n`,
    );
  });
  afterAll(() => server.stop());

  const ask = (accept: string) =>
    `GET /v1/data/shops?limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n` +
    `Accept: ${accept}\r\n\r\n`;

  it.each([
    ['exports', () => ask('application/x-ndjson').replace('?limit=1000', '')],
    ['pages, ten in a row', () => ask('*/*').repeat(10)],
  ])(
    '%s: take no memory, keep nobody waiting, and are ended in time',
    { timeout: 400_000 },
    async (_what, request) => {
      const seen: Seen[] = [];
      for (const ms of idles) {
        if (ms > idleMs) await patientFor(ms);
        seen.push(await beside(request));
        if (isGood(seen.at(-1)!)) break;
      }
      expect(isGood(seen.at(-1)!), JSON.stringify(seen)).toBe(true);
    },
  );

  interface Seen {
    readonly statuses: readonly string[];
    readonly slowestMs: number;
    readonly growthMb: number;
  }
  /** Whoever had to wait for those who do not read would wait for longer than they may be idle. */
  const isGood = ({ statuses, slowestMs, growthMb }: Seen) =>
    statuses.join() === '200' && slowestMs < idleMs && growthMb < growthMaxMb;

  /** What a neighbour meets while they ask and do not read, until they are ended, and what they take. */
  async function beside(request: () => string): Promise<Seen> {
    forgetPeak(server.process.pid);
    const before = residentMegabytes(server.process.pid, 'VmRSS');
    const neighbour = startSteadyClient(server.url, key);
    const sockets = Array.from({ length: readers }, () => openTo(server.url).pause());
    for (const socket of sockets) socket.write(request());
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    // What is still on its way to them counts as moving once, so it may take twice as long, and the queries before it.
    // The neighbour's is there all the time.
    const isOver = () => connectionsTo(server.url) < readers / 2;
    await expect.poll(isOver, { timeout: 60_000 + 6 * idleMs, interval: 100 }).toBe(true);
    const growthMb = residentMegabytes(server.process.pid, 'VmHWM') - before;
    const { statuses, slowestMs } = await neighbour.stop();
    for (const socket of sockets) socket.destroy();
    return { statuses: Object.keys(statuses), slowestMs, growthMb };
  }

  it('but slowly read get all of it', { timeout: 300_000 }, async () => {
    let lines = 0;
    for (const ms of idles) {
      if (ms > idleMs) await patientFor(ms);
      lines = await readSlowly();
      if (lines >= records) break;
    }
    expect(lines).toBeGreaterThanOrEqual(records);
  });

  async function readSlowly(): Promise<number> {
    const socket = openTo(server.url);
    socket.write(
      ask('application/x-ndjson')
        .replace('?limit=1000', '')
        .replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
    );
    let lines = 0;
    let pieces = 0;
    try {
      for await (const piece of socket) {
        for (const byte of piece as Buffer) if (byte === 0x0a) lines++;
        // Twice it rests for longer than a connection on which nothing moves may last, but for a sip.
        if (++pieces % 100 === 0 && pieces <= 400) await sleep(idleMs / 2);
      }
    } catch (error) {
      console.log(`the answer broke off after ${lines} lines: ${error}`);
    }
    return lines;
  }
});
