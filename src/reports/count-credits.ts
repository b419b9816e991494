import type { Client } from '../postgres/pool.ts';
import { queryRows } from '../postgres/transactions.ts';
import { isVisible } from '../records/tables.ts';
import { longestWindowHours, windowNames, windows } from './definitions.ts';
import {
  columnOf,
  creditColumns,
  creditedFigures,
  dayOf,
  dimensions,
  hasDimension,
  isUsable,
  nobody,
} from './report-sql.ts';

const longest = `interval '${longestWindowHours} hours'`;
const windowRows = `(values ${Object.values(windows)
  .map((hours) => `(${hours})`)
  .join(', ')}) as w(hours)`;

/** A join would read all of the organisation's rows as long as PostgreSQL considers the table small. */
const rowsWith = (table: string, ids: string) => `
  unnest(${ids}::uuid[]) as ids(id) cross join lateral (
    select * from ${table} where organisation_id = $1 and transaction_id = ids.id offset 0) as t`;

/**
 * Adds the credits of codes and transactions after this step, minus their credits before it. Credits that did not
 * change cancel out, and their sums are not touched.
 */
const addCredits = (credits: string) => `
  insert into report_sums as s (organisation_id, dimension, value, day, basis, ${creditColumns.join(', ')})
  select o.organisation_id, dimension, value, day, basis, ${creditColumns.join(', ')}
  from tenants o cross join (
    select d.dimension, d.value, c.day, c.basis,
      ${creditedFigures
        .flatMap((figure) =>
          windowNames.map(
            (window) =>
              `coalesce(sum(c.sign * c.${figure}) filter (where c.hours = ${windows[window]}), 0) as ${columnOf(figure, window)}`,
          ),
        )
        .join(',\n      ')}
    from (${credits} offset 0) as c ${dimensions('c')}
    where ${hasDimension('c')} and (k.dimension = 'all' or c.basis <> 'transactions')
    group by 2, 3, 1, 4) as sums
  where o.organisation_id = $1 and (${creditColumns.map((column) => `${column} <> 0`).join(' or ')})
  on conflict (organisation_id, dimension, value, day, basis) do update set
    ${creditColumns.map((column) => `${column} = s.${column} + excluded.${column}`).join(', ')}`;

/** The sign is -1 for the state before this step and 1 for the state after it. */
const signs = `(values (-1), (1)) as v(sign)`;

/** From the touch if it is within the window, and from the code itself otherwise. */
const creditedTo = (column: string) =>
  `case when t.event_time > c.event_time - make_interval(hours => w.hours) then t.${column} else c.${column} end`;

/** Selects new codes, and codes whose last touch may be one of the new touches. */
const codesToCredit = `
  select * from report_interactions n
  where n.organisation_id = $1 and n.step = $2::bigint and n.is_code and ${isUsable('n')}
  union
  select c.* from report_interactions n cross join lateral (
    select * from report_interactions c
    where c.organisation_id = $1 and c.student_id = n.student_id and c.item_id = n.item_id and c.basis = 'browsing'
      and c.event_time >= n.event_time and c.event_time < n.event_time + ${longest} and c.item_type = n.item_type and c.is_code
    offset 0) as c
  where n.organisation_id = $1 and n.step = $2::bigint and n.basis = 'recommendation' and n.student_id <> '${nobody}'`;

/** The last touch before a code counts in every window that includes it. */
const creditedCodes = `
  select v.sign, w.hours, ${dayOf('c.event_time')} as day, ${creditedTo('basis')} as basis, c.item_type, c.item_id,
    ${creditedTo('platform')} as platform, ${creditedTo('country')} as country,
    ${creditedTo('recommendation_id')} as recommendation_id, 1 as codes, 0 as transactions, 0 as by_offer, 0 as revenue,
    0 as savings
  from (${codesToCredit}) as c
  cross join ${signs}
  left join lateral (
    select * from report_interactions t
    where t.organisation_id = $1 and t.student_id = c.student_id and t.item_id = c.item_id and t.basis = 'recommendation'
      and t.event_time <= c.event_time and t.event_time > c.event_time - ${longest} and t.item_type = c.item_type
      and c.basis = 'browsing' and c.student_id <> '${nobody}' and (v.sign = 1 or t.step < $2::bigint)
    order by t.event_time desc, t.interaction_id desc limit 1) as t on true
  cross join ${windowRows}
  where v.sign = 1 or c.step < $2::bigint`;

export async function creditCodes(client: Client, organisationId: string, step: string): Promise<void> {
  await client.query({
    name: 'report: credit codes',
    text: addCredits(creditedCodes),
    values: [organisationId, step],
  });
}

export async function transactionsAfter(
  client: Client,
  organisationId: string,
  step: string,
): Promise<string[]> {
  const { rows } = await client.query<{ transaction_id: string }>({
    name: 'report: transactions after new interactions',
    text: `
      select distinct t.transaction_id from report_interactions n cross join lateral (
        select transaction_id from report_transactions t
        where t.organisation_id = $1 and t.student_id = n.student_id and t.created >= n.event_time
          and t.created < n.event_time + ${longest}
          and (n.item_type = 'OFFER' and n.item_id = t.offer_id or n.item_type = 'SHOP' and n.item_id = t.shop_id)
        offset 0) as t
      where n.organisation_id = $1 and n.step = $2::bigint and ${isUsable('n')}`,
    values: [organisationId, step],
  });
  return rows.map(({ transaction_id }) => transaction_id);
}

interface Transactions {
  readonly stored: readonly string[];
  /** Deleted together with their person. Their figures stay. */
  readonly erased: readonly string[];
  /** They may be credited to a new interaction. */
  readonly unchanged: readonly string[];
}

/**
 * Transactions of people who are being erased are left out. They are in the log again, once they have lost their person
 * or are deleted.
 */
export async function findTransactions(
  client: Client,
  organisationId: string,
  ids: readonly string[],
): Promise<Omit<Transactions, 'unchanged'>> {
  if (ids.length === 0) return { stored: [], erased: [] };
  const isStored = (condition: string) => `exists (
    select from transactions t where t.organisation_id = $1 and t.transaction_id = ids.id and ${condition} offset 0)`;
  const find = {
    name: 'report: find transactions',
    text: `
      select ids.id, ${isStored('true')} as is_stored, ${isStored(isVisible('transactions'))} as is_visible
      from unnest($2::uuid[]) as ids(id)`,
    values: [organisationId, ids],
  };
  const rows = await queryRows<{ id: string; is_stored: boolean; is_visible: boolean }>(
    client,
    find,
    ids.length,
  );
  return {
    stored: rows.filter(({ is_visible }) => is_visible).map(({ id }) => id),
    erased: rows.filter(({ is_stored }) => !is_stored).map(({ id }) => id),
  };
}

const transactionColumns = 'created, student_id, shop_id, offer_id, amount, savings';
const isCounted = 'not is_deleted and created is not null';

/**
 * Selects changed transactions ($3) and unchanged ones ($4), each with the interaction that it is credited to. The
 * candidates are the last interactions before the transaction for each pair of basis and item. In each window, the
 * candidate with the lowest rank counts.
 */
const creditedTransactions = `
  select v.sign, c.hours, ${dayOf('v.created')} as day, c.basis, c.item_type, c.item_id, c.platform, c.country,
    c.recommendation_id, 0 as codes, 1 as transactions, c.by_offer, v.amount as revenue, v.savings
  from (
    select -1 as sign, ${transactionColumns} from ${rowsWith('report_transactions', '$3::uuid[] || $4')}
    union all
    select 1, ${transactionColumns} from ${rowsWith('transactions', '$3')} where ${isCounted}
    union all
    select 1, ${transactionColumns} from ${rowsWith('report_transactions', '$4')}) as v
  cross join lateral (
    select hours, 'transactions' as basis, null as item_type, null::uuid as item_id, null as platform, null as country,
      null::uuid as recommendation_id, 0 as by_offer
    from ${windowRows}
    union all (
      select distinct on (w.hours) w.hours, i.basis, i.item_type, i.item_id, i.platform, i.country, i.recommendation_id,
        case when i.item_type = 'OFFER' then 1 else 0 end
      from (values (1, 'recommendation', 'OFFER', v.offer_id), (2, 'recommendation', 'SHOP', v.shop_id),
        (3, 'browsing', 'OFFER', v.offer_id), (4, 'browsing', 'SHOP', v.shop_id)) as k(rank, basis, item_type, item_id)
      cross join lateral (
        select * from report_interactions i
        where i.organisation_id = $1 and i.student_id = v.student_id and i.item_id = k.item_id and i.basis = k.basis
          and i.event_time <= v.created and i.event_time > v.created - ${longest} and i.item_type = k.item_type
          and (v.sign = 1 or i.step < $2::bigint)
        order by i.event_time desc, i.interaction_id desc limit 1) as i
      join ${windowRows} on i.event_time > v.created - make_interval(hours => w.hours)
      where v.student_id <> '${nobody}'
      order by w.hours, k.rank)) as c`;

/** Reads `transactions` twice, so the caller's transaction must be repeatable read. */
export async function creditTransactions(
  client: Client,
  organisationId: string,
  step: string,
  { stored, erased, unchanged }: Transactions,
): Promise<void> {
  await client.query({
    name: 'report: credit transactions',
    text: addCredits(creditedTransactions),
    values: [organisationId, step, stored, unchanged],
  });
  if (stored.length + erased.length === 0) return;
  await client.query({
    name: 'report: remove transactions',
    text: `
      delete from report_transactions r where organisation_id = $1 and transaction_id = any ($2::uuid[]) and not exists (
        select from transactions t
        where t.organisation_id = $1 and t.transaction_id = r.transaction_id and ${isCounted})`,
    values: [organisationId, [...stored, ...erased]],
  });
  await client.query({
    name: 'report: keep transactions',
    text: `
      insert into report_transactions as r (organisation_id, transaction_id, ${transactionColumns})
      select organisation_id, transaction_id, ${transactionColumns} from ${rowsWith('transactions', '$2')} where ${isCounted}
      on conflict (organisation_id, transaction_id) do update set
        created = excluded.created, student_id = excluded.student_id, shop_id = excluded.shop_id, offer_id = excluded.offer_id,
        amount = excluded.amount, savings = excluded.savings
      where (r.created, r.student_id, r.shop_id, r.offer_id, r.amount, r.savings) is distinct from
        (excluded.created, excluded.student_id, excluded.shop_id, excluded.offer_id, excluded.amount, excluded.savings)`,
    values: [organisationId, stored],
  });
}
