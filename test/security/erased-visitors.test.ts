import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { erasePeople } from '../support/erase-people.ts';
import { newShop } from '../support/new-records.ts';

/** Every visitor of a web page has its browser key, so its responses must not reveal who was erased. */

const origin = 'https://shop.example';
const shop = newShop();
let server: SharedServer;
let owner: Api;
let browserKey: string;
beforeAll(async () => {
  server = await sharedServer();
  owner = apiOf(server.url, await server.createKey('acme', ...everyPermission));
  const organisation = ['--organisation', server.slugOf('acme')];
  const issued = await server.run(
    'keys',
    'issue',
    ...organisation,
    '--json',
    '--browser',
    '--origin',
    origin,
  );
  browserKey = JSON.parse(issued).key;
  await owner.upload('shops', [shop]);
});

/** Sends an interaction of the person and then another body, both with the same Idempotency-Key. */
async function probe(person: object): Promise<unknown[]> {
  const headers = { origin, 'idempotency-key': randomUUID() };
  const sent = {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: 1_700_000_000,
  };
  const page = apiOf(server.url, browserKey);
  const first = await page.post('/user-interactions', { ...sent, ...person }, headers);
  const same = await page.post('/user-interactions', { ...sent, ...person }, headers);
  const changed = await page.post(
    '/user-interactions',
    { ...sent, user_id: 'nobody in particular' },
    headers,
  );
  return [first, same, changed].map(({ status, body }) => [status, body.code]);
}

it('a visitor cannot find out who was erased', async () => {
  const newCustomer = () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' });
  const [erased, stored] = [newCustomer(), newCustomer()];
  const user = `anna-${randomUUID()}@example.org`;
  await owner.upload('customers', [erased, stored]);
  await erasePeople(owner, { customer_ids: [erased.customer_id], user_ids: [user] });
  const usual = await probe({ user_id: `bob-${randomUUID()}@example.org` });
  expect(usual).toEqual([
    [202, undefined],
    [202, undefined],
    [422, 'idempotency_key_reused'],
  ]);
  expect(await probe({ student_id: stored.customer_id })).toEqual(usual);
  expect(await probe({ user_id: user })).toEqual(usual);
  expect(await probe({ student_id: erased.customer_id })).toEqual(usual);
  expect(await probe({ student_id: stored.customer_id, user_id: user })).toEqual(usual);
});
