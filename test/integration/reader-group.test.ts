import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ChangeCursors, startOf } from '../../src/changes/change-cursor.ts';
import { numberAllChanges } from '../../src/changes/change-log.ts';
import type { RecordSource } from '../../src/changes/read-changes.ts';
import { type GroupReader, ReaderGroups } from '../../src/changes/reader-group.ts';
import { SignedCursors } from '../../src/keys/signed-cursors.ts';
import { limits } from '../../src/limits.ts';
import type { Pool } from '../../src/postgres/pool.ts';
import { takeRecords } from '../../src/records/read-records.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { many, newShop, newTag } from '../support/new-records.ts';

/** Tests streams that share pages. The test controls when each page's records are read. */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const page = limits.changesPerPageMax;
const idsOfAPage = () => many(page, () => randomUUID());

async function newOrganisation() {
  const { organisationId, key } = await test.organisation(`acme-${randomUUID().slice(0, 8)}`);
  const groups = new ReaderGroups();
  const cursors = new ChangeCursors(await new SignedCursors(test.pool).for(organisationId, 'feed'));
  const started: string[] = [];
  /** `before[n]` runs before the nth read of records, where n counts from 0. */
  const before: (() => Promise<void>)[] = [];
  const records: RecordSource = {
    async read(reads) {
      for (const { type, ids, take } of reads) {
        started.push(type);
        await before[started.length - 1]?.();
        const client = await test.pool.connect();
        await takeRecords(client, organisationId, 'tags', ids, take).finally(() => client.release());
      }
    },
    charactersMax: () => 1,
  };
  const looks: (() => Promise<void>)[] = [];
  let looked = 0;
  const asked = { queries: 0 };
  const query = async (...statement: Parameters<typeof test.pool.query>) => {
    asked.queries++;
    if (JSON.stringify(statement[0]).includes('ids_before')) await looks[looked++]?.();
    return test.pool.query(...statement);
  };
  const pool = { connect: () => test.pool.connect(), query } as unknown as Pool;
  return {
    organisationId,
    started,
    before,
    asked,
    /**
     * Blocks the nth read of the log, where n counts from 1. When that read starts, the promise resolves to a function
     * that resumes it.
     */
    holdLook(number: number): Promise<() => void> {
      const [isLooking, mayLook] = [Promise.withResolvers<() => void>(), Promise.withResolvers<void>()];
      looks[number - 1] = () => {
        isLooking.resolve(mayLook.resolve);
        return mayLook.promise;
      };
      return isLooking.promise;
    },
    /** Stores records as one change. */
    async store(ids: readonly string[], version: number, type = 'tags'): Promise<void> {
      const name = String(version);
      const records = ids.map((id) =>
        type === 'tags' ? newTag({ tag_id: id, name }) : newShop({ shop_id: id, name }),
      );
      const headers = { authorization: `Bearer ${key}` };
      const answer = await test.app.inject({
        method: 'POST',
        url: `/v1/data/${type}`,
        headers,
        payload: { records },
      });
      expect(answer.statusCode, answer.body).toBe(200);
    },
    async join(number: number): Promise<GroupReader> {
      const { epochs } = await numberAllChanges(test.pool, organisationId);
      const asked = { organisationId, types: new Set(['tags']), records, cursors };
      return groups.join(pool, asked, startOf(number, epochs));
    },
  };
}

/** Returns the ids on the next page in order, with their versions. */
async function readPage(reader: GroupReader): Promise<ReadonlyMap<string, number>> {
  const lines = (await reader.read()).lines.toString().trim().split('\n');
  const changes = lines.map((line) => JSON.parse(line) as { id: string; record: { name: string } });
  return new Map(changes.map(({ id, record }) => [id, Number(record.name)]));
}

it('pages without a common record are read at once', async () => {
  const acme = await newOrganisation();
  const [first, second] = [idsOfAPage(), idsOfAPage()];
  await acme.store(first, 1);
  await acme.store(second, 1);
  const isSecondBegun = Promise.withResolvers<void>();
  acme.before.push(() => isSecondBegun.promise);
  acme.before.push(async () => isSecondBegun.resolve());
  const reader = await acme.join(1);
  expect([...(await readPage(reader)).keys()]).toEqual(first);
  expect([...(await readPage(reader)).keys()]).toEqual(second);
  expect(acme.started).toHaveLength(2);
});

it('a page waits for an earlier page with one of its records, so that no reader sees the record go back', async () => {
  const acme = await newOrganisation();
  const [shared, ...rest] = idsOfAPage();
  if (shared === undefined) throw new Error('a page has ids');
  const others = [...idsOfAPage().slice(1), shared];
  await acme.store([shared, ...rest], 1);
  await acme.store(others, 2);
  acme.before.push(async () => {
    // This would be long enough to read the second page if the reader did not wait.
    await sleep(500);
    expect(acme.started).toHaveLength(1);
    await acme.store([shared], 3);
  });
  const reader = await acme.join(1);
  expect((await readPage(reader)).get(shared)).toBe(3);
  expect((await readPage(reader)).get(shared)).toBe(3);
});

it('a page that was read before a reader last saw its records is not given to that reader', async () => {
  const acme = await newOrganisation();
  const ids = idsOfAPage();
  const [one] = ids as [string];
  await acme.store(ids, 1);
  await acme.store(ids, 2);
  const [ahead, slow] = [await acme.join(2), await acme.join(2)];
  expect((await readPage(ahead)).get(one)).toBe(2);
  await acme.store([one], 3);
  const late = await acme.join(1);
  expect((await readPage(late)).get(one)).toBe(3);
  expect((await readPage(late)).get(one)).toBe(3);
  // The page is still available to the reader that had not read anything.
  expect((await readPage(slow)).get(one)).toBe(2);
});

it('after an error a reader gets the page that it requested, although the next one is pending', async () => {
  const acme = await newOrganisation();
  // This is one page more than a single read of the log returns.
  const pages = many(limits.changeIdsPerLook / page + 1, idsOfAPage);
  for (const ids of pages) await acme.store(ids, 1);
  const failed = Promise.withResolvers<void>();
  const last = pages.length;
  acme.before[last - 2] = () => failed.promise;
  const isLooking = acme.holdLook(2);
  const reader = await acme.join(1);
  for (let read = 1; read < last - 1; read++) await readPage(reader);
  const mayLook = await isLooking;
  const failing = reader.read();
  failed.reject(new Error('the connection was lost'));
  await expect(failing).rejects.toThrow('the connection was lost');
  const again = readPage(reader);
  mayLook();
  expect([...(await again).keys()]).toEqual(pages.at(-2));
  expect([...(await readPage(reader)).keys()]).toEqual(pages.at(-1));
});

it('nothing is polled repeatedly if only other types follow a page that a slow reader has not read', async () => {
  const acme = await newOrganisation();
  await acme.store(idsOfAPage(), 1);
  await acme.store([randomUUID()], 1, 'shops');
  const [fast] = [await acme.join(1), await acme.join(1)];
  await readPage(fast);
  const askedMeanwhile = async () => {
    const { queries } = acme.asked;
    await sleep(300);
    return acme.asked.queries - queries;
  };
  await expect.poll(askedMeanwhile).toBe(0);
});

it('a reader that follows a group past changes which a standby lacks keeps a valid position', async () => {
  const acme = await newOrganisation();
  const storeShops = async (changes: number) => {
    for (let change = 0; change < changes; change++) await acme.store([randomUUID()], 1, 'shops');
  };
  await acme.store([randomUUID()], 1);
  const [fast, slow] = [await acme.join(1), await acme.join(1)];
  // This reader has not read the first page, so the group keeps it.
  await acme.join(1);
  for (const reader of [fast, slow]) await reader.read();
  await storeShops(3);
  await fast.read();
  expect([slow.next.number, fast.next.number]).toEqual([2, 5]);
  // The standby lacks the last three changes, and assigns their numbers again.
  await test.pool.query('delete from changes where organisation_id = $1 and number > 1', [
    acme.organisationId,
  ]);
  await test.pool.query(
    `update change_counters set last_number = 1, server_started = 'another' where organisation_id = $1`,
    [acme.organisationId],
  );
  await storeShops(6);
  const last = randomUUID();
  await acme.store([last], 1);
  let { lines } = await slow.read();
  while (lines.length === 0) ({ lines } = await slow.read());
  expect(JSON.parse(lines.toString())).toMatchObject({ type: 'tags', id: last });
});
