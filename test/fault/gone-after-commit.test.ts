// @module-tag full

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { accessPerson } from '../support/access-person.ts';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/** The database goes away right after it has confirmed a commit. The client learns what was stored. */

let direct: BuiltServer;
let server: BuiltServer;
let proxy: TcpProxy;
let key: string;
beforeAll(async () => {
  const ERASURE_KEYS = 'a key of 32 characters or more for tests';
  direct = await startBuiltServer({ ERASURE_KEYS });
  key = await direct.createKey('acme', 'data:write', 'data:read', 'data:erase', 'data:access');
  proxy = await startTcpProxy(direct.databaseUrl);
  server = await startBuiltServer({ ERASURE_KEYS, DATABASE_URL: proxy.databaseUrl });
});
afterAll(async () => {
  await server?.stop();
  await proxy?.close();
  await direct?.stop();
});

/** Loses all that the service sends after the commit of the transaction that contains the text. */
function endAfterCommit(text: string): () => boolean {
  let isBegun = false;
  let isCommitted = false;
  proxy.watch((bytes, link) => {
    const said = bytes.toString('latin1');
    if (isCommitted) {
      link.cut();
      return false;
    }
    isBegun ||= said.includes(text);
    isCommitted = isBegun && said.includes('commit');
    return true;
  });
  onTestFinished(() => proxy.unwatch());
  return () => isCommitted;
}

it.each([
  [
    'an erasure',
    'into erasures',
    (api: Api) => api.post('/v1/erasures', { customer_ids: [randomUUID()] }),
    202,
  ],
  [
    'an access request',
    'into access_requests',
    (api: Api) => api.post('/v1/access-requests', { customer_ids: [randomUUID()] }),
    202,
  ],
])('%s is answered with what the commit has stored', async (_, statement, send, status) => {
  const api = apiOf(server.url, key);
  await expect.poll(async () => (await api.get('/v1/erasures')).status).toBe(200);
  const isCommitted = endAfterCommit(statement);
  const answer = await send(api);
  expect([isCommitted(), answer.status]).toEqual([true, status]);
  proxy.unwatch();
  const { erasure_id, access_request_id, unknown_customer_ids, ...stored } = answer.body;
  const path = erasure_id ? `/v1/erasures/${erasure_id}` : `/v1/access-requests/${access_request_id}`;
  const { body } = await apiOf(direct.url, key).get(path);
  expect(body).toMatchObject({ requested: stored.requested, key_id: stored.key_id, people: 1 });
  expect(Object.keys(answer.body).filter((name) => name !== 'unknown_customer_ids')).toEqual(
    Object.keys(body),
  );
});

it('a cancelled access request is answered with what the commit has stored', async () => {
  const api = apiOf(server.url, key);
  await expect.poll(async () => (await api.get('/v1/erasures')).status).toBe(200);
  const id = await accessPerson(apiOf(direct.url, key));
  const isCommitted = endAfterCommit('cancelled_at = $3');
  const { status, body } = await api.send(`/v1/access-requests/${id}`, { method: 'DELETE' });
  expect([isCommitted(), status, body.state]).toEqual([true, 200, 'cancelled']);
  proxy.unwatch();
  expect((await apiOf(direct.url, key).get(`/v1/access-requests/${id}`)).body).toEqual(body);
});
