import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createTestApp, type TestApp } from '../support/app.ts';

/**
 * An interaction is written without another lookup if its item and student were found recently. The tests show this by
 * deleting the item or the student directly in the database.
 */

let test: TestApp;
let organisationId: string;
let key: string;
beforeAll(async () => {
  test = await createTestApp();
  ({ organisationId, key } = await test.organisation('acme'));
});
afterAll(() => test.close());

async function newTag(): Promise<string> {
  const id = randomUUID();
  await test.pool.query(
    `insert into tags (organisation_id, tag_id, name, is_deleted) values ($1, $2, 'vegan', false)`,
    [organisationId, id],
  );
  return id;
}

async function newCustomer(): Promise<string> {
  const id = randomUUID();
  const { statusCode, body } = await test.app.inject({
    method: 'POST',
    url: '/v1/data/customers',
    headers: { authorization: `Bearer ${key}` },
    payload: { records: [{ customer_id: id, user_id: randomUUID(), region: 'GB' }] },
  });
  expect(statusCode, body).toBe(200);
  return id;
}

const remove = async (tagId: string) =>
  void (await test.pool.query('delete from tags where tag_id = $1', [tagId]));

async function record(item_id: string, more: object = {}): Promise<number> {
  const { statusCode } = await test.app.inject({
    method: 'POST',
    url: '/user-interactions',
    headers: { authorization: `Bearer ${key}` },
    payload: { interaction_type: 'SHARE', item_type: 'TAG', item_id, event_timestamp: 1, ...more },
  });
  return statusCode;
}

it('a found id is not looked up again', async () => {
  const tag = await newTag();
  expect(await record(tag)).toBe(201);
  await remove(tag);
  expect(await record(tag)).toBe(201);
});

it('a missing id is looked up each time', async () => {
  const [tag, student_id] = [await newTag(), randomUUID()];
  expect(await record(randomUUID())).toBe(400);
  expect(await record(tag, { student_id })).toBe(400);
  // The item exists, but is not cached, because no interaction with it was written.
  expect(await record(tag, { student_id })).toBe(400);
  expect(await record(tag, { student_id: await newCustomer() })).toBe(201);
  expect(await record(tag, { student_id })).toBe(400);
});

it('references of one organisation are not cached for another', async () => {
  const tag = await newTag();
  expect(await record(tag)).toBe(201);
  const other = await test.organisation('other');
  const { statusCode } = await test.app.inject({
    method: 'POST',
    url: '/user-interactions',
    headers: { authorization: `Bearer ${other.key}` },
    payload: { interaction_type: 'SHARE', item_type: 'TAG', item_id: tag, event_timestamp: 1 },
  });
  expect(statusCode).toBe(400);
});

it('an id is cached only for the type it was found as', async () => {
  const tag = await newTag();
  expect(await record(tag)).toBe(201);
  expect(await record(tag, { item_type: 'SHOP' })).toBe(400);
});

it('the cache is cleared when a connection is lost', async () => {
  const tag = await newTag();
  expect(await record(tag)).toBe(201);
  await remove(tag);
  expect(await record(tag)).toBe(201);
  await test.pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
  );
  // The service needs a moment to notice that the connection is lost.
  await expect.poll(() => record(tag)).toBe(400);
});
