// @module-tag full

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { accessPerson } from '../support/access-person.ts';
import { type Answer, type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { erasePeople } from '../support/erase-people.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/** The database goes away right after it has confirmed the commit of an operation that cannot be undone. */

let direct: BuiltServer;
let server: BuiltServer;
let proxy: TcpProxy;
let api: Api;
let directApi: Api;
beforeAll(async () => {
  // This process does the maintenance. Statements of maintenance would cut off the response to COMMIT.
  direct = await startBuiltServer();
  const key = await direct.createKey('acme', ...everyPermission);
  proxy = await startTcpProxy(direct.databaseUrl);
  server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
  api = apiOf(server.url, key);
  directApi = apiOf(direct.url, key);
  await accessPerson(directApi);
});
afterAll(async () => {
  await server?.stop();
  await proxy?.close();
  await direct?.stop();
});

/** Loses all that the service sends after the commit of the transaction that contains this statement. */
async function sendAndLoseDatabase(statement: RegExp, send: () => Promise<Answer>): Promise<Answer> {
  await expect.poll(async () => (await api.get('/v1/erasures')).status).toBe(200);
  let isBegun = false;
  let isCommitted = false;
  proxy.watch((bytes, link) => {
    const said = bytes.toString('latin1');
    if (isCommitted) {
      link.cut();
      return false;
    }
    isBegun ||= statement.test(said);
    isCommitted = isBegun && said.includes('commit\0');
    return true;
  });
  onTestFinished(() => proxy.unwatch());
  const answer = await send();
  expect(isCommitted).toBe(true);
  return answer;
}

it.each([
  { what: 'an erasure', path: '/v1/erasures', statement: /insert into erasures|add erasure/ },
  {
    what: 'an access request',
    path: '/v1/access-requests',
    statement: /insert into access_requests|add access request/,
  },
])('$what is answered with what the commit has stored', async ({ path, statement }) => {
  const sent = { customer_ids: [randomUUID()] };
  const { status, body } = await sendAndLoseDatabase(statement, () => api.post(path, sent));
  const { unknown_customer_ids = sent.customer_ids, ...answer } = body;
  expect({ status, unknown_customer_ids }).toEqual({ status: 202, unknown_customer_ids: sent.customer_ids });
  const stored = await directApi.get(`${path}/${answer.erasure_id ?? answer.access_request_id}`);
  expect(stored.body).toMatchObject({ requested: answer.requested, key_id: answer.key_id, people: 1 });
  expect(Object.keys(answer)).toEqual(Object.keys(stored.body));
});

it('a cancelled access request is answered with what the commit has stored', async () => {
  const path = `/v1/access-requests/${await accessPerson(directApi)}`;
  const { status, body } = await sendAndLoseDatabase(/cancelled_at = \$3/, () =>
    api.send(path, { method: 'DELETE' }),
  );
  expect([status, body.state]).toEqual([200, 'cancelled']);
  expect((await directApi.get(path)).body).toEqual(body);
});

it('a lift is answered with what the commit has stored', async () => {
  const erasure = await erasePeople(directApi, { customer_ids: [randomUUID()] });
  const { status, body } = await sendAndLoseDatabase(/(delete from|update) suppressions|lift/, () =>
    api.send(`/v1/erasures/${erasure}/suppression`, { method: 'DELETE' }),
  );
  expect({ status, body }).toMatchObject({ status: 200, body: { lifted: 1 } });
});
