// @module-tag full

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Chance } from '../../demo/chance.ts';
import { makePlatform } from '../../demo/platform.ts';
import { needTool } from '../../scripts/tools.ts';
import { resourceTypes } from '../../src/registry/resources.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { Instructions } from '../support/changed-copy.ts';
import { drawCohorts } from '../support/draw-cohorts.ts';
import { hasTool } from '../support/has-tool.ts';
import { WrittenLake } from '../support/written-lake.ts';

/**
 * Runs the queries in docs/analytics.md on the demo's data in a lake, and compares the results with PostgreSQL's own tables.
 * PICTURES=docs redraws the page's picture.
 */

const run = promisify(execFile);
const page = new Instructions('docs/analytics.md');
const picture = fileURLToPath(new URL('../../docs/analytics-cohorts.svg', import.meta.url));
const never = new AbortController().signal;
/** The date is fixed, because the page mentions days in 2026. */
const chance = new Chance(1, Date.parse('2026-11-01T00:00:00Z'));
const platform = makePlatform(chance, {
  shops: 20,
  customers: 400,
  transactions: 4_000,
  interactions: 6_000,
});

let test: TestApp;
let organisationId: string;
let duckDb: DuckDBConnection;
const lake = new WrittenLake();
const folder = mkdtempSync(join(tmpdir(), 'intake-analytics-'));

async function upload(key: string, url: string, records: readonly object[]): Promise<void> {
  for (let at = 0; at < records.length; at += 5_000) {
    const headers = { authorization: `Bearer ${key}` };
    const payload = { records: records.slice(at, at + 5_000) };
    const answer = await test.app.inject({ method: 'POST', url, headers, payload });
    expect(answer.statusCode, answer.body.slice(0, 500)).toBe(200);
  }
}

beforeAll(async () => {
  test = await createTestApp();
  const { organisationId: id, key } = await test.organisation('acme');
  organisationId = id;
  const { interactions = [], ...types } = platform;
  for (const [type, records] of Object.entries(types)) await upload(key, `/v1/data/${type}`, records);
  await upload(key, '/user-interactions/batch', interactions);
  const deleted = types.transactions?.slice(0, 100).map((record) => ({ ...record, is_deleted: true })) ?? [];
  await upload(key, '/v1/data/transactions', deleted);
  const writer = lake.writer(test.pool);
  const other = await test.organisation('brook');
  await upload(other.key, '/v1/data/shops', types.shops?.slice(0, 3) ?? []);
  for (const id of [organisationId, other.organisationId])
    while ((await writer.step(id, never)).source !== 'log');
  const listed = [organisationId, other.organisationId].map((id, at) => ({
    organisation_id: id,
    slug: ['acme', 'brook'][at],
    lake: true,
    deleted_at: null,
  }));
  const lakeless = { organisation_id: randomUUID(), slug: 'coast', lake: false, deleted_at: null };
  writeFileSync(join(folder, 'organisations.json'), JSON.stringify([...listed, lakeless]));
  symlinkSync(join(fileURLToPath(lake.url), organisationId), join(folder, 'lake'));
  duckDb = await (await DuckDBInstance.create()).connect();
  await duckDb.run(withFiles(page.snippet('tables')));
});
afterAll(async () => {
  duckDb?.closeSync();
  await test?.close();
  await lake.close();
  rmSync(folder, { recursive: true });
});

/** Returns a table's current files. */
function filesOf(table: string): string[] {
  const log = join(folder, 'lake', table, '_delta_log');
  const files = new Set<string>();
  for (const name of readdirSync(log).sort())
    for (const line of readFileSync(join(log, name), 'utf8').trim().split('\n')) {
      const { add, remove } = JSON.parse(line);
      if (remove) files.delete(remove.path);
      if (add) files.add(add.path);
    }
  return [...files].map((path) => join(folder, 'lake', table, decodeURIComponent(path)));
}

/** Replaces `delta_scan` with the files from the table's log, so that DuckDB does not download its Delta Lake extension. */
function withFiles(statements: string): string {
  return statements.replace(/delta_scan\('lake\/(\w+)'\)/g, (_, table: string) => {
    const files = filesOf(table).map((file) => `'${file}'`);
    return `read_parquet([${files.join(', ')}], hive_partitioning = true, union_by_name = true)`;
  });
}

type Cell = string | number | null;

/** Converts numbers to the same form, whatever type the database uses for them. */
function comparable(rows: readonly unknown[][]): Cell[][] {
  return rows.map((row) =>
    row.map((cell) => (cell === null || Number.isNaN(Number(cell)) ? (cell as Cell) : Number(cell))),
  );
}

/** Returns PostgreSQL's result as text, so that this process's time zone does not matter. */
async function fromPostgres(text: string): Promise<Cell[][]> {
  const types = { getTypeParser: () => (value: string) => value } as unknown as pg.CustomTypesConfig;
  const viewOf = (name: string, filter = '') =>
    `${name} as (select * from public.${name} where organisation_id = '${organisationId}' ${filter})`;
  const views = resourceTypes.map((type) => viewOf(type.replaceAll('-', '_'), 'and not is_deleted'));
  views.push(viewOf('interactions'));
  views.push(`shown as materialized (
    select i.*, coalesce(o.shop_id, i.item_id) as shop_id
    from interactions i left join offers o on i.item_type = 'OFFER' and o.offer_id = i.item_id
    where i.item_type in ('SHOP', 'OFFER'))`);
  const asked = text.trimStart().startsWith('with ') ? `, ${text.trimStart().slice(5)}` : text;
  const { rows } = await test.pool.query({
    text: `with ${views.join(', ')} ${asked}`,
    types,
    rowMode: 'array',
  } as pg.QueryArrayConfig);
  return comparable(rows);
}

/** Compares rows with a tolerance for fractions, because medians and shares are rounded at different points. */
function expectSame(found: Cell[][], expected: Cell[][]): void {
  expect(expected.length).toBeGreaterThan(0);
  const near = (one: Cell, other: Cell | undefined) =>
    typeof one === 'number' && typeof other === 'number' && Math.abs(one - other) < 0.11 && one % 1 !== 0
      ? one
      : (other ?? null);
  expect(found).toEqual(found.map((row, at) => row.map((cell, of) => near(cell, expected[at]?.[of]))));
  expect(found.length).toBe(expected.length);
}

const day = (column: string) => `(${column} at time zone 'UTC')::date`;
const month = (column: string) => `date_trunc('month', ${column} at time zone 'UTC')::date`;

/** The same questions as on the page, deliberately answered with different queries. */
const answers: Readonly<Record<string, string>> = {
  cities: `select city, count(*), count(distinct student_id) from interactions
    where interaction_type = 'DISCOUNT_CODE' group by city order by 2 desc, city collate "C"`,
  cohorts: `with months as (
      select distinct student_id, ${month('created')} as month from transactions
      where student_id is not null and created is not null
    ), since as (select month, min(month) over (partition by student_id) as cohort from months)
    select cohort, (extract(year from age(month, cohort)) * 12 + extract(month from age(month, cohort)))::integer, count(*)
    from since group by 1, 2 order by 1, 2`,
  favourites: `select s.name, count(*) from (
      select student_id, shop_id from student_favourites
      except select student_id, shop_id from transactions
    ) left_over join shops s using (shop_id) group by shop_id, s.name order by 2 desc, s.name collate "C"`,
  recommendations: `select ${month('created')}, count(*), sum(amount) from (
      select distinct t.transaction_id, t.created, t.amount from transactions t
      join shown i on i.student_id = t.student_id and i.shop_id = t.shop_id and i.source = 'SERVICE'
      where t.created - i.event_time >= interval '0' and t.created - i.event_time < interval '7 days'
    ) bought group by 1 order by 1`,
  funnel: `with firsts as (
      select student_id, min(event_time) as viewed_at from interactions
      where student_id is not null and interaction_type = 'PAGE_VIEW' group by student_id
    ), codes as (
      select viewed_at, f.student_id, (select min(event_time) from interactions i where i.student_id = f.student_id
        and i.interaction_type = 'DISCOUNT_CODE' and i.event_time >= f.viewed_at) as coded_at from firsts f
    )
    select count(viewed_at), count(coded_at), count(*) filter (where exists (
      select from transactions t where t.student_id = c.student_id and t.created >= c.coded_at))
    from codes c`,
  retention: `with weeks as (
      select student_id, date_trunc('week', event_time at time zone 'UTC')::date as week from interactions
      where student_id is not null group by 1, 2
    ), firsts as (select student_id, min(week) as first_week from weeks group by 1)
    select (week - first_week) / 7, count(*), round(100.0 * count(*) / (select count(*) from firsts), 1)
    from weeks join firsts using (student_id) where week - first_week <= 56 group by 1 order by 1`,
  'top-offers': `select category, offer, codes from (
      select c.name as category, o.name as offer, count(*) as codes,
        row_number() over (partition by c.category_id order by count(*) desc, o.offer_id) as rank
      from categories c join shop_categories sc using (category_id) join offers o using (shop_id)
      join interactions i on i.item_type = 'OFFER' and i.item_id = o.offer_id and i.interaction_type = 'DISCOUNT_CODE'
      group by c.category_id, c.name, o.offer_id, o.name
    ) ranked where rank <= 3 order by category collate "C", codes desc, offer collate "C"`,
  'first-redemption': `select ${month('c.created')}, count(*), round((percentile_cont(0.5) within group (
      order by extract(epoch from first.redeemed - c.created)) / 86400)::numeric, 1)
    from customers c cross join lateral (
      select min(t.created) as redeemed from transactions t where t.student_id = c.customer_id
        and t.created >= c.created and t.offer_id is not null) first
    where first.redeemed is not null group by 1 order by 1`,
  'quiet-shops': `select s.name, max(${day('i.event_time')}) from shops s
    left join shown i on i.interaction_type = 'DISCOUNT_CODE' and i.shop_id = s.shop_id
    group by s.shop_id, s.name
    having coalesce(max(${day('i.event_time')}), '0001-01-01') < '2026-10-25'
    order by 2 nulls first, s.name collate "C"`,
};

describe('docs/analytics.md answers', () => {
  it.each(Object.keys(answers))('%s', async (question) => {
    const found = await duckDb.runAndReadAll(page.snippet(question));
    expectSame(comparable(found.getRowsJson()), await fromPostgres(answers[question] ?? ''));
  });

  it.skipIf(!hasTool('readers of the lake'))('training, in Polars', async () => {
    const python = join(needTool('readers of the lake'), 'python');
    const program = `${page.snippet('training')}\nimport json; print(json.dumps(training.rows()))`;
    const { stdout } = await run(python, ['-c', program], { cwd: folder, maxBuffer: 1e8 });
    expectSame(
      JSON.parse(stdout),
      await fromPostgres(`select i.student_id, i.shop_id, count(*) filter (where interaction_type = 'PAGE_VIEW'),
          count(*) filter (where interaction_type = 'DISCOUNT_CODE'),
          (exists (select from transactions t where t.student_id = i.student_id and t.shop_id = i.shop_id
            and t.created >= '2026-07-01Z'))::integer
        from shown i where i.student_id is not null and i.event_time < '2026-07-01Z'
        group by i.student_id, i.shop_id order by 1, 2`),
    );
  });

  it('how many shops each organisation has', async () => {
    // This replaces DuckDB's Delta Lake extension, which would have to be downloaded.
    await duckDb.run(`create macro delta_scan(path) as table
      from read_parquet(path || '/**/*.parquet', union_by_name = true)`);
    const statements = page
      .snippet('all-organisations')
      .replaceAll('/srv/lake', fileURLToPath(lake.url))
      .replaceAll('organisations.json', join(folder, 'organisations.json'))
      .trimEnd()
      .split(/;\n/);
    for (const statement of statements.slice(0, -1)) await duckDb.run(statement);
    const found = await duckDb.runAndReadAll(statements.at(-1) ?? '');
    expect(comparable(found.getRowsJson())).toEqual([
      ['acme', 20],
      ['brook', 3],
    ]);
  });

  it('ten questions', () => {
    expect([...Object.keys(answers), 'training']).toHaveLength(10);
  });

  it('the picture shows the cohorts', async () => {
    const found = await duckDb.runAndReadAll(page.snippet('cohorts'));
    const drawn = drawCohorts(comparable(found.getRowsJson()) as [string, number, number][]);
    if (process.env.PICTURES === 'docs') writeFileSync(picture, drawn);
    expect(readFileSync(picture, 'utf8')).toBe(drawn);
  });
});
