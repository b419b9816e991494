import { written } from '../interactions/interaction-rows.ts';
import type { Client } from '../postgres/pool.ts';
import { basisOf, countryCharactersMax, longestWindowHours, windows } from './definitions.ts';

/** What a step counts: ids of interactions and of transactions that are new or have changed. */
export interface Changed {
  readonly interactions: readonly string[];
  readonly transactions: readonly string[];
}

/** A row counts under each of these. A null is written as a hyphen; every other text begins with an equals sign. */
const dimensions = (row: string) => `
  cross join lateral (values ('all' collate "C", '' collate "C"), ('item_type', ${row}.item_type), ('item', ${row}.item_type || ':' || ${row}.item_id),
    ('platform', coalesce('=' || ${row}.platform, '-')), ('country', coalesce('=' || ${row}.country, '-')),
    ('recommendation', ${row}.recommendation_id::text)) as d(dimension, value)`;

/**
 * The rows of an organisation with the ids of an array, each looked for by its index. Joined with the array, they would be
 * looked for by reading all of the organisation's rows while PostgreSQL takes the table for small.
 */
const rowsWith = (table: string, column: string, ids: string, row: string) => `
  unnest(${ids}::uuid[]) as ${row}_ids(id) cross join lateral (
    select * from ${table} where organisation_id = $1 and ${column} = ${row}_ids.id offset 0) as ${row}`;

const isUsable = (row: string) => `${row}.basis in ('recommendation', 'browsing')`;
const dayOf = (time: string) => `(${time} at time zone 'UTC')::date`;
const longest = `interval '${longestWindowHours} hours'`;
const windowRows = `(values ${Object.values(windows)
  .map((hours) => `(${hours})`)
  .join(', ')}) as w(hours)`;

const addToSums = `
  on conflict (organisation_id, dimension, value, day, window_hours, basis) do update set
    touches = s.touches + excluded.touches, codes = s.codes + excluded.codes,
    transactions = s.transactions + excluded.transactions, by_offer = s.by_offer + excluded.by_offer,
    revenue = s.revenue + excluded.revenue, savings = s.savings + excluded.savings`;
const sumColumns = `
  (organisation_id, dimension, value, day, window_hours, basis, touches, codes, transactions, by_offer, revenue, savings)`;

/**
 * Counts what is new or has changed, in the caller's transaction, which holds the organisation's row of report_progress.
 * Ids that are counted already change nothing, so a step may be given more than is new.
 */
export async function countChanges(
  client: Client,
  organisationId: string,
  step: string,
  changed: Changed,
): Promise<void> {
  const rows = await addInteractions(client, organisationId, step, changed.interactions);
  const added = rows.map(({ interaction_id }) => interaction_id);
  if (added.length > 0) await addTouches(client, organisationId, added);
  for (const subject of ['student', 'recommendation'] as const) {
    const ids = new Set(rows.filter(({ is_usable }) => is_usable).map((row) => row[`${subject}_id`]));
    ids.delete(null);
    if (ids.size > 0) await addReach(client, organisationId, step, subject, [...ids]);
  }
  if (changed.transactions.length > 0)
    await replaceTransactions(client, organisationId, changed.transactions);
  await creditAnew(client, organisationId, added, changed.transactions);
}

interface Added {
  readonly interaction_id: string;
  readonly student_id: string | null;
  readonly recommendation_id: string | null;
  readonly is_usable: boolean;
}

async function addInteractions(
  client: Client,
  organisationId: string,
  step: string,
  ids: readonly string[],
): Promise<Added[]> {
  if (ids.length === 0) return [];
  // Bounds for the planner, which would look for each id in every partition.
  const sorted = [...ids].sort();
  const [first, last] = [sorted[0] as string, sorted.at(-1) as string];
  const { rows } = await client.query<Added>({
    text: `
      insert into report_interactions (organisation_id, interaction_id, event_time, basis, is_code, student_id, item_type,
        item_id, platform, country, recommendation_id, step)
      select organisation_id, interaction_id, event_time, ${basisOf}, interaction_type = 'DISCOUNT_CODE', student_id, item_type,
        item_id, platform, left(country, ${countryCharactersMax}), recommendation_id, $3::bigint
      from interactions where organisation_id = $1 and interaction_id = any ($2::uuid[])
        and interaction_id >= ${written(first)} and interaction_id <= ${written(last)}
      on conflict (organisation_id, interaction_id) do nothing
      returning interaction_id, student_id, recommendation_id, basis in ('recommendation', 'browsing') as is_usable`,
    values: [organisationId, ids, step],
  });
  return rows;
}

/** Of what cannot be used, it is only told how many there are. */
async function addTouches(client: Client, organisationId: string, added: readonly string[]): Promise<void> {
  await client.query({
    name: 'report: add touches',
    text: `
      insert into report_sums as s ${sumColumns}
      select i.organisation_id, d.dimension, d.value, ${dayOf('i.event_time')}, 0, i.basis, count(*), 0, 0, 0, 0, 0
      from ${rowsWith('report_interactions', 'interaction_id', '$2', 'i')} ${dimensions('i')}
      where d.value is not null and (d.dimension = 'all' or i.basis in ('recommendation', 'browsing'))
      group by 1, 2, 3, 4, 6
      ${addToSums}`,
    values: [organisationId, added],
  });
}

/**
 * Counts on which days the students, or the recommendations, of new interactions were there, and when before: as it is now,
 * less what it was before this step. Days on which nothing changed cancel out.
 */
async function addReach(
  client: Client,
  organisationId: string,
  step: string,
  subject: 'student' | 'recommendation',
  ids: readonly (string | null)[],
): Promise<void> {
  const isUsed = subject === 'student' ? `in ('recommendation', 'browsing')` : `= 'recommendation'`;
  const counted = subject === 'student' ? ['v.sign', '0'] : ['0', 'v.sign'];
  await client.query({
    name: `report: add reach of ${subject}s`,
    text: `
      insert into report_reach as r (organisation_id, dimension, value, day, previous_day, students, recommendations, browsing_students)
      select organisation_id, dimension, value, day, coalesce(v.previous, '-infinity'),
        coalesce(sum(${counted[0]}) filter (where basis = 'recommendation'), 0), sum(${counted[1]}),
        coalesce(sum(${counted[0]}) filter (where basis = 'browsing'), 0)
      from (
        select *, lag(day) over (partition by subject, basis, dimension, value order by day) as previous_now,
          lag(day) over (partition by subject, basis, dimension, value, was_there order by day) as previous_then
        from (
          select i.organisation_id, i.${subject}_id as subject, i.basis, d.dimension, d.value, ${dayOf('i.event_time')} as day,
            bool_or(i.step < $3::bigint) as was_there
          from ${rowsWith('report_interactions', `basis ${isUsed} and ${subject}_id`, '$2', 'i')} ${dimensions('i')}
          where d.value is not null
          group by 1, 2, 3, 4, 5, 6) as days) as both_times
      cross join lateral (values (1, previous_now), (-1, previous_then)) as v(sign, previous)
      where v.sign = 1 or was_there
      group by 1, 2, 3, 4, 5
      having sum(v.sign) filter (where basis = 'recommendation') <> 0 or sum(v.sign) filter (where basis = 'browsing') <> 0
      on conflict (organisation_id, dimension, value, day, previous_day) do update set
        students = r.students + excluded.students, recommendations = r.recommendations + excluded.recommendations,
        browsing_students = r.browsing_students + excluded.browsing_students`,
    values: [organisationId, ids, step],
  });
}

/** Takes transactions out as they were counted, and puts them in as they are stored now, unless they are deleted. */
async function replaceTransactions(
  client: Client,
  organisationId: string,
  ids: readonly string[],
): Promise<void> {
  const values = [organisationId, ids];
  const count = (sign: '+' | '-') =>
    client.query({
      name: `report: count transactions ${sign}`,
      text: `
        insert into report_sums as s ${sumColumns}
        select organisation_id, 'all', '', ${dayOf('created')}, 0, 'transactions', 0, 0, ${sign}count(*), 0, ${sign}sum(amount),
          ${sign}sum(savings)
        from ${rowsWith('report_transactions', 'transaction_id', '$2', 't')}
        group by 1, 4
        ${addToSums}`,
      values,
    });
  await count('-');
  await client.query({
    name: 'report: remove transactions',
    text: 'delete from report_transactions where organisation_id = $1 and transaction_id = any ($2::uuid[])',
    values,
  });
  await client.query({
    name: 'report: add transactions',
    text: `
      insert into report_transactions (organisation_id, transaction_id, created, student_id, shop_id, offer_id, amount, savings)
      select organisation_id, transaction_id, created, student_id, shop_id, offer_id, amount, savings
      from ${rowsWith('transactions', 'transaction_id', '$2', 't')}
      where not is_deleted and created is not null`,
    values,
  });
  await count('+');
}

/** Credits what changed, and what new interactions may have changed, once more. */
async function creditAnew(
  client: Client,
  organisationId: string,
  added: readonly string[],
  transactions: readonly string[],
): Promise<void> {
  const fromAdded = rowsWith('report_interactions', 'interaction_id', '$2', 'n');
  const { rows } = await client.query<{ codes: string[]; sales: string[] }>({
    name: 'report: what to credit anew',
    text: `
      select
        array(
          select interaction_id from ${fromAdded} where is_code and ${isUsable('n')}
          union
          select c.interaction_id from ${fromAdded} cross join lateral (
            select interaction_id from report_interactions c
            where c.organisation_id = $1 and c.student_id = n.student_id and c.event_time >= n.event_time
              and c.event_time < n.event_time + ${longest} and c.item_id = n.item_id and c.item_type = n.item_type
              and c.is_code and c.basis = 'browsing' offset 0) as c
          where n.basis = 'recommendation') as codes,
        array(
          select unnest($3::uuid[])
          union
          select t.transaction_id from ${fromAdded} cross join lateral (
            select transaction_id from report_transactions t
            where t.organisation_id = $1 and t.student_id = n.student_id and t.created >= n.event_time
              and t.created < n.event_time + ${longest}
              and (n.item_type = 'OFFER' and n.item_id = t.offer_id or n.item_type = 'SHOP' and n.item_id = t.shop_id)
            offset 0) as t
          where ${isUsable('n')}) as sales
      from tenants where organisation_id = $1`,
    values: [organisationId, added, transactions],
  });
  const { codes = [], sales = [] } = rows[0] ?? {};
  if (codes.length > 0) await replaceCredits(client, true, creditCodes, [organisationId, codes]);
  if (sales.length > 0) await replaceCredits(client, false, creditTransactions, [organisationId, sales]);
}

async function replaceCredits(
  client: Client,
  isCode: boolean,
  credit: { readonly name: string; readonly text: string },
  values: unknown[],
): Promise<void> {
  await countCredits(client, isCode, '-', values);
  await client.query({
    name: `report: remove credits ${isCode}`,
    text: `delete from report_credits where organisation_id = $1 and is_code = ${isCode} and credited_id = any ($2::uuid[])`,
    values,
  });
  await client.query({ ...credit, values });
  await countCredits(client, isCode, '+', values);
}

async function countCredits(
  client: Client,
  isCode: boolean,
  sign: '+' | '-',
  values: unknown[],
): Promise<void> {
  const [codes, transactions] = isCode ? ['count(*)', '0'] : ['0', 'count(*)'];
  await client.query({
    name: `report: count credits ${isCode} ${sign}`,
    text: `
      insert into report_sums as s ${sumColumns}
      select c.organisation_id, d.dimension, d.value, c.day, c.window_hours, c.basis, 0, ${sign}${codes}, ${sign}${transactions},
        ${sign}(count(*) filter (where c.is_by_offer)), ${sign}sum(c.revenue), ${sign}sum(c.savings)
      from ${rowsWith('report_credits', `is_code = ${isCode} and credited_id`, '$2', 'c')} ${dimensions('c')}
      where d.value is not null
      group by 1, 2, 3, 4, 5, 6
      ${addToSums}`,
    values,
  });
}

const creditColumns = `
  (organisation_id, is_code, credited_id, window_hours, day, basis, item_type, item_id, platform, country, recommendation_id,
    is_by_offer, revenue, savings)`;

/** Of the touch where there is one, else of the code itself. */
const creditedTo = (column: string) =>
  `case when t.interaction_id is null then c.${column} else t.${column} end`;

const creditCodes = {
  name: 'report: credit codes',
  text: `
    insert into report_credits ${creditColumns}
    select c.organisation_id, true, c.interaction_id, w.hours, ${dayOf('c.event_time')}, ${creditedTo('basis')}, c.item_type,
      c.item_id, ${creditedTo('platform')}, ${creditedTo('country')}, ${creditedTo('recommendation_id')}, false, 0, 0
    from ${rowsWith('report_interactions', 'interaction_id', '$2', 'c')} cross join ${windowRows} left join lateral (
      select * from report_interactions t
      where t.organisation_id = $1 and t.student_id = c.student_id and t.event_time <= c.event_time
        and t.event_time > c.event_time - make_interval(hours => w.hours)
        and t.item_id = c.item_id and t.item_type = c.item_type and t.basis = 'recommendation' and c.basis = 'browsing'
      order by t.event_time desc, t.interaction_id desc limit 1) as t on true`,
};

const creditTransactions = {
  name: 'report: credit transactions',
  text: `
    insert into report_credits ${creditColumns}
    select s.organisation_id, false, s.transaction_id, w.hours, ${dayOf('s.created')}, t.basis, t.item_type, t.item_id,
      t.platform, t.country, t.recommendation_id, t.item_type = 'OFFER', s.amount, s.savings
    from ${rowsWith('report_transactions', 'transaction_id', '$2', 's')} cross join ${windowRows} cross join lateral (
      select * from report_interactions t
      where t.organisation_id = $1 and t.student_id = s.student_id and t.event_time <= s.created
        and t.event_time > s.created - make_interval(hours => w.hours)
        and (t.item_type = 'OFFER' and t.item_id = s.offer_id or t.item_type = 'SHOP' and t.item_id = s.shop_id)
        and ${isUsable('t')}
      order by t.basis = 'browsing', t.item_type = 'SHOP', t.event_time desc, t.interaction_id desc limit 1) as t`,
};
