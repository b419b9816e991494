import { uuidLiteral } from '../interactions/interaction-rows.ts';
import type { Client } from '../postgres/pool.ts';
import { isVisible } from '../records/tables.ts';
import { basisOf, countryCharactersMax } from './definitions.ts';
import {
  dayOf,
  dimensions,
  gapDaysEnd,
  hasDimension,
  isUsable,
  itemOf,
  nobody,
  orHyphen,
} from './report-sql.ts';

export type Which =
  | { readonly ids: readonly string[] }
  | { readonly after: string; readonly until: string; readonly count: number };

/**
 * Returns how many interactions it added. Interactions of people who are being erased are skipped. Those that stay are
 * in the log again, once they have lost their person.
 */
export async function addInteractions(
  client: Client,
  organisationId: string,
  step: string,
  which: Which,
): Promise<number> {
  const values: unknown[] = [organisationId, step];
  // The bounds are literals, because otherwise the planner would look for each id in every partition.
  let bounds: string;
  if ('ids' in which) {
    const [first, last] = boundsOf(which.ids);
    if (first === undefined || last === undefined) return 0;
    bounds = `interaction_id >= ${uuidLiteral(first)} and interaction_id <= ${uuidLiteral(last)}
      and interaction_id = any ($${values.push(which.ids)}::uuid[])`;
  } else
    bounds = `interaction_id > ${uuidLiteral(which.after)} and interaction_id <= ${uuidLiteral(which.until)}
      order by interaction_id limit ${Math.trunc(which.count)}`;
  const { rowCount } = await client.query({
    text: `
      insert into report_interactions (organisation_id, student_id, item_id, basis, event_time, interaction_id, item_type,
        is_code, platform, country, recommendation_id, step)
      select organisation_id, coalesce(student_id, '${nobody}'), item_id, ${basisOf}, event_time, interaction_id, item_type,
        interaction_type = 'DISCOUNT_CODE', platform, left(country, ${countryCharactersMax}), recommendation_id, $2::bigint
      from (select * from interactions where organisation_id = $1 and ${bounds}) as t
      where ${isVisible('interactions')}
      order by student_id, item_id
      on conflict (organisation_id, student_id, item_id, basis, event_time, interaction_id) do nothing`,
    values,
  });
  return rowCount ?? 0;
}

/** Does not sort, because sorting thousands of ids would block requests. */
function boundsOf(ids: readonly string[]): [string | undefined, string | undefined] {
  let [first, last] = [ids[0], ids[0]];
  for (const id of ids) {
    if (first === undefined || id < first) first = id;
    if (last === undefined || id > last) last = id;
  }
  return [first, last];
}

export async function addVisits(client: Client, organisationId: string, step: string): Promise<void> {
  await client.query({
    name: 'report: add visits',
    text: `
      insert into report_visits (organisation_id, subject_id, is_recommendation, basis, day, item_type, platform, country, step)
      select n.organisation_id, s.subject_id, s.is_recommendation, n.basis, ${dayOf('n.event_time')}, n.item_type,
        ${orHyphen('n.platform')}, ${orHyphen('n.country')}, $2::bigint
      from report_interactions n
      cross join (values (false), (true)) as k(is_recommendation)
      cross join lateral (
        select k.is_recommendation, case when k.is_recommendation then n.recommendation_id else n.student_id end as subject_id) as s
      where n.organisation_id = $1 and n.step = $2::bigint and ${isUsable('n')} and s.subject_id is not null
        and (s.is_recommendation or s.subject_id <> '${nobody}')
      group by 2, 5, 3, 4, 6, 7, 8, 1
      order by 2
      on conflict (organisation_id, subject_id, is_recommendation, basis, day, item_type, platform, country) do nothing`,
    values: [organisationId, step],
  });
}

const caseOf = (row: string) =>
  ['item_type', 'platform', 'country']
    .map((column) => `when k.dimension = '${column}' then ${row}.${column}`)
    .join(' ');

/**
 * For each new visit and each group in which it counts, selects the day of the subject's last visit before it or on the
 * same day, and the day of the first visit after it. New visits are counted in day order, so each finds the old visits
 * and the earlier new ones.
 */
const visitsInGroups = `
  select n.is_recommendation, n.basis, g.dimension, g.value, n.day, g.before, g.after
  from report_visits n
  cross join lateral (
    select max(o.day) as total, max(o.day) filter (where o.item_type = n.item_type) as item_type,
      max(o.day) filter (where o.platform = n.platform) as platform, max(o.day) filter (where o.country = n.country) as country
    from report_visits o
    where o.organisation_id = $1 and o.subject_id = n.subject_id and o.is_recommendation = n.is_recommendation
      and o.basis = n.basis and o.day > n.day - ${gapDaysEnd} and o.day <= n.day and (o.step < $2::bigint or o.day < n.day
        or (o.item_type, o.platform, o.country) < (n.item_type, n.platform, n.country))) as b
  cross join lateral (
    select min(o.day) as total, min(o.day) filter (where o.item_type = n.item_type) as item_type,
      min(o.day) filter (where o.platform = n.platform) as platform, min(o.day) filter (where o.country = n.country) as country
    from report_visits o
    where o.organisation_id = $1 and o.subject_id = n.subject_id and o.is_recommendation = n.is_recommendation
      and o.basis = n.basis and o.day > n.day and o.day < n.day + ${gapDaysEnd} and o.step < $2::bigint) as a
  cross join (values ('all'), ('item_type'), ('platform'), ('country')) as k(dimension)
  cross join lateral (
    select k.dimension, case when k.dimension = 'all' then '' ${caseOf('n')} end collate "C" as value,
      case when k.dimension = 'all' then b.total ${caseOf('b')} end as before,
      case when k.dimension = 'all' then a.total ${caseOf('a')} end as after) as g
  where n.organisation_id = $1 and n.step = $2::bigint`;

/** Like `visitsInGroups`, but for a dimension with many groups. Looks up the days in the index on subject and group. */
function visitsInGroup(
  subject: 'student_id' | 'recommendation_id',
  group: 'item_id' | 'recommendation_id',
): string {
  const isItem = group === 'item_id';
  const [isCounted, hasBasis] =
    subject === 'student_id' && isItem
      ? [isUsable('i'), 'o.basis = n.basis']
      : [`i.basis = 'recommendation'`, `o.basis = 'recommendation'`];
  const columns = [subject, group, ...(isItem ? ['item_type'] : [])];
  const isSame = columns.map((column) => `o.${column} = n.${column}`).join(' and ');
  const found = (order: string, condition: string) => `
    left join lateral (
      select o.event_time from report_interactions o
      where o.organisation_id = $1 and ${hasBasis} and ${isSame} and ${condition}
      order by o.event_time ${order} limit 1)`;
  const days = (count: number) => `interval '${count * 24} hours'`;
  return `
    select ${subject === 'recommendation_id'}, n.basis, '${isItem ? 'item' : 'recommendation'}',
      (${isItem ? itemOf('n') : 'n.recommendation_id::text'}) collate "C", n.day, ${dayOf('b.event_time')}, ${dayOf('a.event_time')}
    from (
      select basis, ${columns.join(', ')}, ${dayOf('i.event_time')} as day, date_trunc('day', i.event_time, 'UTC') as start
      from report_interactions i
      where i.organisation_id = $1 and i.step = $2::bigint and ${isCounted}
        ${subject === 'student_id' ? `and i.student_id <> '${nobody}'` : ''}
      group by ${columns.join(', ')}, start, day, basis) as n
    ${found(
      'desc',
      `o.event_time >= n.start - ${days(gapDaysEnd - 1)} and o.event_time < n.start + ${days(1)}
        and (o.step < $2::bigint or o.event_time < n.start)`,
    )} as b on true
    ${found(
      'asc',
      `o.event_time >= n.start + ${days(1)} and o.event_time < n.start + ${days(gapDaysEnd)} and o.step < $2::bigint`,
    )} as a on true`;
}

/** The stored list is cumulative. `counts` contains the change in the number of each gap. */
const addGaps = (stored: string, gaps: string, counts: string) => `
  case when ${gaps} is not null then (
    select array(
      select coalesce(l.stored[least(at, cardinality(l.stored))], 0)
        + coalesce(l.added[width_bucket(at::integer, ${gaps})], 0)
      from generate_series(1, greatest(cardinality(l.stored), ${gaps}[cardinality(${gaps})])) as p(at))
    from (
      -- The list is concatenated here, so that a compressed list is decompressed only once.
      select ${stored} || array[]::bigint[] as stored, array(
        select sum(u.count) over (order by u.at)::bigint from unnest(${counts}) with ordinality as u(count, at)) as added
      offset 0) as l) end`;

/**
 * Also counts distinct students and recommendations with a visit. A visit between two other visits of the same subject
 * also affects the later visit, because the gap before it becomes shorter.
 */
const [touches, students, recommendations] = [0, 1, 2];
export async function addTouches(client: Client, organisationId: string, step: string): Promise<void> {
  const sumOf = (condition: string) => `coalesce(sum(count) filter (where ${condition}), 0)`;
  const listOf = (column: string, of: string) =>
    `array_agg(${column} order by gap) filter (where ${of} and gap > 0 and count <> 0)`;
  await client.query({
    name: 'report: add touches',
    text: `
      insert into report_sums as s (organisation_id, dimension, value, day, basis, touches, students, students_seen,
        recommendations, recommendations_seen)
      select o.organisation_id, c.dimension, c.value, c.day, c.basis, c.touches, c.students,
        ${addGaps('t.students_seen', 'c.student_gaps', 'c.student_counts')}, c.recommendations,
        ${addGaps('t.recommendations_seen', 'c.recommendation_gaps', 'c.recommendation_counts')}
      from tenants o
      cross join (
        select dimension, value, day, basis, ${sumOf(`counted = ${touches}`)} as touches,
          ${sumOf(`counted = ${students}`)} as students, ${sumOf(`counted = ${recommendations}`)} as recommendations,
          ${listOf('gap', `counted = ${students}`)} as student_gaps, ${listOf('count', `counted = ${students}`)} as student_counts,
          ${listOf('gap', `counted = ${recommendations}`)} as recommendation_gaps,
          ${listOf('count', `counted = ${recommendations}`)} as recommendation_counts
        from (
          select ${touches} as counted, d.dimension, d.value, ${dayOf('n.event_time')} as day, n.basis, 0 as gap, count(*) as count
          from report_interactions n ${dimensions('n')}
          where n.organisation_id = $1 and n.step = $2::bigint and ${hasDimension('n')}
            and (k.dimension = 'all' or ${isUsable('n')})
          group by 2, 3, 4, 5
          union all
          select case when v.is_recommendation then ${recommendations} else ${students} end, v.dimension, v.value, u.day, v.basis,
            case when u.day - u.previous < ${gapDaysEnd} then u.day - u.previous else 0 end as gap, sum(u.sign) as count
          from (
            ${visitsInGroups}
            union all
            ${visitsInGroup('student_id', 'item_id')}
            union all
            ${visitsInGroup('student_id', 'recommendation_id')}
            union all
            ${visitsInGroup('recommendation_id', 'item_id')}) as v
          cross join (values (0), (-1), (1)) as k(change)
          cross join lateral (
            select case when k.change = 0 then v.day else v.after end as day,
              case when k.change = 1 then v.day else v.before end as previous, case when k.change = -1 then -1 else 1 end as sign) as u
          where v.before is distinct from v.day and (k.change = 0 or v.after is not null)
          group by 3, 4, 2, 6, 5, 1) as counts
        group by dimension, value, day, basis) as c
      left join lateral (
        select students_seen, recommendations_seen from report_sums r
        where r.organisation_id = $1 and r.dimension = c.dimension and r.value = c.value and r.day = c.day and r.basis = c.basis
          and (c.student_gaps is not null or c.recommendation_gaps is not null) offset 0) as t on true
      where o.organisation_id = $1
      on conflict (organisation_id, dimension, value, day, basis) do update set
        touches = s.touches + excluded.touches, students = s.students + excluded.students,
        students_seen = coalesce(excluded.students_seen, s.students_seen),
        recommendations = s.recommendations + excluded.recommendations,
        recommendations_seen = coalesce(excluded.recommendations_seen, s.recommendations_seen)`,
    values: [organisationId, step],
  });
}
