// @module-tag full

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { makeCertificate } from '../support/certificate.ts';
import { expectInTime } from '../support/in-time.ts';
import { connectionsTo, forgetPeak, residentMegabytes } from '../support/process-state.ts';
import { rawPost } from '../support/raw-http.ts';
import { startSteadyClient } from '../support/steady-client.ts';

/** Tests connections that try to exhaust the server: slow connections, silent connections, and too many connections. */

const openConnections = fileURLToPath(new URL('../support/open-connections.ts', import.meta.url));

function openTo(url: string): Socket {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname)
    .setNoDelay()
    .on('error', () => {});
}

function openTlsTo(url: string): Socket {
  const { hostname, port } = new URL(url);
  return connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false }).on('error', () => {});
}

interface Ended {
  readonly said: string;
  readonly afterMs: number;
}

/**
 * Returns the data received before the server closed the connection, and how long that took. Rejects if the connection
 * is still open after `withinMs`.
 */
async function endOf(socket: Socket, withinMs: number): Promise<Ended> {
  const started = performance.now();
  let said = '';
  socket.on('data', (bytes) => {
    said += bytes.toString('latin1');
  });
  const timer = setTimeout(() => socket.destroy(new Error('still open')), withinMs);
  const failed = await new Promise<Error | undefined>((resolve) => {
    socket.once('end', () => resolve(undefined)).once('close', () => resolve(undefined));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ? undefined : error));
  });
  clearTimeout(timer);
  socket.destroy();
  if (failed) throw failed;
  return { said, afterMs: performance.now() - started };
}

/**
 * Sends a byte per second until the connection is closed. Reads received data before each write, because writing to a
 * reset connection loses that data.
 */
function drip(socket: Socket, byte: string): void {
  const timer = setInterval(() => setImmediate(() => socket.writable && socket.write(byte)), 1_000);
  socket.once('close', () => clearInterval(timer));
}

describe('connections on which a request is never complete', () => {
  /** The timeouts are so long that the neighbour's requests do not exceed them if the machine stalls. */
  const headersMs = 6_000;
  const requestMs = 7_000;
  const idleMs = 8_000;
  /** Extra time, because the server checks its connections only once a second, and a busy machine may be slow. */
  const graceMs = 60_000;
  let server: BuiltServer;
  /** A separate server with a short idle timeout. On `server`, the neighbour would exceed it if the machine stalled. */
  let impatient: BuiltServer;
  let key: string;
  beforeAll(async () => {
    server = await startBuiltServer({
      HEADERS_TIMEOUT_MS: String(headersMs),
      REQUEST_TIMEOUT_MS: String(requestMs),
    });
    impatient = await startBuiltServer({
      DATABASE_URL: server.databaseUrl,
      IDLE_TIMEOUT_MS: String(idleMs),
    });
    key = await server.createKey('acme');
  });
  afterAll(async () => {
    await server.stop();
    await impatient.stop();
  });

  async function expectCut(sockets: Socket[], timeoutMs: number, status: RegExp): Promise<void> {
    const neighbour = startSteadyClient(server.url, key, 100);
    try {
      for (const { said, afterMs } of await Promise.all(
        sockets.map((socket) => endOf(socket, timeoutMs + graceMs)),
      )) {
        expect(said).toMatch(status);
        expect(afterMs).toBeGreaterThan(timeoutMs - 500);
      }
    } finally {
      for (const socket of sockets) socket.destroy();
      expect(Object.keys((await neighbour.stop()).statuses)).toEqual(['200']);
    }
  }

  it.concurrent('200 that send a byte of their headers per second are 408 in time', async () => {
    const sockets = Array.from({ length: 200 }, () => openTo(server.url));
    for (const socket of sockets) {
      socket.write('GET /health/live HTTP/1.1\r\nHost: localhost\r\nX: ');
      drip(socket, 'x');
    }
    await expectCut(sockets, headersMs, /^HTTP\/1\.1 408 /);
  });

  it.concurrent('those that send a byte of their body per second are 408 in time', async () => {
    const sockets = Array.from({ length: 50 }, () => openTo(server.url));
    const headers = [`Authorization: Bearer ${key}`, 'Content-Type: application/json'];
    for (const [at, socket] of sockets.entries()) {
      const inChunks = at % 2 === 0;
      const framing = inChunks ? 'Transfer-Encoding: chunked' : 'Content-Length: 1000';
      socket.write(rawPost('/v1/data/tags', [...headers, framing], inChunks ? '3e8\r\n' : ''));
      drip(socket, ' ');
    }
    await expectCut(sockets, requestMs, /^HTTP\/1\.1 408 /);
  });

  it.concurrent('silent ones are closed in time', async () => {
    const sockets = Array.from({ length: 50 }, () => openTo(server.url));
    await expectCut(sockets, headersMs, /^(HTTP\/1\.1 408 |$)/);
  });

  it.concurrent('those that are silent after an answer are closed in time', async () => {
    const sockets = Array.from({ length: 50 }, () => openTo(impatient.url));
    for (const socket of sockets) socket.write('GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await expectCut(sockets, idleMs, /^HTTP\/1\.1 200 [\s\S]*\}$/);
  });

  it.concurrent('those that start a second request and never finish it are 408 in time', async () => {
    const sockets = Array.from({ length: 50 }, () => openTo(server.url));
    const whole = 'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n';
    for (const socket of sockets) {
      socket.write(`${whole}${whole.slice(0, -2)}X: `);
      drip(socket, 'x');
    }
    await expectCut(sockets, headersMs, /^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 408 /);
  });
});

describe('clients that request the API reference and do not read it', () => {
  const readers = 150;
  /** The script is 4.4 MB. With TLS, each connection alone takes about 100 kB. */
  const growthMaxMb = 50;
  const folder = mkdtempSync(join(tmpdir(), 'intake-unread-'));
  const { certFile, keyFile } = makeCertificate(folder, 'localhost');
  afterAll(() => rmSync(folder, { recursive: true }));

  it.each([
    ['in the clear', {}, openTo],
    ['over TLS', { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile }, openTlsTo],
  ])('150 of them, %s, take no memory for it', async (_how, env, open) => {
    const server = await startBuiltServer(env);
    const { host } = new URL(server.url);
    const sockets: Socket[] = [];
    const ask = (path: string) => {
      const socket = open(server.url);
      sockets.push(socket);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      return socket;
    };
    try {
      const page = (await endOf(ask('/docs/'), 240_000)).said;
      const { pathname, search } = new URL(/ src="([^"]+)"/.exec(page)?.[1] ?? '', `${server.url}/docs/`);
      const script = pathname + search;
      expect((await endOf(ask(script), 240_000)).said.length).toBeGreaterThan(4_000_000);
      forgetPeak(server.process.pid);
      const before = residentMegabytes(server.process.pid, 'VmRSS');
      const unread = Array.from({ length: readers }, () => ask(script).pause());
      await expect.poll(() => connectionsTo(server.url)).toBe(readers);
      // After this pause, the server has sent as much as the clients' socket buffers can hold.
      await sleep(2_000);
      expect((await endOf(ask('/health/live'), 240_000)).said).toMatch(/^HTTP\/1\.1 200 /);
      const growth = residentMegabytes(server.process.pid, 'VmHWM') - before;
      console.log(`${readers} unread answers take ${growth.toFixed(0)} MB`);
      expect(growth).toBeLessThan(growthMaxMb);
      const [one] = unread;
      expect((await endOf(one!.resume(), 240_000)).said.length).toBeGreaterThan(4_000_000);
    } finally {
      for (const socket of sockets) socket.destroy();
      await server.stop();
    }
  });
});

describe('connections in great number', () => {
  it('10,000 idle ones take bounded memory, and a client is served meanwhile', async () => {
    // The service uses about 10 kB per connection for its socket, its parser and their timers.
    const growthMaxMb = 250;
    const p99MaxMs = 500;
    const server = await startBuiltServer({ HEADERS_TIMEOUT_MS: '600000' });
    const key = await server.createKey('acme');
    await apiOf(server.url, key).get('/v1/data');
    forgetPeak(server.process.pid);
    const before = residentMegabytes(server.process.pid, 'VmRSS');
    const { port } = new URL(server.url);
    const child = spawn(process.execPath, [openConnections, port, '10000'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const [open] = await once(createInterface({ input: child.stdout }), 'line');
      expect(Number(open)).toBe(10_000);
      await expectInTime(async () => {
        const neighbour = startSteadyClient(server.url, key, 20);
        await sleep(3_000);
        const { statuses, p99Ms } = await neighbour.stop();
        expect(Object.keys(statuses)).toEqual(['200']);
        console.log(`with 10,000 connections p99 is ${p99Ms.toFixed(0)} ms`);
        return [{ what: 'p99 with 10,000 connections', ms: p99Ms, promisedMs: p99MaxMs }];
      });
      const growth = residentMegabytes(server.process.pid, 'VmHWM') - before;
      console.log(`10,000 connections take ${growth.toFixed(0)} MB`);
      expect(growth).toBeLessThan(growthMaxMb);
    } finally {
      child.kill('SIGKILL');
      await server.stop();
    }
  });

  it('more than CONNECTIONS_MAX are closed at once, and the server continues', async () => {
    const server = await startBuiltServer({ CONNECTIONS_MAX: '50' });
    const sockets: Socket[] = [];
    try {
      for (let at = 0; at < 50; at++) {
        const socket = openTo(server.url);
        sockets.push(socket);
        socket.write('GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n');
        const [said] = await once(socket, 'data');
        expect(String(said)).toMatch(/^HTTP\/1\.1 200 /);
      }
      const durations: number[] = [];
      for (let at = 0; at < 20; at++) {
        const { said, afterMs } = await endOf(openTo(server.url), 240_000);
        expect(said).toBe('');
        durations.push(afterMs);
      }
      // Use the median, because some connections may have been delayed if the machine stalled.
      expect(durations.toSorted((one, other) => one - other)[10]).toBeLessThan(10_000);
      for (const socket of sockets) expect(socket.readable).toBe(true);
      sockets.pop()!.destroy();
      await expect
        .poll(() =>
          apiOf(server.url)
            .get('/health/live')
            .then(
              ({ status }) => status,
              () => 0,
            ),
        )
        .toBe(200);
    } finally {
      for (const socket of sockets) socket.destroy();
      await server.stop();
    }
  });
});
