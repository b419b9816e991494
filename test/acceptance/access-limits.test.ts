import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { accessPerson } from '../support/access-person.ts';
import { apiOf, everyPermission } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

let server: SharedServer;
const shop = newShop();
beforeAll(async () => {
  server = await sharedServer();
});

/** Creates an organisation with 1,000 interactions of one user. */
async function newOrganisation() {
  const name = `o-${randomUUID().slice(0, 8)}`;
  const api = apiOf(server.url, await server.createKey(name, ...everyPermission));
  const user = `everybody-${randomUUID()}`;
  await api.upload('shops', [shop]);
  const visit = {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: 1_700_000_000,
  };
  const records = many(1_000, () => ({ ...visit, user_id: user }));
  expect((await api.post('/user-interactions/batch', { records })).status).toBe(200);
  return { slug: server.slugOf(name), api, user };
}

it('copies for access requests count against the quota', async () => {
  const { slug, api, user } = await newOrganisation();
  await queryDatabase(
    server.databaseUrl,
    'update organisations set records_stored_max = 2500 where slug = $1',
    [slug],
  );
  await accessPerson(api, { user_ids: [user] });
  const ask = async () => (await api.post('/v1/access-requests', { user_ids: [user] })).status;
  const statuses: number[] = [];
  // Usage is measured from time to time, so some requests are accepted before the quota is used up.
  const full = async () => {
    statuses.push(await ask());
    return statuses.at(-1);
  };
  await expect.poll(full, { interval: 2_000 }).not.toBe(202);
  expect(statuses.at(-1)).toBe((await api.upload('shops', [newShop()])).status);
});

it('an access request can be cancelled', async () => {
  const { api, user } = await newOrganisation();
  const id = await accessPerson(api, { user_ids: [user] });
  const { status } = await api.send(`/v1/access-requests/${id}`, { method: 'DELETE' });
  expect(status).toBeLessThan(300);
  expect((await api.get(`/v1/access-requests/${id}/records`)).status).toBeGreaterThanOrEqual(400);
  const copies = () =>
    queryDatabase(
      server.databaseUrl,
      'select from access_request_records where access_request_id = $1 limit 1',
      [id],
    );
  await expect.poll(copies).toEqual([]);
});
