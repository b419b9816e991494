import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ChangeCursors } from '../../src/changes/change-cursor.ts';
import { numberAllChanges, stateOf } from '../../src/changes/change-log.ts';
import { dropOldChanges, numberForAll } from '../../src/changes/old-changes.ts';
import { limits } from '../../src/limits.ts';
import { inTransaction } from '../../src/postgres/transactions.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { many } from '../support/new-records.ts';
import { addOldChanges } from '../support/old-changes.ts';

/** Numbers are given after the commit, while others write and read, each in a session of its own. */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const newTenant = () => test.organisation(`acme-${randomUUID().slice(0, 8)}`);
const newOrganisation = async () => (await newTenant()).organisationId;

/** Adds a change with one id, and does something else before the transaction ends. */
async function write(organisationId: string, before = async () => {}): Promise<string> {
  const id = randomUUID();
  await inTransaction(test.pool, async (client) => {
    await client.query(
      `insert into changes (organisation_id, change_id, type, size, ids) values ($1, $2, 'tags', 1, array[$3::uuid])`,
      [organisationId, randomUUIDv7(), id],
    );
    await before();
  });
  return id;
}

async function numbered(organisationId: string): Promise<{ number: number; id: string }[]> {
  const { rows } = await test.pool.query<{ number: string; id: string }>(
    `select number, ids[1] as id from changes where organisation_id = $1 and number is not null order by number`,
    [organisationId],
  );
  return rows.map(({ number, id }) => ({ number: Number(number), id }));
}

it('a transaction that is left open holds nobody up, and what it wrote is numbered after all that was read before', async () => {
  const organisationId = await newOrganisation();
  const [isWritten, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const left = write(organisationId, () => {
    isWritten.resolve();
    return mayEnd.promise;
  });
  await isWritten.promise;
  const first = await write(organisationId);
  expect(await numberAllChanges(test.pool, organisationId)).toMatchObject({ last: 1 });
  const second = await write(organisationId);
  expect(await numberAllChanges(test.pool, organisationId)).toMatchObject({ last: 2 });
  mayEnd.resolve();
  const late = await left;
  expect(await numberAllChanges(test.pool, organisationId)).toMatchObject({ last: 3, hasUnnumbered: false });
  expect(await numbered(organisationId)).toEqual(
    [first, second, late].map((id, at) => ({ number: at + 1, id })),
  );
});

it('whoever has seen a number never meets a smaller one, however many write, number and read', async () => {
  const organisationId = await newOrganisation();
  const writing = { count: 5 };
  const written = Promise.all(
    many(5, async (writer) => {
      const ids: string[] = [];
      for (let round = 0; round < 40; round++) {
        // Some are left open for a while, so that others overtake them.
        ids.push(await write(organisationId, round % 5 === writer ? () => sleep(15) : undefined));
      }
      writing.count--;
      return ids;
    }),
  );
  const read = Promise.all(
    many(3, async () => {
      const seen: string[] = [];
      let last = 0;
      for (let isLast = false; ; ) {
        if (!isLast) isLast = writing.count === 0;
        else return seen;
        await numberAllChanges(test.pool, organisationId);
        const all = await numbered(organisationId);
        expect(all.map(({ number }) => number)).toEqual(many(all.length, (at) => at + 1));
        // What it has read already has not changed: nothing was put in between.
        expect(all.slice(0, last).map(({ id }) => id)).toEqual(seen);
        seen.push(...all.slice(last).map(({ id }) => id));
        last = all.length;
      }
    }),
  );
  const ids = (await written).flat();
  for (const seen of await read) expect(seen.toSorted()).toEqual(ids.toSorted());
});

it('numbers are given to all organisations where nobody reads, a bounded number at a time', async () => {
  const organisations = await Promise.all(many(3, newOrganisation));
  const count = limits.changesNumberedAtOnce + 1;
  for (const organisationId of organisations)
    await test.pool.query(
      `insert into changes (organisation_id, change_id, type, size, ids)
       select $1, ('${uuidFloor(Date.now()).slice(0, 24)}' || lpad(n::text, 12, '0'))::uuid, 'tags', 1, array[$1::uuid]
       from generate_series(1, ${count}) n`,
      [organisationId],
    );
  await numberForAll(test.pool);
  for (const organisationId of organisations)
    expect(await stateOf(test.pool, organisationId)).toEqual({
      last: count,
      forgotten: 0,
      hasUnnumbered: false,
    });
});

it('old days are dropped, and what they held is known to be forgotten, numbered or not', async () => {
  const [{ organisationId: one, key }, other] = await Promise.all([newTenant(), newOrganisation()]);
  const kept = await addOldChanges(test.pool, [one], 7);
  const dropped = await addOldChanges(test.pool, [one, other], 8);
  await numberAllChanges(test.pool, one);
  await write(one);
  await dropOldChanges(test.pool, 7);
  const { rows } = await test.pool.query<{
    kept: string | null;
    dropped: string | null;
    left: string | null;
  }>('select to_regclass($1) as kept, to_regclass($2) as dropped, to_regclass($3) as left', [
    kept,
    dropped,
    `to_drop_${dropped}`,
  ]);
  expect(rows[0]).toEqual({ kept, dropped: null, left: null });
  expect(await stateOf(test.pool, one)).toEqual({ last: 3, forgotten: 1, hasUnnumbered: false });
  expect(await stateOf(test.pool, other)).toEqual({ last: 1, forgotten: 1, hasUnnumbered: false });

  const cursors = new ChangeCursors(one);
  const read = (query = '') =>
    test.app.inject({ url: `/v1/changes${query}`, headers: { authorization: `Bearer ${key}` } });
  const old = await read(`?after=${cursors.write({ number: 1, offset: 0 })}`);
  expect([old.statusCode, old.json().code]).toEqual([410, 'cursor_too_old']);
  for (const query of ['', `?after=${cursors.write({ number: 2, offset: 0 })}`])
    expect((await read(query)).json().changes).toHaveLength(2);
});
