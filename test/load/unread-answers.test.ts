// @module-tag full
// @module-tag waiting

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { connectionsTo, forgetPeak, residentMegabytes } from '../support/process-state.ts';
import { queryDatabase } from '../support/query-database.ts';
import { startSteadyClient } from '../support/steady-client.ts';

/**
 * Tests clients that request a lot and read nothing. A neighbour must get a response before their connections are
 * closed.
 */

function openTo(url: string): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname)
    .setNoDelay()
    .on('error', () => {});
}

describe('clients that do not read their answers', () => {
  const records = 75_000;
  /** An export of these records is about 22 MB, but a reader's pending response and query hold only a few of them. */
  const readers = 30;
  const growthMaxMb = 300;
  /** With plenty of memory, V8 leaves 200 to 380 MB of garbage. With this limit, any growth is memory in use. */
  const NODE_OPTIONS = '--max-old-space-size=192';
  /**
   * The idle timeouts. They are longer than the neighbour waits for its response, because its connection is idle during
   * that time. On a busy machine, the neighbour may wait longer than the first timeout, so one good result out of three
   * is enough.
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
    ['pages, five in a row', () => ask('*/*').repeat(5)],
  ])('%s: take no memory, delay nobody, and are closed in time', async (_what, request) => {
    const seen: Seen[] = [];
    for (const ms of idles) {
      if (ms > idleMs) await patientFor(ms);
      seen.push(await beside(request));
      if (isGood(seen.at(-1)!)) break;
    }
    console.log(JSON.stringify(seen));
    expect(isGood(seen.at(-1)!), JSON.stringify(seen)).toBe(true);
  });

  interface Seen {
    readonly statuses: readonly string[];
    readonly slowestMs: number;
    readonly growthMb: number;
  }
  /** Returns whether the neighbour was served within the idle timeout, and so did not wait for the other clients. */
  const isGood = ({ statuses, slowestMs, growthMb }: Seen) =>
    statuses.join() === '200' && slowestMs < idleMs && growthMb < growthMaxMb;

  /** Returns the neighbour's responses and the server's memory until the other clients' connections are closed. */
  async function beside(request: () => string): Promise<Seen> {
    forgetPeak(server.process.pid);
    const before = residentMegabytes(server.process.pid, 'VmRSS');
    const neighbour = startSteadyClient(server.url, key);
    const sockets = Array.from({ length: readers }, () => openTo(server.url).pause());
    for (const socket of sockets) socket.write(request());
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    // A pending write resets the idle timeout once, so closing a connection can take twice the timeout plus the
    // duration of its queries. The neighbour's connection stays open the whole time.
    const isOver = () => connectionsTo(server.url) < readers / 2;
    await expect.poll(isOver, { interval: 100 }).toBe(true);
    const growthMb = residentMegabytes(server.process.pid, 'VmHWM') - before;
    const { statuses, slowestMs } = await neighbour.stop();
    for (const socket of sockets) socket.destroy();
    return { statuses: Object.keys(statuses), slowestMs, growthMb };
  }

  it('but slowly read get all of it', async () => {
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
        // Pause four times for half the idle timeout, which is twice the timeout in total.
        if (++pieces % 100 === 0 && pieces <= 400) await sleep(idleMs / 2);
      }
    } catch (error) {
      console.log(`the answer broke off after ${lines} lines: ${error}`);
    }
    return lines;
  }
});
