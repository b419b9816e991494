import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { apiOf } from '../support/api.ts';
import { exchangeBytes } from '../support/exchange-bytes.ts';
import { expectError } from '../support/expect-error.ts';
import { sendRaw } from '../support/raw-http.ts';

/** CONNECT gets the same response as any other unsupported method (row 27f of docs/api-behaviour.md). */

let server: AdminServer;
let key: string;
beforeAll(async () => {
  server = await startAdminServer();
  key = await server.createKey('acme');
});
afterAll(() => server.stop());

const targets = ['example.org:443', '/health/live', '/v1/data/tags'];
const head = (target: string) => `CONNECT ${target} HTTP/1.1\r\nHost: localhost\r\n`;

describe.each([
  ['public', () => server.url],
  ['admin', () => server.adminUrl],
])('on the %s API', (_api, urlOf) => {
  it.each(targets)(
    '27f: CONNECT %s is 405, in the shape of every error, and the connection is closed',
    async (target) => {
      for (const more of ['', `Authorization: Bearer ${key}\r\n`]) {
        const request = `${head(target)}${more}\r\n`;
        const answer = await sendRaw(urlOf(), request);
        expectError(answer, 405);
        expect(answer.headers.get('connection')).toBe('close');
        expect(answer.headers.get('allow')).toBe('');
        expect(await exchangeBytes(urlOf(), request)).toMatchObject({ statuses: [405], closed: true });
      }
    },
  );

  it('27f: data sent for the tunnel is not a request', async () => {
    const hidden = 'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const { statuses, closed } = await exchangeBytes(urlOf(), `${head('example.org:443')}\r\n${hidden}`);
    expect({ statuses, closed }).toEqual({ statuses: [405], closed: true });
  });

  it('27f: a client that hangs up at once does no harm', async () => {
    const { hostname, port } = new URL(urlOf());
    for (let round = 0; round < 50; round++) {
      const socket = connect(Number(port), hostname, () => {
        socket.write(`${head('example.org:443')}\r\n`, () => socket.resetAndDestroy());
      });
      await new Promise((resolve) => socket.on('error', () => {}).once('close', resolve));
    }
    expect((await apiOf(urlOf()).get('/health/live')).status).toBe(200);
  });
});

it('27f: behind a pending request its refusal is not mistaken for the answer to that request', async () => {
  // The first request needs a query, and the CONNECT after it is read before that query ends.
  const list = `GET /v1/data HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n\r\n`;
  const { statuses, closed } = await exchangeBytes(server.url, `${list}${head('example.org:443')}\r\n`);
  expect(closed).toBe(true);
  expect(statuses).not.toContain(405);
});
