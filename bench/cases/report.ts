import { readConfig } from '../../src/config.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { firstUuid } from '../../src/registry/uuid-v7.ts';
import { groupings } from '../../src/reports/definitions.ts';
import { keepStep } from '../../src/reports/keep-report.ts';
import { type Bench, type Case, type Comparison, percentile } from '../case.ts';
import { cpuSecondsOfEach } from '../cpu-time.ts';

const limitMs = 500;
const countMs = 0.15;
const days = 90;
const asks = 20;

/**
 * Measures the 90-day report: the cost of counting, whether the figures agree with the tables, and the response time
 * compared with its limit of half a second. `--rows` is the number of transactions, and there are ten times as many
 * interactions. The full size is `--rows 2000000`.
 */
export const report: Case = {
  name: 'report',
  what: `the report on recommendations over ${days} days: counting, and answers compared with their limit of ${limitMs} ms`,
  long: true,
  async run(bench) {
    await store(bench);
    const comparisons = [await count(bench)];
    // Enable the report only now, because otherwise the service and the bench would count at the same time.
    await bench.cluster.query(
      'update organisations set recommendations_report = true where organisation_id = $1',
      [bench.tenant.organisationId],
    );
    await check(bench);
    for (const grouping of groupings) comparisons.push(await ask(bench, grouping));
    return comparisons;
  },
};

/**
 * Stores the data. Each student has 20 interactions. A fifth of all interactions are touches, two per recommendation, and a
 * tenth are codes. Interactions are received in the order in which they happen, except for one in fifty, which is up to 30
 * days late. Each transaction follows an interaction.
 */
async function store({ cluster, tenant, rows, progress }: Bench): Promise<void> {
  const interactions = 10 * rows;
  progress(`storing ${interactions} interactions and ${rows} transactions`);
  const students = Math.max(100, Math.round(interactions / 20));
  const id = (kind: string, number: string) =>
    `('${kind}000000-0000-4000-8000-' || lpad(to_hex(${number}), 12, '0'))::uuid`;
  const random = (below: number) => `floor(random() * ${below})::integer`;
  await cluster.query('select setseed(0.5)');
  await cluster.query(
    `insert into interactions (organisation_id, interaction_id, interaction_type, student_id, item_type, item_id, country,
       platform, event_timestamp, source, recommendation_id, event_time)
     select $1::uuid,
       (lpad(to_hex((extract(epoch from date_trunc('day', now(), 'UTC')) * 1000)::bigint + n / 1000), 12, '0')
         || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
       case when random() < 0.1 then 'DISCOUNT_CODE' else 'PAGE_VIEW' end, ${id('5d', 'student')},
       case when of_offer then 'OFFER' else 'SHOP' end,
       case when of_offer then ${id('0f', random(8_000))} else ${id('5a', random(2_000))} end,
       'C' || student % 200, (array['WEB', 'IOS', 'ANDROID', null])[1 + ${random(4)}], '1', case when touch then 'SERVICE' end,
       case when touch then ${id('4e', 'n / 10')} end,
       now() - interval '${days} days' + n::float8 / $2::integer * interval '${days} days'
         - case when random() < 0.02 then random() * interval '30 days' else interval '0' end
     from (
       select n, ${random(students)} as student, random() < 0.7 as of_offer, random() < 0.2 as touch
       from generate_series(1, $2::integer) as n) as drawn`,
    [tenant.organisationId, interactions],
  );
  await cluster.query(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, offer_id, created,
       is_deleted)
     select organisation_id, ${id('7a', 'row_number() over ()')},
       case when item_type = 'SHOP' then item_id else ${id('5a', random(2_000))} end, 'GB', ${random(1_000)} / 100.0,
       1 + ${random(10_000)} / 100.0, student_id, case when item_type = 'OFFER' then item_id end,
       event_time + random() * interval '3 days', false
     from interactions where organisation_id = $1 and random() < 0.1`,
    [tenant.organisationId],
  );
  await cluster.settle('interactions', 'transactions');
}

const tables = ['report_interactions', 'report_visits', 'report_transactions', 'report_sums'];

/** Counts in the same way as maintenance, but without its pauses. */
async function count({ cluster, service, tenant, rows, progress }: Bench): Promise<Comparison> {
  progress('counting');
  await cluster.query(
    `insert into report_progress values ($1, 0, 0, $2, $2)
     on conflict (organisation_id) do update set interactions_after = $2, transactions_after = $2`,
    [tenant.organisationId, firstUuid],
  );
  const pool = createPool(readConfig({ DATABASE_URL: cluster.url }), () => {});
  const { postgres: before } = cpuSecondsOfEach({ service, cluster });
  const startMs = performance.now();
  let vacuumAt = 20;
  for (let steps = 1; await keepStep(pool, tenant.organisationId); steps++) {
    if (steps % 20 === 0) progress(`step ${steps}, ${Math.round((performance.now() - startMs) / 1_000)} s`);
    if (steps < vacuumAt) continue;
    // The bench turns autovacuum off, so vacuum here when autovacuum would, which is once a fifth of a table is new.
    await cluster.query(`vacuum (analyze) ${tables.join(', ')}`);
    vacuumAt = Math.max(steps + 20, Math.round(1.2 * steps));
  }
  const { postgres: after } = cpuSecondsOfEach({ service, cluster });
  const seconds = Math.round((performance.now() - startMs) / 1_000);
  await pool.end();
  await cluster.settle(...tables);
  const taken = [((after - before) * 1_000) / (10 * rows)];
  return {
    name: 'counting an interaction',
    yardstick: `${10 * rows} interactions and their transactions`,
    unit: 'ms of CPU of PostgreSQL',
    bare: [countMs],
    intake: taken,
    ratios: taken.map((ms) => ms / countMs),
    goal: { atMost: 1 },
    notes: [`${seconds} s in all`],
  };
}

/** Compares touches, students and credited transactions with the tables, in total and by country. */
async function check(bench: Bench): Promise<void> {
  bench.progress('recomputing from the tables');
  const inRange = (time: string) =>
    `${time} >= '${day(days - 1)}T00:00:00Z' and ${time} < '${day(-1)}T00:00:00Z'`;
  const expected = await bench.cluster.query<Record<string, string>>(
    `select i.country, touches, students, coalesce(t.transactions, 0) as transactions
     from (
       select country, count(*) as touches, count(distinct student_id) as students
       from interactions where organisation_id = $1 and source = 'SERVICE' and ${inRange('event_time')}
       group by grouping sets ((), (country))) as i
     left join (
       select country, count(*) filter (where source = 'SERVICE') as transactions
       from (
         select distinct on (t.transaction_id) i.country, i.source
         from transactions t join interactions i on i.organisation_id = t.organisation_id and i.student_id = t.student_id
           and i.item_id = case i.item_type when 'OFFER' then t.offer_id when 'SHOP' then t.shop_id end
           and i.event_time <= t.created and i.event_time > t.created - interval '24 hours'
         where t.organisation_id = $1 and ${inRange('t.created')}
         order by t.transaction_id, i.source nulls last, i.item_type, i.event_time desc, i.interaction_id desc) as credited
       group by grouping sets ((), (country))) as t on t.country is not distinct from i.country`,
    [bench.tenant.organisationId],
  );
  const { total, groups } = await answerTo(bench, { group_by: 'country', limit: '1000' });
  const found = [
    { country: null, recommendations: total.recommendations },
    ...groups.map(({ group, recommendations }) => ({ country: group.country, recommendations })),
  ];
  if (found.length !== expected.length)
    throw new Error(`${found.length} groups instead of ${expected.length}`);
  for (const { country, ...figures } of expected) {
    const { recommendations } = found.find((one) => one.country === country) ?? {};
    for (const [figure, value] of Object.entries(figures))
      if (recommendations?.[figure] !== Number(value))
        throw new Error(`${figure} of ${country}: ${recommendations?.[figure]} instead of ${value}`);
  }
  bench.progress(`${expected.length} groups agree with the tables`);
}

const day = (before: number) => new Date(Date.now() - before * 86_400_000).toISOString().slice(0, 10);

interface Answer {
  readonly total: { readonly recommendations: Readonly<Record<string, number>> };
  readonly groups: readonly {
    readonly group: Readonly<Record<string, string | null>>;
    readonly recommendations: Readonly<Record<string, number>>;
  }[];
}

async function answerTo({ service, tenant }: Bench, query: Record<string, string>): Promise<Answer> {
  const address = `http://127.0.0.1:${service.port}/v1/reports/recommendations`;
  const asked = new URLSearchParams({ from: day(days - 1), to: day(-1), ...query });
  const answer = await fetch(`${address}?${asked}`, { headers: { authorization: `Bearer ${tenant.key}` } });
  const body = (await answer.json()) as Answer;
  if (!answer.ok || !body.total.recommendations.touches)
    throw new Error(`the report failed: ${JSON.stringify(body)}`);
  return body;
}

async function ask(bench: Bench, grouping: string): Promise<Comparison> {
  bench.progress(`asking by ${grouping}`);
  const taken: number[] = [];
  for (let time = 0; time <= asks; time++) {
    const startMs = performance.now();
    await answerTo(bench, { group_by: grouping });
    // Skip the first request, which only fills the caches.
    if (time > 0) taken.push(performance.now() - startMs);
  }
  return {
    name: `report by ${grouping}`,
    yardstick: `the limit; ${10 * bench.rows} interactions`,
    unit: 'ms',
    bare: taken.map(() => limitMs),
    intake: taken,
    ratios: taken.map((ms) => ms / limitMs),
    goal: { atMost: 1 },
    notes: [`95 of 100 within ${Math.round(percentile(taken, 0.95))} ms`],
  };
}
