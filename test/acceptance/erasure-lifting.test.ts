import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { sharedServer } from '../support/built-server.ts';
import { erasePeople, expectSwept, requestErasure } from '../support/erase-people.ts';

let api: Api;
beforeAll(async () => {
  const server = await sharedServer();
  api = apiOf(server.url, await server.createKey('acme', ...everyPermission));
});

const newCustomer = () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' });

async function lift(erasureId: string): Promise<void> {
  const { status } = await api.send(`/v1/erasures/${erasureId}/suppression`, { method: 'DELETE' });
  expect(status).toBe(200);
}

const codesOf = async (record: object) =>
  ((await api.batch('customers', [record])).errors ?? []).map(({ code }: { code: string }) => code);

it('lifting one erasure of a person leaves the other one standing', async () => {
  const person = newCustomer();
  await api.upload('customers', [person]);
  const first = await erasePeople(api, { customer_ids: [person.customer_id] });
  const second = await requestErasure(api, {
    customer_ids: [person.customer_id],
    user_ids: [person.user_id],
  });
  await lift(first);
  expect(await codesOf(person)).toContain('erased');
  await expectSwept(api, second);
  expect(await codesOf(person)).toContain('erased');
  await lift(second);
  expect(await codesOf(person)).toEqual([]);
});

it('lifting the later of two erasures leaves the first one standing', async () => {
  const person = newCustomer();
  await api.upload('customers', [person]);
  const sent = { customer_ids: [person.customer_id], user_ids: [person.user_id] };
  const both = [await requestErasure(api, sent), await requestErasure(api, sent)] as const;
  for (const one of both) await expectSwept(api, one);
  await lift(both[1]);
  expect(await codesOf(person)).toContain('erased');
  await lift(both[0]);
  expect(await codesOf(person)).toEqual([]);
});
