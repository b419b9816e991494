import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { accessPerson, downloadAccess } from '../support/access-person.ts';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { sharedServer } from '../support/built-server.ts';
import { erasePeople, requestErasure } from '../support/erase-people.ts';
import { newShop } from '../support/new-records.ts';

/** Several people can use one computer, so its `user_id` proves nothing about a student. */

const shop = newShop();
let api: Api;
beforeAll(async () => {
  const server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme', ...everyPermission));
  await api.upload('shops', [shop]);
});

async function newStudent(): Promise<string> {
  const customer_id = randomUUID();
  expect((await api.upload('customers', [{ customer_id, user_id: randomUUID(), region: 'GB' }])).status).toBe(
    200,
  );
  return customer_id;
}

const newComputer = () => `library-pc-${randomUUID()}`;

async function visit(fields: { student_id?: string; user_id: string }) {
  const sent = {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: 1_700_000_000,
  };
  const { status, body } = await api.post('/user-interactions', { ...sent, city: 'Leeds', ...fields });
  expect({ status, body }).toMatchObject({ status: 201 });
  return body;
}

const read = async (interactionId: string) => (await api.get(`/user-interactions/${interactionId}`)).body;
const search = async (filter: string) => (await api.get(`/user-interactions?${filter}`)).body.interactions;

it('erasing a student leaves other students’ interactions on the same computer', async () => {
  const [one, other] = [await newStudent(), await newStudent()];
  const user_id = newComputer();
  await visit({ student_id: one, user_id });
  const kept = [await visit({ student_id: other, user_id }), await visit({ student_id: other, user_id })];
  const alone = await visit({ user_id });
  await erasePeople(api, { customer_ids: [one], mode: 'delete' });
  for (const before of [...kept, alone]) expect(await read(before.interaction_id)).toEqual(before);
  expect(await search(`student_id=${one}`)).toEqual([]);
  expect(await visit({ student_id: other, user_id })).toMatchObject({ student_id: other, user_id });
});

it.each(['anonymise', 'delete'])(
  'erasing a computer’s user with %s only clears it from students’ interactions',
  async (mode) => {
    const student_id = await newStudent();
    const user_id = newComputer();
    const before = await visit({ student_id, user_id });
    const alone = await visit({ user_id });
    const erasure = await requestErasure(api, { user_ids: [user_id], mode });
    const cleared = { ...before, user_id: null };
    const expectCleared = async () => {
      expect(await read(before.interaction_id)).toEqual(cleared);
      expect(await search(`student_id=${student_id}`)).toEqual([cleared]);
      expect(await search(`user_id=${user_id}`)).toEqual([]);
    };
    await expectCleared();
    await expect.poll(async () => (await api.get(`/v1/erasures/${erasure}`)).body.state).toBe('swept');
    await expectCleared();
    const { status, body } = await api.get(`/user-interactions/${alone.interaction_id}`);
    if (mode === 'delete') expect(status).toBe(404);
    else expect(body).toMatchObject({ user_id: null, city: null });
    // A new interaction of the student is stored without the computer's user.
    expect(await visit({ student_id, user_id })).toMatchObject({ student_id, user_id: null, city: 'Leeds' });
  },
);

it('a request for access contains nothing of strangers on the same computer', async () => {
  const [one, other] = [await newStudent(), await newStudent()];
  const user_id = newComputer();
  const own = await visit({ student_id: one, user_id });
  await visit({ student_id: other, user_id });
  await visit({ user_id });
  const lines = await downloadAccess(api, await accessPerson(api, { customer_ids: [one] }));
  const interactions = lines.filter(({ type }) => type === 'interactions');
  expect(interactions.map(({ id }) => id)).toEqual([own.interaction_id]);
});
