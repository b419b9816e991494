// @module-tag full

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Answer, type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { erasePeople } from '../support/erase-people.ts';
import { queryDatabase } from '../support/query-database.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

/** The database goes away as soon as it has committed an operation that cannot be undone. */

let proxy: TcpProxy;
let server: BuiltServer;
let api: Api;
let databaseUrl: string;
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  // Another process has the lease for an hour. Statements of maintenance would cut off the response to COMMIT.
  await queryDatabase(
    databaseUrl,
    `insert into leases (name, holder, ends_at) values ('maintenance', gen_random_uuid(), now() + interval '1 hour')
     on conflict (name) do update set holder = excluded.holder, ends_at = excluded.ends_at`,
  );
  proxy = await startTcpProxy(databaseUrl);
  server = await startBuiltServer({ DATABASE_URL: proxy.databaseUrl });
  api = apiOf(server.url, await server.createKey('acme', ...everyPermission));
});
afterAll(async () => {
  await proxy.accept();
  await server.stop();
  await proxy.close();
});

/** Sends a request, and refuses everything that the service asks the database after the commit of this statement. */
async function loseDatabaseAfter(statement: RegExp, send: () => Promise<Answer>): Promise<Answer> {
  let isWritten = false;
  let isCommitted = false;
  proxy.watch((bytes) => {
    if (isCommitted) {
      void proxy.refuse();
      return false;
    }
    const text = bytes.toString('latin1');
    isWritten ||= statement.test(text);
    isCommitted = isWritten && text.includes('commit\0');
    return true;
  });
  try {
    const answer = await send();
    expect(isCommitted).toBe(true);
    return answer;
  } finally {
    proxy.unwatch();
    await proxy.refuse();
    await proxy.accept();
    await expect.poll(async () => (await api.get('/v1/erasures')).status).toBe(200);
  }
}

it('a committed erasure is answered with 202', async () => {
  const sent = { customer_ids: [randomUUID()] };
  const { status, body } = await loseDatabaseAfter(/insert into erasures|add erasure/, () =>
    api.post('/v1/erasures', sent),
  );
  expect({ status, body }).toMatchObject({ status: 202, body: { unknown_customer_ids: sent.customer_ids } });
  expect((await api.get(`/v1/erasures/${body.erasure_id}`)).status).toBe(200);
});

it('a committed access request is answered with 202', async () => {
  const { status, body } = await loseDatabaseAfter(/insert into access_requests|add access request/, () =>
    api.post('/v1/access-requests', { customer_ids: [randomUUID()] }),
  );
  expect({ status, body }).toMatchObject({ status: 202 });
  expect((await api.get(`/v1/access-requests/${body.access_request_id}`)).status).toBe(200);
});

it('a committed lift is answered with 200', async () => {
  // The erasure has to be swept first.
  await queryDatabase(databaseUrl, 'delete from leases');
  const erasure = await erasePeople(api, { customer_ids: [randomUUID()] });
  const { status, body } = await loseDatabaseAfter(/(delete from|update) suppressions|lift/, () =>
    api.send(`/v1/erasures/${erasure}/suppression`, { method: 'DELETE' }),
  );
  expect({ status, body }).toMatchObject({ status: 200, body: { lifted: 1 } });
});
