import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { type AccessOrganisation, newAccessOrganisation, newPerson } from '../support/access-organisation.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { untilPasses } from '../support/until-passes.ts';

/** Texts in which ids are hidden are read before a sweep ends, and the ids to hide afterwards. */

let test: TestApp;
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

/** Sends a request that has to wait for the ids, and ends the sweep before it gets them. */
async function readWhileSweepEnds(acme: AccessOrganisation, ids: readonly string[], path: string) {
  const { organisationId } = acme;
  const sweeping = new pg.Client({ connectionString: test.databaseUrl });
  await sweeping.connect();
  try {
    await sweeping.query('begin');
    await sweeping.query('lock table erasure_ids in access exclusive mode');
    const reading = acme.send('GET', path);
    await untilPasses(async () => {
      const { rowCount } = await sweeping.query(
        `select from pg_locks where relation = 'erasure_ids'::regclass and not granted
           and database = (select oid from pg_database where datname = current_database())`,
      );
      expect(rowCount).toBe(1);
    });
    await sweeping.query('delete from rejections where organisation_id = $1', [organisationId]);
    for (const id of ids)
      await sweeping.query(
        `update receipt_batches set answer = replace(answer, '"' || $2 || '"', 'null') where organisation_id = $1`,
        [organisationId, id],
      );
    await sweeping.query(`update receipts set idempotency_key = 'swept' where organisation_id = $1`, [
      organisationId,
    ]);
    await sweeping.query('delete from erasure_ids where organisation_id = $1', [organisationId]);
    await sweeping.query('commit');
    return await reading;
  } finally {
    await sweeping.end();
  }
}

it.each([
  ['a page of rejections', () => '/v1/rejections'],
  ['the summary of rejections', () => '/v1/rejections/summary'],
  ['a page of receipts', () => '/v1/requests'],
  ['a receipt with an error', ({ failed }: { failed: string }) => `/v1/requests/${failed}`],
  ['a receipt with a key', ({ keyed }: { keyed: string }) => `/v1/requests/${keyed}`],
])('%s has nothing of a person whose sweep ends while it is read', async (_, pathOf) => {
  const acme = await newAccessOrganisation(test, serving);
  const person = await newPerson(acme);
  const { requests } = (await acme.send('GET', '/v1/requests')).json();
  const requestWith = (
    matches: (one: { type: string; status: number; idempotency_key: string | null }) => boolean,
  ) => requests.find(matches).request_id as string;
  const path = pathOf({
    failed: requestWith(({ type, status }) => type === 'customers' && status === 400),
    keyed: requestWith(({ idempotency_key }) => idempotency_key !== null),
  });
  const mentions = (body: string) => person.ids.some((id) => body.includes(id));
  expect(mentions((await acme.send('GET', path)).body)).toBe(true);
  await acme.erase(person);
  const { statusCode, body } = await readWhileSweepEnds(acme, person.ids, path);
  expect(statusCode).toBe(200);
  expect(mentions(body), body).toBe(false);
});
