import { invalidRequest, RequestError } from '../errors.ts';
import type { CursorSigner } from '../keys/signed-cursors.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../postgres/iso-time.ts';
import { pageOf } from '../postgres/keyset-page.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { date, type Field, oneOf, optional, perPage, type Scalar, text } from '../registry/fields.ts';
import { timeOfUuidV7 } from '../registry/uuid-v7.ts';
import {
  correlation,
  definitions,
  type Grouping,
  groupings,
  type Window,
  windowNames,
} from './definitions.ts';
import { columnOf, creditedFigures } from './report-sql.ts';

export const reportParameters: Readonly<Record<string, Field>> = {
  from: optional(
    date({ description: `the first day, in UTC; default ${limits.reportDaysDefault} days before \`to\`` }),
  ),
  to: optional(
    date({
      description: `the day after the last one, at most ${limits.reportDaysMax} days after \`from\`; default tomorrow`,
    }),
  ),
  window: optional(oneOf(windowNames, { description: 'for how long a touch is credited, default 24h' })),
  group_by: optional(oneOf(groupings, { description: 'default day' })),
  cursor: optional(text({ description: 'the `next_cursor` of the previous page, with the same `group_by`' })),
  limit: optional(perPage('groups', limits.reportGroupsPerPageMax, limits.reportGroupsPerPageDefault)),
};

interface Asked {
  /** As days since 2000. */
  readonly from: number;
  readonly to: number;
  readonly window: Window;
  readonly grouping: Grouping;
  /** The key of the last group on the previous page. */
  readonly after: string | undefined;
  readonly limit: number;
}

export interface Figures {
  readonly touches: number;
  readonly engaged_recommendations?: number;
  readonly students: number;
  readonly discount_codes: number;
  readonly transactions: number;
  readonly transactions_by_offer: number;
  readonly transactions_by_shop: number;
  readonly revenue: number;
  readonly savings: number;
  readonly share_of_transactions: number | null;
}

interface Both {
  readonly recommendations: Figures;
  readonly browsing: Figures | null;
}

export interface RecommendationsReport {
  readonly from: string;
  readonly to: string;
  readonly window: Window;
  readonly group_by: Grouping;
  readonly as_of: string | null;
  readonly correlation: string;
  readonly definitions: Readonly<Record<string, string>>;
  readonly total: Both;
  readonly all: { readonly transactions: number; readonly revenue: number; readonly savings: number };
  readonly unusable: {
    readonly service_without_recommendation: number;
    readonly recommendation_without_service: number;
  };
  readonly groups: readonly (Both & { readonly group: Readonly<Record<string, string | null>> })[];
  readonly next_cursor: string | null;
}

/** The transaction is repeatable read, so all statements see one snapshot, and the groups add up to the total. */
export async function recommendationsReport(
  pool: Pool,
  organisationId: string,
  query: Readonly<Record<string, Scalar>>,
  signer: CursorSigner,
): Promise<RecommendationsReport> {
  const asked = readAsked(query, signer);
  const work = async (client: Client) => {
    if (!(await hasReport(client, organisationId))) throw new RequestError('report_off');
    const as_of = await asOf(client, organisationId);
    const [total] = await sumsOf(client, organisationId, asked, 'total');
    if (!total) throw new Error('a sum has a row');
    const sums = await sumsOf(client, organisationId, asked, asked.grouping);
    const { rows, next } = pageOf(sums, asked.limit, ({ key }) => writeCursor(asked.grouping, key, signer));
    const groups = rows.map((row) => {
      const of = asked.grouping === 'day' ? row : total;
      return { group: groupOf(asked.grouping, row.key), ...bothOf(row, of, asked.grouping) };
    });
    return {
      from: dayText(asked.from),
      to: dayText(asked.to),
      window: asked.window,
      group_by: asked.grouping,
      as_of,
      correlation,
      definitions,
      total: bothOf(total, total),
      all: {
        transactions: Number(total.all_transactions),
        revenue: Number(total.all_revenue),
        savings: Number(total.all_savings),
      },
      unusable: {
        service_without_recommendation: Number(total.service_without_recommendation),
        recommendation_without_service: Number(total.recommendation_without_service),
      },
      groups,
      next_cursor: next,
    };
  };
  return inTransaction(pool, work, 'begin isolation level repeatable read');
}

async function hasReport(client: Client, organisationId: string): Promise<boolean> {
  const { rows } = await client.query<{ recommendations_report: boolean }>(
    'select recommendations_report from organisations where organisation_id = $1',
    [organisationId],
  );
  return rows[0]?.recommendations_report ?? false;
}

/**
 * Returns the time of the oldest uncounted change, or the start of the transaction, which is before its snapshot. Null
 * until the report has counted everything that was stored before the log existed or was dropped from it uncounted.
 */
async function asOf(client: Client, organisationId: string): Promise<string | null> {
  const oldest = (condition: string, order: string) => `
    (select change_id from changes where organisation_id = $1 and ${condition} order by ${order} limit 1)`;
  const counted = `(select number from report_progress where organisation_id = $1)`;
  const { rows } = await client.query<{
    is_walking: boolean;
    unnumbered: string | null;
    uncounted: string | null;
    begun: string;
  }>(
    `select exists (
         select from report_progress
         where organisation_id = $1 and (interactions_after is not null or transactions_after is not null))
         or exists (
           select from change_counters where organisation_id = $1 and forgotten_number > coalesce(${counted}, 0)) as is_walking,
       ${oldest('number is null', 'change_id')} as unnumbered,
       ${oldest(`number > coalesce(${counted}, 0)`, 'number')} as uncounted,
       ${isoTime('now()')} as begun
     from tenants where organisation_id = $1`,
    [organisationId],
  );
  const [state] = rows;
  if (!state || state.is_walking) return null;
  const uncounted = [state.unnumbered, state.uncounted].filter((id) => id !== null).map(timeOfUuidV7);
  // A process whose clock was wrong may have written a change from the future.
  return [state.begun, ...uncounted].reduce((first, time) => (time < first ? time : first));
}

/** The key comes last because it can contain any character. */
function writeCursor(grouping: Grouping, key: string, signer: CursorSigner): string {
  return `${signer.sign(`${grouping} ${key}`)}.${key}`;
}

function readCursor(cursor: string, grouping: Grouping, signer: CursorSigner): string {
  const [, signature, key = ''] = /^(.{22})\.(.+)$/s.exec(cursor) ?? [];
  const notACursor =
    'must be the `next_cursor` of the previous page, with the same group_by; leave it out for the first page';
  signer.read(`${grouping} ${key}.${signature}`, notACursor);
  return key;
}

function readAsked(query: Readonly<Record<string, Scalar>>, signer: CursorSigner): Asked {
  const today = Math.floor((Date.now() - Date.UTC(2000, 0, 1)) / dayMs);
  const to = Number(query.to ?? today + 1);
  const from = Number(query.from ?? to - limits.reportDaysDefault);
  if (!(to > from && to - from <= limits.reportDaysMax))
    throw invalidRequest({
      field: 'to',
      code: 'not_combinable',
      message: `must be a day after from, and at most ${limits.reportDaysMax} days later`,
    });
  const grouping = (query.group_by ?? 'day') as Grouping;
  const cursor = query.cursor as string | undefined;
  return {
    from,
    to,
    window: (query.window ?? '24h') as Window,
    grouping,
    after: cursor === undefined ? undefined : readCursor(cursor, grouping, signer),
    limit: Number(query.limit ?? limits.reportGroupsPerPageDefault),
  };
}

const dayMs = 86_400_000;
const bases = { r: 'recommendation', b: 'browsing' } as const;
type Basis = keyof typeof bases;
const summed = ['touches', ...creditedFigures] as const;
type SumName =
  | `${Basis}_${(typeof summed)[number]}`
  | `${Basis}_students`
  | 'r_recommendations'
  | 'all_transactions'
  | 'all_revenue'
  | 'all_savings'
  | 'service_without_recommendation'
  | 'recommendation_without_service';
type SumRow = Readonly<Record<SumName, string>> & { readonly key: string };

const sumOf = (column: string, basis: string) =>
  `coalesce(sum(${column}) filter (where basis = '${basis}'), 0)`;

/**
 * Each subject is counted on its first day in the range, so a day counts its subjects minus the subjects with an
 * earlier visit in the range. When grouped by day, each day is its own range.
 */
const distinctOf = (subjects: 'students' | 'recommendations', from: number, grouping: Grouping | 'total') =>
  grouping === 'day'
    ? subjects
    : `${subjects} - coalesce(${subjects}_seen[least(day - ${dayLiteral(from)}, cardinality(${subjects}_seen))], 0)`;

function sumsIn({ window, from }: Asked, grouping: Grouping | 'total'): string {
  const column = (figure: (typeof summed)[number]) =>
    figure === 'touches' ? figure : columnOf(figure, window);
  const all = creditedFigures.filter((figure) => figure !== 'codes' && figure !== 'by_offer');
  return [
    ...Object.entries(bases).flatMap(([short, basis]) => [
      ...summed.map((figure) => `${sumOf(column(figure), basis)} as ${short}_${figure}`),
      `${sumOf(distinctOf('students', from, grouping), basis)} as ${short}_students`,
    ]),
    // A group for a single recommendation counts one recommendation if it has a touch.
    grouping === 'recommendation'
      ? `least(1, ${sumOf('touches', bases.r)}) as r_recommendations`
      : `${sumOf(distinctOf('recommendations', from, grouping), bases.r)} as r_recommendations`,
    ...all.map((figure) => `${sumOf(column(figure), 'transactions')} as all_${figure}`),
    ...['service_without_recommendation', 'recommendation_without_service'].map(
      (basis) => `${sumOf('touches', basis)} as ${basis}`,
    ),
  ].join(', ');
}

/**
 * Returns one more group than fits on a page, or one row for the total. The groups are read through the primary key,
 * which has their order. The days are literals, because a plan that does not know them expects a small range. Such a
 * plan would look up the range by day, and would read all groups before sorting them.
 */
async function sumsOf(
  client: Client,
  organisationId: string,
  asked: Asked,
  grouping: Grouping | 'total',
): Promise<SumRow[]> {
  const { from, to, window, limit } = asked;
  const values: unknown[] = [organisationId];
  const isDay = grouping === 'day';
  const dimension = isDay || grouping === 'total' ? 'all' : grouping;
  const after =
    asked.after === undefined || grouping === 'total'
      ? ''
      : `and ${isDay ? `to_char(day, 'YYYY-MM-DD')` : 'value'} > $${values.push(asked.after)} collate "C"`;
  const key = isDay ? 'day' : 'value';
  const page =
    grouping === 'total'
      ? ''
      : `group by ${key}
         having sum(touches + ${columnOf('codes', window)} + ${columnOf('transactions', window)})
           filter (where basis in ('recommendation', 'browsing')) > 0
         order by ${key} limit ${Math.trunc(limit) + 1}`;
  const { rows } = await client.query<SumRow>(
    `select ${grouping === 'total' ? `''` : key} as key, ${sumsIn(asked, grouping)} from report_sums
     where organisation_id = $1 and dimension = '${dimension}' and day >= ${dayLiteral(from)} and day < ${dayLiteral(to)} ${after} ${page}`,
    values,
  );
  return rows;
}

function bothOf(row: SumRow, of: SumRow, grouping?: Grouping): Both {
  return {
    recommendations: figuresOf('r', row, of),
    browsing: grouping === 'recommendation' ? null : figuresOf('b', row, of),
  };
}

function figuresOf(basis: Basis, row: SumRow, of: SumRow): Figures {
  const value = (column: (typeof summed)[number] | 'students') => Number(row[`${basis}_${column}`]);
  const all = Number(of.all_transactions);
  return {
    touches: value('touches'),
    ...(basis === 'r' && { engaged_recommendations: Number(row.r_recommendations) }),
    students: value('students'),
    discount_codes: value('codes'),
    transactions: value('transactions'),
    transactions_by_offer: value('by_offer'),
    transactions_by_shop: value('transactions') - value('by_offer'),
    revenue: value('revenue'),
    savings: value('savings'),
    share_of_transactions: all === 0 ? null : Math.round((value('transactions') / all) * 1e6) / 1e6,
  };
}

function groupOf(grouping: Grouping, key: string): Record<string, string | null> {
  if (grouping === 'item') return { item_type: key.slice(0, -37), item_id: key.slice(-36) };
  if (grouping === 'recommendation') return { recommendation_id: key };
  if (grouping === 'platform' || grouping === 'country')
    return { [grouping]: key === '-' ? null : key.slice(1) };
  return { [grouping]: key };
}

function dayLiteral(days: number): string {
  return `(date '2000-01-01' + (${Math.trunc(days)}))`;
}

function dayText(days: number): string {
  return new Date(Date.UTC(2000, 0, 1) + days * dayMs).toISOString().slice(0, 10);
}
