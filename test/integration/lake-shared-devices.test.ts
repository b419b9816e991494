import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { newLakeOrganisation, tracesOf, writeAll } from '../support/lake-organisation.ts';
import { tracesInFolder } from '../support/lake-traces.ts';
import { storedRows, WrittenLake } from '../support/written-lake.ts';

/** Several students use the same device, and its user is erased from the lake's files. */

let test: TestApp;
/** A pool that connects as the serving role. */
let pool: OwnPool;
let lake: WrittenLake;
const never = new AbortController().signal;

beforeAll(async () => {
  test = await createTestApp();
  pool = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await pool.end();
  await test.close();
});
beforeEach(() => {
  lake = new WrittenLake();
});
afterEach(() => lake.close());

const traces = (texts: readonly string[]) => tracesInFolder(lake.folder, texts);

async function expectEqual(organisationId: string): Promise<number> {
  const [written, stored] = [await lake.rows(organisationId), await storedRows(pool, organisationId)];
  expect(written).toEqual(stored);
  return stored.length;
}

it.each(['anonymise', 'delete'] as const)(
  'rows of other students keep everything but the erased user (%s)',
  async (mode) => {
    const { organisationId, request, send, newPerson, erase } = await newLakeOrganisation(test);
    const [one, other] = [await newPerson(), await newPerson()];
    const writer = lake.writer(pool);
    const city = `York ${randomUUID()}`;
    await send(3, { student_id: other.customer_id, user_id: one.user_id, city });
    await send(2, { user_id: one.user_id });
    await send(4, { student_id: one.customer_id, user_id: other.user_id });
    await writeAll(writer, pool, organisationId);
    expect(await expectEqual(organisationId)).toBe(9);
    await erase(mode, one);
    await writer.erase(organisationId, never);
    expect(await traces(tracesOf(one))).toEqual([]);
    await writeAll(writer, pool, organisationId);
    expect(await expectEqual(organisationId)).toBe(mode === 'delete' ? 3 : 9);
    const rows = (await lake.rows(organisationId)).map((row) => JSON.stringify(row));
    expect(rows.filter((row) => row.includes(city) && row.includes(other.customer_id))).toHaveLength(3);
    const { body } = await request('GET', `/user-interactions?student_id=${other.customer_id}`);
    expect(body.interactions.map(({ user_id }: { user_id: string | null }) => user_id)).toEqual([
      null,
      null,
      null,
    ]);
  },
);

it('a copy that is made before the sweep shows other students’ rows without the user', async () => {
  const { organisationId, request, send, newPerson } = await newLakeOrganisation(test);
  const [one, other] = [await newPerson(), await newPerson()];
  await send(3, { student_id: other.customer_id, user_id: one.user_id });
  await send(2, { user_id: one.user_id });
  const { statusCode } = await request('POST', '/v1/erasures', { user_ids: [one.user_id] });
  expect(statusCode).toBe(202);
  await writeAll(lake.writer(pool), pool, organisationId);
  expect(await traces([one.user_id])).toEqual([]);
  expect(await lake.rows(organisationId)).toHaveLength(3);
});
