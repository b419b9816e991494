// @module-tag postgres-15

import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { ChangeCursors, startOf } from '../../src/changes/change-cursor.ts';
import { freshCursor, numberAllChanges, stateOf } from '../../src/changes/change-log.ts';
import { dropOldChanges, numberForAll } from '../../src/changes/change-retention.ts';
import { readConfig } from '../../src/config.ts';
import { SignedCursors } from '../../src/keys/signed-cursors.ts';
import { limits } from '../../src/limits.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { inTransaction } from '../../src/postgres/transactions.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { many } from '../support/new-records.ts';
import { addOldChanges } from '../support/old-changes.ts';

/** Tests numbering changes after their commit, while other sessions write and read. */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const newTenant = () => test.organisation(`acme-${randomUUID().slice(0, 8)}`);
const newOrganisation = async () => (await newTenant()).organisationId;

/** Adds a change with one id, and calls `before` before committing it. */
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

const cursorsOf = async (organisationId: string) =>
  new ChangeCursors(await new SignedCursors(test.pool).for(organisationId, 'feed'));

async function numbered(organisationId: string): Promise<{ number: number; id: string }[]> {
  const { rows } = await test.pool.query<{ number: string; id: string }>(
    `select number, ids[1] as id from changes where organisation_id = $1 and number is not null order by number`,
    [organisationId],
  );
  return rows.map(({ number, id }) => ({ number: Number(number), id }));
}

it('an open transaction delays nobody, and its changes are numbered after everything that was read before', async () => {
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

it('everything committed so far is numbered, however fast an organisation uploads', async () => {
  const organisationId = await newOrganisation();
  const before = await Promise.all(many(limits.changesNumberedAtOnce + 1, () => write(organisationId)));
  let later = 0;
  const busy = new Proxy(test.pool, {
    get(pool, name) {
      const found = Reflect.get(pool, name);
      if (name !== 'query') return typeof found === 'function' ? found.bind(pool) : found;
      return async (...given: unknown[]) => {
        if (++later > 10) throw new Error('numbering does not end');
        await write(organisationId);
        return found.apply(pool, given);
      };
    },
  });
  const { last, hasUnnumbered } = await numberAllChanges(busy, organisationId);
  expect(hasUnnumbered).toBe(true);
  expect(last).toBe(before.length + 1);
});

it('a reader that has seen a number never finds a smaller one, however many write, number and read', async () => {
  const organisationId = await newOrganisation();
  const writing = { count: 5 };
  const written = Promise.all(
    many(5, async (writer) => {
      const ids: string[] = [];
      for (let round = 0; round < 40; round++) {
        // Some transactions stay open for a short time, so that others commit before them.
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
        // The changes that were read earlier are the same, and no change was inserted between them.
        expect(all.slice(0, last).map(({ id }) => id)).toEqual(seen);
        seen.push(...all.slice(last).map(({ id }) => id));
        last = all.length;
      }
    }),
  );
  const ids = (await written).flat();
  for (const seen of await read) expect(seen.toSorted()).toEqual(ids.toSorted());
});

it('changes of all organisations without readers are numbered, a bounded number at a time', async () => {
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
    expect(await stateOf(test.pool, organisationId)).toMatchObject({
      last: count,
      forgotten: 0,
      hasUnnumbered: false,
    });
});

it('old days are dropped once they are numbered, and their changes are known to be forgotten', async () => {
  const [{ organisationId: one, key }, other] = await Promise.all([newTenant(), newOrganisation()]);
  const kept = await addOldChanges(test.pool, [one], 7);
  const dropped = await addOldChanges(test.pool, [one, other], 8);
  await numberAllChanges(test.pool, one);
  await write(one);
  expect(await dropOldChanges(test.pool, 7)).toBe('more');
  await numberForAll(test.pool);
  expect(await dropOldChanges(test.pool, 7)).toBe('all');
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
  expect(await stateOf(test.pool, one)).toMatchObject({ last: 3, forgotten: 1, hasUnnumbered: false });
  expect(await stateOf(test.pool, other)).toMatchObject({ last: 1, forgotten: 1, hasUnnumbered: false });

  const cursors = await cursorsOf(one);
  const { epochs } = await stateOf(test.pool, one);
  const read = (query = '') =>
    test.app.inject({ url: `/v1/changes${query}`, headers: { authorization: `Bearer ${key}` } });
  const old = await read(`?after=${cursors.write(startOf(1, epochs))}`);
  expect([old.statusCode, old.json().code]).toEqual([410, 'cursor_too_old']);
  for (const query of ['', `?after=${cursors.write(startOf(2, epochs))}`])
    expect((await read(query)).json().changes).toHaveLength(2);
});

// Citus does not allow such a trigger on a distributed table.
it.skipIf(inject('citus') !== null).each([
  ['off', 'on'],
  ['remote_apply', 'remote_apply'],
])('numbers are committed durably if synchronous_commit is %s', async (set, expected) => {
  const organisationId = await newOrganisation();
  await write(organisationId);
  const database = new URL(test.databaseUrl).pathname.slice(1);
  await test.pool.query(`
    alter database ${database} set synchronous_commit = ${set};
    create table committed (synchronous_commit text);
    create function note_commit() returns trigger language plpgsql as $$ begin
      insert into committed values (current_setting('synchronous_commit')); return null; end $$;
    create constraint trigger planted after update on change_counters deferrable initially deferred
      for each row execute function note_commit()`);
  const pool = createPool(readConfig({ DATABASE_URL: test.databaseUrl }), () => {});
  try {
    expect(await numberAllChanges(pool, organisationId)).toMatchObject({ last: 1 });
    const { rows } = await pool.query<{ synchronous_commit: string }>('select distinct * from committed');
    expect(rows).toEqual([{ synchronous_commit: expected }]);
  } finally {
    await pool.end();
    await test.pool.query(`
      alter database ${database} reset synchronous_commit; drop function note_commit cascade; drop table committed`);
  }
});

/**
 * Creates an organisation whose change log can be reset to an earlier state, like the log of a standby that lacks the
 * last commits.
 */
async function newLog() {
  const { organisationId, key } = await newTenant();
  const cursors = await cursorsOf(organisationId);
  const read = (after: string) =>
    test.app.inject({ url: `/v1/changes?after=${after}`, headers: { authorization: `Bearer ${key}` } });
  const query = async (text: string, values: unknown[] = []) =>
    (await test.pool.query(text, [organisationId, ...values])).rows;
  return {
    /** Adds changes, assigning a number to each one before adding the next. Returns their ids. */
    async add(count: number): Promise<string[]> {
      const ids: string[] = [];
      for (let at = 0; at < count; at++) {
        ids.push(await write(organisationId));
        await numberAllChanges(test.pool, organisationId);
      }
      return ids;
    },
    cursor: () => freshCursor(test.pool, organisationId, cursors),
    async idsAfter(cursor: string): Promise<string[]> {
      const answer = await read(cursor);
      expect(answer.statusCode, answer.body).toBe(200);
      return answer.json().changes.map(({ id }: { id: string }) => id);
    },
    async statusAfter(cursor: string): Promise<number> {
      return (await read(cursor)).statusCode;
    },
    epochs: async () => (await stateOf(test.pool, organisationId)).epochs,
    /** Saves the standby's state. The returned function promotes the standby. */
    async replicate(): Promise<() => Promise<void>> {
      const [counter] = await query('select * from change_counters where organisation_id = $1');
      return async () => {
        await query(
          'update change_counters set last_number = $2, epochs = $3, server_started = $4 where organisation_id = $1',
          [counter.last_number, JSON.stringify(counter.epochs), counter.server_started],
        );
        await query('delete from changes where organisation_id = $1 and number > $2', [counter.last_number]);
        await this.move();
      };
    },
    /** Makes another server assign the numbers from now on. */
    async move(): Promise<void> {
      await query('update change_counters set server_started = $2 where organisation_id = $1', [
        `start of ${randomUUID()}`,
      ]);
    },
  };
}

it('a feed continues when another server has all changes', async () => {
  const log = await newLog();
  const first = await log.cursor();
  const ids = await log.add(2);
  const second = await log.cursor();
  for (let time = 0; time < 3; time++) {
    await log.move();
    expect(await log.idsAfter(first)).toEqual(ids);
    ids.push(...(await log.add(2)));
    expect(await log.idsAfter(first)).toEqual(ids);
    expect(await log.idsAfter(second)).toEqual(ids.slice(2));
  }
  expect(await log.epochs()).toHaveLength(4);
});

it('a cursor past changes that a standby lacks is too old, and every other one continues', async () => {
  const log = await newLog();
  const kept = await log.add(3);
  const before = await log.cursor();
  const takeOver = await log.replicate();
  await log.add(2);
  const beyond = await log.cursor();
  await takeOver();
  expect(await log.statusAfter(beyond)).toBe(410);
  expect(await log.idsAfter(before)).toEqual([]);
  // Add as many changes as were lost, and then more.
  for (const count of [2, 4]) {
    kept.push(...(await log.add(count)));
    expect(await log.statusAfter(beyond)).toBe(410);
    expect(await log.idsAfter(before)).toEqual(kept.slice(3));
  }
  expect(await log.idsAfter(await log.cursor())).toEqual([]);
});

it('a cursor of a standby that was lost in turn, with the record of its epoch, is too old', async () => {
  const log = await newLog();
  const kept = await log.add(3);
  const before = await log.cursor();
  const [firstTakesOver, secondTakesOver] = [await log.replicate(), await log.replicate()];
  const lost: string[] = [];
  for (const takeOver of [firstTakesOver, secondTakesOver]) {
    await log.add(3);
    lost.push(await log.cursor());
    await takeOver();
  }
  // The log is back at the primary's third change. On Citus, a shard can also move back to an earlier server.
  kept.push(...(await log.add(5)));
  for (const cursor of lost) expect(await log.statusAfter(cursor)).toBe(410);
  expect(await log.idsAfter(before)).toEqual(kept.slice(3));
  expect((await log.epochs()).map(({ first }) => first)).toEqual([1, 4]);
});

it('epochs whose changes are all forgotten are not kept', async () => {
  const { organisationId } = await newTenant();
  const epochsAfter = async (isForgotten: boolean) => {
    await write(organisationId);
    await numberAllChanges(test.pool, organisationId);
    await test.pool.query(
      `update change_counters set server_started = 'another', forgotten_number = case when $2 then last_number else 0 end
       where organisation_id = $1`,
      [organisationId, isForgotten],
    );
    await write(organisationId);
    return (await numberAllChanges(test.pool, organisationId)).epochs.map(({ first }) => first);
  };
  expect(await epochsAfter(false)).toEqual([1, 2]);
  // Number 3 is dropped from the log, but it could be the last change that a reader has read.
  expect(await epochsAfter(true)).toEqual([2, 4]);
  expect(await epochsAfter(true)).toEqual([4, 6]);
  await test.pool.query('update change_counters set epochs = $2 where organisation_id = $1', [
    organisationId,
    JSON.stringify(many(limits.changeEpochsKept, (at) => ({ id: '0badcafe', first: at }))),
  ]);
  expect(await epochsAfter(false)).toHaveLength(limits.changeEpochsKept);
});

it('a page of changes with alternating types is read with one statement per type, and has them in order', async () => {
  const { organisationId, key } = await newTenant();
  const types = ['tags', 'shops', 'customers'];
  const ids = many(limits.changesPerPageMax, () => randomUUID());
  await test.pool.query(
    `insert into changes (organisation_id, change_id, type, size, ids)
     select $1, change_id, ($4::text[])[1 + at % ${types.length}], 1, array[id]
     from unnest($2::uuid[], $3::uuid[]) with ordinality as i(change_id, id, at)`,
    [organisationId, ids.map(() => randomUUIDv7()).toSorted(), ids, types],
  );
  let reads = 0;
  const { query } = pg.Client.prototype;
  const spied = pg.Client.prototype as { query: (...sent: unknown[]) => unknown };
  spied.query = function (this: pg.Client, ...sent) {
    if ((sent[0] as { text?: string }).text?.includes('i.wanted')) reads++;
    return Reflect.apply(query, this, sent);
  };
  const { body } = await test.app.inject({
    url: `/v1/changes?limit=${ids.length}`,
    headers: { authorization: `Bearer ${key}` },
  });
  spied.query = query as never;
  const { changes } = JSON.parse(body) as { changes: { type: string; id: string }[] };
  expect(changes.map(({ id }) => id)).toEqual(ids);
  expect(changes.map(({ type }) => type)).toEqual(ids.map((_, at) => types[(at + 1) % types.length]));
  expect(reads).toBe(types.length);
});
