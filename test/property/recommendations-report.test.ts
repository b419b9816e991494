// @module-tag postgres-15

import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { inTransaction } from '../../src/postgres/transactions.ts';
import { countChanges } from '../../src/reports/count-changes.ts';
import { groupings, windowNames } from '../../src/reports/definitions.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { type AskedReport, reportOf, type TestInteraction, type TestTransaction } from './report-oracle.ts';

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

const id = (kind: string, n: number) =>
  `${kind.padEnd(8, '0')}-0000-4000-8000-${String(n).padStart(12, '0')}`;
const one = <T>(...values: T[]) => fc.constantFrom(...values);
const hourMs = 3_600_000;
const firstMs = Date.UTC(2026, 2, 1);

/** Produces only a few instants, so that some are equal, and others are just within or just outside a window or a year. */
const instant = fc
  .tuple(one(0, 1, 1, 2, 2, 3, 9, 366, 367), one(0, 1, 23, 24), one(-1, 0, 0, 0, 1))
  .map(([days, hours, ms]) => firstMs + days * 24 * hourMs + hours * hourMs + ms);

const students = one(null, id('5d', 1), id('5d', 1), id('5d', 1), id('5d', 2));
const item = fc.oneof(
  fc.record({ item_type: one('OFFER'), item_id: one(id('0f', 1), id('0f', 1), id('0f', 2)) }),
  fc.record({ item_type: one('SHOP'), item_id: one(id('5a', 1), id('5a', 1), id('5a', 2)) }),
  // This item has a shop's id, but is of another type.
  fc.record({ item_type: one('TAG'), item_id: one(id('5a', 1)) }),
);
const origin = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      source: one('SERVICE' as const),
      recommendation_id: one(id('4e', 1), id('4e', 2), id('4e', 3)),
    }),
  },
  { weight: 4, arbitrary: fc.record({ source: one(null), recommendation_id: one(null) }) },
  fc.record({ source: one('SERVICE' as const), recommendation_id: one(null) }),
  fc.record({ source: one(null), recommendation_id: one(id('4e', 1)) }),
);
const interactions = fc
  .array(
    fc.record({
      interaction_type: one('PAGE_VIEW', 'SHARE', 'DISCOUNT_CODE'),
      student_id: students,
      item,
      origin,
      platform: one(null, 'WEB', 'IOS'),
      country: one(null, '', '-', 'GB', `${'é'.repeat(100)}1`, `${'é'.repeat(100)}2`),
      event_time: instant,
      /** The order in which events are received, which differs from the order in which they happened. */
      order: fc.integer({ min: 0, max: 9_999 }),
    }),
    { minLength: 5, maxLength: 60, size: 'max' },
  )
  .map((drawn) =>
    drawn.map(
      ({ item: of, origin: from, order, ...rest }, n): TestInteraction => ({
        ...rest,
        ...of,
        ...from,
        interaction_id: idReceived(order, n),
      }),
    ),
  );
const transactions = fc.array(
  fc.record({
    // A repeated transaction id is an update. One transaction has the same id as an interaction.
    transaction_id: one(...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => id('7a', n)), idReceived(0, 0)),
    student_id: students,
    shop_id: one(id('5a', 1), id('5a', 2)),
    offer_id: one(null, id('0f', 1), id('0f', 2)),
    amount: fc.integer({ min: 1, max: 99_999 }),
    savings: fc.integer({ min: 0, max: 9_999 }),
    created: fc.oneof({ weight: 9, arbitrary: instant }, one(null)),
    is_deleted: one(false, false, false, true),
  }),
  { minLength: 1, maxLength: 25, size: 'max' },
);
const ranges = fc
  .tuple(fc.integer({ min: -1, max: 12 }), fc.oneof(fc.integer({ min: 1, max: 18 }), one(365, 366)))
  .map(([start, days]) => {
    const day = (n: number) => new Date(firstMs + n * 24 * hourMs).toISOString().slice(0, 10);
    return { from: day(start), to: day(start + days) };
  });

/** Returns a UUIDv7 from today, because today has a partition. */
function idReceived(order: number, n: number): string {
  const todayMs = Math.floor(Date.now() / (24 * hourMs)) * 24 * hourMs;
  const time = (todayMs + order).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(n).padStart(12, '0')}`;
}

const histories = fc.record({
  interactions,
  transactions,
  /** How many interactions and transactions are added before each maintenance run. */
  steps: fc.array(fc.record({ interactions: fc.nat({ max: 15 }), transactions: fc.nat({ max: 10 }) }), {
    maxLength: 6,
  }),
  range: ranges,
  limit: one(1, 3, 100, 100),
});

let organisations = 0;

it('the report equals one that is recomputed from the tables as the document defines it', async () => {
  await fc.assert(
    fc.asyncProperty(histories, async ({ interactions, transactions, steps, range, limit }) => {
      const { organisationId, key } = await test.organisation(`org-${++organisations}`);
      const stored = new Map<string, TestTransaction>();
      let [doneInteractions, doneTransactions] = [0, 0];
      const rest = { interactions: interactions.length, transactions: transactions.length };
      for (const [number, size] of [...steps, rest].entries()) {
        const newInteractions = interactions.slice(doneInteractions, doneInteractions + size.interactions);
        const newTransactions = transactions.slice(doneTransactions, doneTransactions + size.transactions);
        doneInteractions += newInteractions.length;
        doneTransactions += newTransactions.length;
        await storeInteractions(organisationId, newInteractions);
        for (const transaction of newTransactions) {
          await storeTransaction(organisationId, transaction);
          stored.set(transaction.transaction_id, transaction);
        }
        // Changes are delivered at least once, so some ids are repeated although nothing has changed.
        const changed = {
          interactions: {
            ids: interactions
              .slice(Math.max(0, doneInteractions - newInteractions.length - 5), doneInteractions)
              .map((one) => one.interaction_id),
          },
          transactions: [
            ...new Set(transactions.slice(0, doneTransactions).map((one) => one.transaction_id)),
          ],
        };
        await inTransaction(test.pool, (client) =>
          countChanges(client, organisationId, String(number + 1), changed),
        );
      }
      for (const window of windowNames) {
        for (const group_by of groupings) {
          const asked = { ...range, window, group_by };
          const expected = reportOf(asked, interactions, [...stored.values()]);
          expect(await ask(key, asked, limit)).toEqual({ ...expected, groups: sorted(expected.groups) });
        }
      }
    }),
    // Shrinking a counterexample would take many minutes, but its seed is printed.
    { ...propertyRuns(25), endOnFailure: true },
  );
});

async function ask(key: string, asked: AskedReport, limit: number) {
  const groups: { group: object }[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const query = new URLSearchParams({
      ...asked,
      limit: String(limit),
      ...(cursor !== undefined && { cursor }),
    });
    const answer = await test.app.inject({
      url: `/v1/reports/recommendations?${query}`,
      headers: { authorization: `Bearer ${key}` },
    });
    expect(answer.statusCode, answer.body).toBe(200);
    const { total, all, unusable, groups: page, next_cursor } = answer.json();
    expect(page.length).toBeLessThanOrEqual(limit);
    groups.push(...page);
    cursor = next_cursor;
    if (cursor === null) return { total, all, unusable, groups: sorted(groups) };
  }
  throw new Error('a page has a cursor or null');
}

/** Sorts the groups, because their order is not defined. */
function sorted<T extends { readonly group: object }>(groups: readonly T[]): T[] {
  return [...groups].sort((a, b) => (JSON.stringify(a.group) < JSON.stringify(b.group) ? -1 : 1));
}

async function storeInteractions(organisationId: string, added: readonly TestInteraction[]): Promise<void> {
  await test.pool.query(
    `insert into interactions (organisation_id, interaction_id, interaction_type, student_id, item_type, item_id, platform,
       country, source, recommendation_id, event_timestamp, event_time)
     select $1::uuid, interaction_id, interaction_type, student_id, item_type, item_id, platform, country, source,
       recommendation_id, to_jsonb(event_time), to_timestamp(event_time / 1000.0)
     from jsonb_to_recordset($2::jsonb) as i(interaction_id uuid, interaction_type text, student_id uuid, item_type text,
       item_id uuid, platform text, country text, source text, recommendation_id uuid, event_time bigint)`,
    [organisationId, JSON.stringify(added)],
  );
}

async function storeTransaction(organisationId: string, transaction: TestTransaction): Promise<void> {
  await test.pool.query(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, offer_id, created,
       is_deleted)
     select $1::uuid, transaction_id, shop_id, 'GB', savings / 100.0, amount / 100.0, student_id, offer_id,
       to_timestamp(created / 1000.0), is_deleted
     from jsonb_to_record($2::jsonb) as t(transaction_id uuid, shop_id uuid, savings numeric, amount numeric, student_id uuid,
       offer_id uuid, created bigint, is_deleted boolean)
     on conflict (organisation_id, transaction_id) do update set shop_id = excluded.shop_id, savings = excluded.savings,
       amount = excluded.amount, student_id = excluded.student_id, offer_id = excluded.offer_id, created = excluded.created,
       is_deleted = excluded.is_deleted`,
    [organisationId, JSON.stringify(transaction)],
  );
}
