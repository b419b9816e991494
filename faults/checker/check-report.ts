import { setTimeout as sleep } from 'node:timers/promises';
import { reportOf, type TestInteraction, type TestTransaction } from '../../test/property/report-oracle.ts';
import { ask } from '../clients/client.ts';
import type { Organisation } from '../world/organisation.ts';
import type { World } from '../world/world.ts';
import type { Violate } from './check-records.ts';
import { isOfErased } from './ledger.ts';

const asked = { from: '2026-09-01', to: '2026-11-01', window: '24h', group_by: 'item_type' } as const;
const countedWithinMs = 300_000;

type Figures = Record<string, number | null>;

/**
 * Compares the totals of the report on recommendations with a report that is counted from the tables. Figures stay when a
 * person is erased, so the report may count what was sent about erased people in addition.
 */
export async function checkReport(world: World, organisation: Organisation, violate: Violate): Promise<void> {
  const expected = totals(...(await readEvents(world, organisation)));
  let more = 0;
  for (const write of organisation.ledger.everyWrite()) if (isOfErased(write)) more++;
  let shown: unknown;
  for (
    const deadlineMs = performance.now() + countedWithinMs;
    performance.now() < deadlineMs;
    await sleep(1_000)
  ) {
    const query = new URLSearchParams(asked);
    const reply = await ask({ world, organisation }, 'GET', `/v1/reports/recommendations?${query}`);
    shown = reply?.body.total ?? reply?.body;
    const { recommendations, browsing } = (reply?.body.total ?? {}) as Record<string, Figures>;
    if (
      isWithin(recommendations, expected.recommendations, more) &&
      isWithin(browsing, expected.browsing, more)
    )
      return;
  }
  violate('I12: the report differs from the tables', { slug: organisation.slug, shown, expected, more });
}

function isWithin(shown: Figures | undefined, expected: Figures, more: number): boolean {
  return Object.entries(expected).every(([name, value]) => {
    const [figure, least] = [shown?.[name] ?? -1, value ?? 0];
    if (more > 0 && (name === 'revenue' || name === 'savings')) return figure >= least;
    return figure >= least && figure <= least + more;
  });
}

async function readEvents(
  { database }: World,
  { id }: Organisation,
): Promise<[TestInteraction[], TestTransaction[]]> {
  const interactions = await database.query<TestInteraction>(
    `select interaction_id::text, interaction_type, student_id::text, item_type, item_id::text, platform, country, source,
       recommendation_id::text, round(extract(epoch from event_time) * 1000)::double precision as event_time
     from interactions where organisation_id = $1`,
    [id],
  );
  const transactions = await database.query<TestTransaction>(
    `select transaction_id::text, student_id::text, shop_id::text, offer_id::text,
       round(amount * 100)::double precision as amount, round(savings * 100)::double precision as savings,
       round(extract(epoch from created) * 1000)::double precision as created, is_deleted
     from transactions where organisation_id = $1`,
    [id],
  );
  return [interactions, transactions];
}

/** A purchase is credited to interactions of the same student, so the figures of students can be added up. */
function totals(interactions: readonly TestInteraction[], transactions: readonly TestTransaction[]) {
  const visits = Map.groupBy(interactions, ({ student_id }) => student_id);
  const sales = Map.groupBy(transactions, ({ student_id }) => student_id);
  const sums: Record<'recommendations' | 'browsing', Record<string, number>> = {
    recommendations: {},
    browsing: {},
  };
  for (const [student, own] of visits) {
    const { total } = reportOf(asked, own, student === null ? [] : (sales.get(student) ?? []));
    for (const kind of ['recommendations', 'browsing'] as const)
      for (const [name, value] of Object.entries(total[kind]))
        if (typeof value === 'number' && name !== 'share_of_transactions')
          sums[kind][name] = Math.round(((sums[kind][name] ?? 0) + value) * 100) / 100;
  }
  return sums;
}
