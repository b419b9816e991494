import { readConfig } from '../../src/config.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { firstUuid } from '../../src/registry/uuid-v7.ts';
import { groupings } from '../../src/reports/definitions.ts';
import { keepStep } from '../../src/reports/keep-report.ts';
import { type Bench, type Case, type Comparison, percentile } from '../case.ts';

const limitMs = 500;
const days = 90;
const asks = 20;

/**
 * The report of 90 days against the half second that it may take. `--rows` is the number of interactions; a tenth as many
 * transactions are stored. Full size is `--rows 20000000`.
 */
export const report: Case = {
  name: 'report',
  what: `the report on recommendations over ${days} days against its limit of ${limitMs} ms`,
  long: true,
  async run(bench) {
    await store(bench);
    await count(bench);
    const comparisons: Comparison[] = [];
    for (const grouping of groupings) comparisons.push(await ask(bench, grouping));
    return comparisons;
  },
};

/** A student for each 20 interactions; a fifth of them are touches, two to a recommendation; a tenth are codes. */
async function store({ cluster, tenant, rows, progress }: Bench): Promise<void> {
  progress(`storing ${rows} interactions and ${rows / 10} transactions`);
  const students = Math.max(100, Math.round(rows / 20));
  const id = (kind: string, number: string) =>
    `('${kind}000000-0000-4000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`;
  const random = (below: number) => `floor(random() * ${below})::integer`;
  const time = `now() - random() * interval '${days} days'`;
  await cluster.query('select setseed(0.5)');
  await cluster.query(
    `insert into interactions (organisation_id, interaction_id, interaction_type, student_id, item_type, item_id, country,
       platform, event_timestamp, source, recommendation_id, event_time)
     select $1::uuid,
       (lpad(to_hex((extract(epoch from date_trunc('day', now(), 'UTC')) * 1000)::bigint + n / 1000), 12, '0')
         || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
       case when random() < 0.1 then 'DISCOUNT_CODE' else 'PAGE_VIEW' end, ${id('5d', random(students))},
       case when of_offer then 'OFFER' else 'SHOP' end,
       case when of_offer then ${id('0f', random(8_000))} else ${id('5a', random(2_000))} end,
       'C' || ${random(20)}, (array['WEB', 'IOS', 'ANDROID', null])[1 + ${random(4)}], '1', case when touch then 'SERVICE' end,
       case when touch then ${id('4e', 'n / 10')} end, ${time}
     from (select n, random() < 0.7 as of_offer, random() < 0.2 as touch from generate_series(1, $2::integer) as n) as drawn`,
    [tenant.organisationId, rows],
  );
  await cluster.query(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, offer_id, created,
       is_deleted)
     select $1::uuid, ${id('7a', 'n')}, ${id('5a', random(2_000))}, 'GB', ${random(1_000)} / 100.0, 1 + ${random(10_000)} / 100.0,
       ${id('5d', random(students))}, ${id('0f', random(8_000))}, ${time}, false
     from generate_series(1, $2::integer) as n`,
    [tenant.organisationId, Math.round(rows / 10)],
  );
  await cluster.settle('interactions', 'transactions');
}

/** As maintenance does, without its pauses. */
async function count({ cluster, tenant, rows, progress }: Bench): Promise<void> {
  progress('counting');
  await cluster.query(
    `insert into report_progress values ($1, 0, 0, $2, $2)
     on conflict (organisation_id) do update set interactions_after = $2, transactions_after = $2`,
    [tenant.organisationId, firstUuid],
  );
  const pool = createPool(readConfig({ DATABASE_URL: cluster.url }), () => {});
  const startMs = performance.now();
  let steps = 0;
  while (await keepStep(pool, tenant.organisationId)) {
    if (++steps % 20 === 0) {
      await cluster.query(
        'analyze report_interactions, report_transactions, report_credits, report_sums, report_reach',
      );
      progress(`step ${steps}, ${Math.round((performance.now() - startMs) / 1_000)} s`);
    }
  }
  const microseconds = ((performance.now() - startMs) * 1_000) / (rows * 1.1);
  progress(`counted in ${steps} steps, ${Math.round(microseconds)} microseconds for each`);
  await pool.end();
  await cluster.settle(
    'report_interactions',
    'report_transactions',
    'report_credits',
    'report_sums',
    'report_reach',
  );
}

async function ask({ service, tenant, rows, progress }: Bench, grouping: string): Promise<Comparison> {
  progress(`asking by ${grouping}`);
  const day = (before: number) => new Date(Date.now() - before * 86_400_000).toISOString().slice(0, 10);
  const address = `http://127.0.0.1:${service.port}/v1/reports/recommendations`;
  const query = new URLSearchParams({ from: day(days - 1), to: day(-1), group_by: grouping });
  const taken: number[] = [];
  for (let time = 0; time <= asks; time++) {
    const startMs = performance.now();
    const answer = await fetch(`${address}?${query}`, { headers: { authorization: `Bearer ${tenant.key}` } });
    const body = (await answer.json()) as { total?: { recommendations: { touches: number } } };
    if (!answer.ok || !body.total?.recommendations.touches)
      throw new Error(`the report failed: ${JSON.stringify(body)}`);
    // The first one is for everyone's caches.
    if (time > 0) taken.push(performance.now() - startMs);
  }
  return {
    name: `report by ${grouping}`,
    yardstick: `the limit; ${rows} interactions`,
    unit: 'ms',
    bare: taken.map(() => limitMs),
    intake: taken,
    ratios: taken.map((ms) => ms / limitMs),
    goal: { atMost: 1 },
    notes: [`95 of 100 within ${Math.round(percentile(taken, 0.95))} ms`],
  };
}
