import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { countErasure } from '../../src/erasure/count-erasure.ts';
import { erasureLimits } from '../../src/erasure/limits.ts';
import { indexPartitions } from '../../src/interactions/interaction-partitions.ts';
import { limits } from '../../src/limits.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { many } from '../support/new-records.ts';

/** Changes limits for the rest of a test. */
function change<L extends object>(all: L, changed: Partial<Record<keyof L, number>>): void {
  const before = { ...all };
  onTestFinished(() => void Object.assign(all, before));
  Object.assign(all, changed);
}

let test: TestApp;
/** A pool with the serving role's privileges. */
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

interface Interaction {
  readonly student: string | null;
  readonly user: string | null;
}

interface Stored {
  readonly customers: readonly { readonly id: string; readonly user: string }[];
  readonly transactions: readonly (string | null)[];
  readonly favourites: readonly string[];
  readonly interactions: readonly Interaction[];
}

const newOrganisation = () => test.organisation(`o-${randomUUID().slice(0, 13)}`);

async function store(organisationId: string, stored: Stored): Promise<void> {
  const { customers, transactions, favourites, interactions } = stored;
  await test.pool.query(
    `insert into customers (organisation_id, customer_id, user_id, region, is_deleted)
     select $1, i.id, i.user_id, 'GB', false from unnest($2::uuid[], $3::uuid[]) as i(id, user_id)`,
    [organisationId, customers.map(({ id }) => id), customers.map(({ user }) => user)],
  );
  await test.pool.query(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, is_deleted)
     select $1, gen_random_uuid(), gen_random_uuid(), 'GB', 1, 1, i.id, false from unnest($2::uuid[]) as i(id)`,
    [organisationId, transactions],
  );
  await test.pool.query(
    `insert into student_favourites (organisation_id, student_favourite_id, student_id, shop_id, is_deleted)
     select $1, gen_random_uuid(), i.id, gen_random_uuid(), false from unnest($2::uuid[]) as i(id)`,
    [organisationId, favourites],
  );
  // On three days. Two of them can be indexed.
  await test.pool.query(
    `insert into interactions (organisation_id, interaction_id, interaction_type, user_id, student_id, item_type, item_id,
       event_timestamp, event_time)
     select $1, uuid_floor(now() - (i.n % 3) * interval '1 day' - i.n * interval '1 ms'), 'SHARE', i.user_id, i.student, 'SHOP',
       gen_random_uuid(), '1', now()
     from unnest($2::uuid[], $3::text[]) with ordinality as i(student, user_id, n)`,
    [organisationId, interactions.map(({ student }) => student), interactions.map(({ user }) => user)],
  );
}

/** The rule, written again: who is erased, and what is theirs. */
function expectedRows(
  { customers, transactions, favourites, interactions }: Stored,
  named: readonly string[],
) {
  const first = customers.filter(({ id, user }) => named.includes(id) || named.includes(user));
  const users = new Set(first.map(({ user }) => user));
  const all = customers.filter(({ user }) => users.has(user));
  const ids = new Set([...named, ...all.flatMap(({ id, user }) => [id, user])]);
  const isOwn = ({ student, user }: Interaction) =>
    student === null ? user !== null && ids.has(user) : ids.has(student);
  const own = interactions.filter(isOwn);
  const unlinked = interactions.filter((one) => !isOwn(one) && one.user !== null && ids.has(one.user));
  return {
    customers: all.length,
    transactions: transactions.filter((id) => id !== null && ids.has(id)).length,
    student_favourites: favourites.filter((id) => ids.has(id)).length,
    interactions: own.length,
    interactions_unlinked: unlinked.length,
  };
}

/** Returns pseudorandom numbers below `max`, so that a failure can be repeated. */
function randomFrom(seed: number): (max: number) => number {
  let state = seed;
  return (max) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * max);
  };
}

it.each([1, 2, 3])('counts what the rule says, with and without indexes (seed %i)', async (seed) => {
  const { organisationId } = await newOrganisation();
  const random = randomFrom(seed);
  const of = <T>(list: readonly T[]) => list[random(list.length)] as T;
  const [users, ids] = [many(12, () => randomUUID()), many(16, () => randomUUID())];
  const anyUser = [...users, ...many(4, (at) => `visitor ${at}`), ...ids.slice(0, 2)];
  const stored: Stored = {
    customers: ids.map((id) => ({ id, user: of(users) })),
    transactions: many(60, () => of([...ids, null])),
    favourites: many(40, () => of(ids)),
    interactions: many(300, () => ({ student: of([...ids, null, null]), user: of([...anyUser, null]) })),
  };
  await store(organisationId, stored);
  const other = await newOrganisation();
  await store(other.organisationId, stored);
  for (const isIndexed of [false, true]) {
    if (isIndexed) await indexPartitions(test.pool);
    for (let round = 0; round < 6; round++) {
      const stranger = randomUUID();
      const customerIds = [...new Set([...many(random(3), () => of(ids)), stranger])];
      const userIds = [...new Set(many(random(4), () => of(anyUser)))];
      const request = { organisationId, mode: 'anonymise' as const, customerIds, userIds };
      expect(await countErasure(serving, request)).toEqual({
        dry_run: true,
        mode: 'anonymise',
        people: customerIds.length + userIds.length,
        known: customerIds.length - 1,
        unknown_customer_ids: [stranger],
        rows: expectedRows(stored, [...customerIds, ...userIds]),
        complete: true,
      });
    }
  }
});

it('counts more rows and ids than a statement reads', async () => {
  change(limits, { erasureRowsPerScan: 100 });
  change(erasureLimits, { idsPerStatement: 20, countMs: 100_000 });
  const { organisationId } = await newOrganisation();
  const user = randomUUID();
  const customers = many(erasureLimits.idsPerStatement + 5, () => ({ id: randomUUID(), user }));
  const [one = '', other = ''] = customers.map(({ id }) => id);
  const count = 9 * limits.erasureRowsPerScan + 70;
  const stored: Stored = {
    customers: [
      ...customers,
      ...many(limits.erasureRowsPerScan, () => ({ id: randomUUID(), user: randomUUID() })),
    ],
    transactions: many(limits.erasureRowsPerScan + 50, (at) => [one, other, null][at % 3] ?? null),
    favourites: [],
    interactions: many(count, (at) => ({
      student: [one, other, null, randomUUID()][at % 4] ?? null,
      user: [user, 'visitor'][at % 2] ?? null,
    })),
  };
  await store(organisationId, stored);
  for (const isIndexed of [false, true]) {
    if (isIndexed) await indexPartitions(test.pool);
    for (const named of [[one], ['visitor'], ['visitor', other]]) {
      const [customerIds, userIds] = [
        named.filter((id) => id !== 'visitor'),
        named.filter((id) => id === 'visitor'),
      ];
      const { rows, complete } = await countErasure(serving, {
        organisationId,
        mode: 'delete',
        customerIds,
        userIds,
      });
      expect({ named, rows, complete }).toEqual({ named, rows: expectedRows(stored, named), complete: true });
    }
  }
});

it('does not count rows of people who are already being erased', async () => {
  const { organisationId, key } = await newOrganisation();
  const [customer, kept] = many(2, () => ({ id: randomUUID(), user: randomUUID() }));
  if (!customer || !kept) throw new Error('there are no customers');
  await store(organisationId, {
    customers: [customer, kept],
    transactions: [customer.id],
    favourites: [customer.id],
    interactions: [
      { student: customer.id, user: null },
      { student: kept.id, user: customer.user },
    ],
  });
  const post = (url: string) =>
    test.app.inject({
      method: 'POST',
      url,
      headers: { authorization: `Bearer ${key}` },
      payload: { customer_ids: [customer.id] },
    });
  const before = (await post('/v1/erasures?dry_run=true')).json();
  expect(before).toMatchObject({
    known: 1,
    rows: { customers: 1, transactions: 1, student_favourites: 1, interactions: 1, interactions_unlinked: 1 },
  });
  expect((await post('/v1/erasures')).statusCode).toBe(202);
  const after = (await post('/v1/erasures?dry_run=true')).json();
  expect(after).toMatchObject({ known: 0, unknown_customer_ids: [customer.id] });
  expect(Object.values(after.rows)).toEqual([0, 0, 0, 0, 0]);
});

it('says so if time or ids ran out, and still counts the named customers', async () => {
  const { organisationId } = await newOrganisation();
  const user = randomUUID();
  const customers = many(30, () => ({ id: randomUUID(), user }));
  await store(organisationId, { customers, transactions: [], favourites: [], interactions: [] });
  const count = () =>
    countErasure(serving, {
      organisationId,
      mode: 'delete',
      customerIds: customers.slice(0, 2).map(({ id }) => id),
      userIds: [],
    });
  const { countMs, countedIdsMax } = erasureLimits;
  change(erasureLimits, { countMs: 0 });
  expect(await count()).toMatchObject({ known: 2, rows: { customers: 2, transactions: 0 }, complete: false });
  change(erasureLimits, { countMs, countedIdsMax: 2 });
  expect(await count()).toMatchObject({ rows: { customers: 2 }, complete: false });
  change(erasureLimits, { countedIdsMax });
  expect(await count()).toMatchObject({ rows: { customers: 30 }, complete: true });
});
