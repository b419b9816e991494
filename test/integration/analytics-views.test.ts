// @module-tag full
// @module-tag postgres-15

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { views } from '../../src/operator/analytics-views.ts';
import { grantRoles } from '../../src/operator/roles.ts';
import { migrate } from '../../src/postgres/schema/migrate.ts';
import { tableOf } from '../../src/records/tables.ts';
import { resourceTypes } from '../../src/registry/resources.ts';
import { timeOfUuidV7 } from '../../src/registry/uuid-v7.ts';
import { createAnalyst } from '../support/analysts.ts';
import { createTestDatabase } from '../support/database.ts';
import { fillTable } from '../support/filled-tables.ts';

/** The views match docs/analytics-views.md, even after another `migrate`, and are fast on large tables. */

const ownerUrl = await createTestDatabase();
const owner = new pg.Client({ connectionString: ownerUrl });
beforeAll(() => owner.connect());
afterAll(() => owner.end());

const schema = 'analytics_all';

/** Returns the view's columns and their descriptions from the database. */
async function columnsOf(view: string): Promise<string[]> {
  const { rows } = await owner.query<{ line: string }>(
    `select concat_ws(' | ', attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum)) as line
     from pg_attribute where attrelid = $1::regclass and attnum > 0 order by attnum`,
    [view],
  );
  return rows.map(({ line }) => line);
}

/** Returns a version that changes when a view is replaced. */
const versionOf = async (view: string) =>
  (await owner.query('select oid, xmin from pg_rewrite where ev_class = $1::regclass', [view])).rows[0];

describe('analytics_all', () => {
  it('has the described views, with their columns, and no other', async () => {
    const { rows } = await owner.query<{ name: string; about: string }>(
      `select relname as name, obj_description(oid, 'pg_class') as about from pg_class
       where relnamespace = $1::regnamespace order by relname`,
      [schema],
    );
    const described = views.map(({ name, about }) => ({ name, about }));
    expect(rows).toEqual(described.toSorted((one, other) => (one.name < other.name ? -1 : 1)));
    for (const { name, columns } of views) {
      const expected = columns.map((column) =>
        [column.name, column.type, column.about].filter(Boolean).join(' | '),
      );
      expect(await columnsOf(`${schema}.${name}`), name).toEqual(expected);
    }
  });

  it('has one for every record type', () => {
    const names = views.map(({ name }) => name);
    expect(resourceTypes.filter((type) => !names.includes(tableOf(type).name))).toEqual([]);
  });
});

describe('migrate', () => {
  it('does not change the views if they match their description', async () => {
    const before = await versionOf('analytics_all.shops');
    await migrate(ownerUrl, grantRoles);
    expect(await versionOf('analytics_all.shops')).toEqual(before);
  });

  it('recreates them if they do not, and keeps dependent views if columns were only added', async () => {
    await owner.query(`create view built as select * from analytics_all.tags`);
    await owner.query(`drop view analytics_all.shops; drop view analytics_all.courses;
      create view analytics_all.courses as select 1 as other;
      create view analytics_all.forgotten as select 1 as one;
      comment on schema analytics_all is 'of another version'`);
    await migrate(ownerUrl, grantRoles);
    for (const name of ['shops', 'courses'])
      expect(await columnsOf(`analytics_all.${name}`)).toHaveLength(
        views.find((view) => view.name === name)?.columns.length ?? 0,
      );
    expect((await owner.query(`select to_regclass('analytics_all.forgotten') as found`)).rows).toEqual([
      { found: null },
    ]);
    expect((await owner.query(`select count(*) from built`)).rowCount).toBe(1);
    const { rows } = await owner.query(
      `select has_table_privilege('intake_read_all', 'analytics_all.courses', 'select') as may`,
    );
    expect(rows).toEqual([{ may: true }]);
  });

  it('waits only three seconds for an analyst who reads a view, and then changes nothing', async () => {
    const reader = await createAnalyst(ownerUrl, 'rina');
    await owner.query(`comment on schema analytics_all is 'of another version'`);
    await reader.query('begin; select from analytics_all.shops');
    await expect(migrate(ownerUrl, grantRoles)).rejects.toMatchObject({ code: '55P03' });
    await reader.query('commit');
    await reader.end();
    await migrate(ownerUrl, grantRoles);
    expect(
      (await owner.query(`select obj_description('analytics_all'::regnamespace, 'pg_namespace') as mark`))
        .rows[0].mark,
    ).toMatch(/[0-9a-f]{64}$/);
  });
});

it('costs serving nothing: tables have no row security and no trigger for it', async () => {
  const { rows } = await owner.query(
    `select relname from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
       and (relrowsecurity or relforcerowsecurity or (relname in ('interactions', 'transactions', 'shops')
         and exists (select from pg_trigger where tgrelid = c.oid and not tgisinternal)))`,
  );
  expect(rows).toEqual([]);
});

// On Citus, the coordinator's plan does not show the workers' plans.
describe.skipIf(inject('citus') !== null)('on large tables', () => {
  const organisation = '00000000-0000-0000-0000-000000000001';
  const someId = '00000000-0000-0000-0000-000000000bb9';
  const ours = `organisation_id = '${organisation}'`;
  let otto: pg.Client;

  beforeAll(async () => {
    await owner.query('set session_replication_role = replica');
    for (const [table, rows] of Object.entries({
      organisations: 3,
      shops: 5_000,
      customers: 20_000,
      categories: 100,
    }))
      await fillTable(owner, table, 1, rows);
    for (const table of ['shop_categories', 'offers', 'tags', 'keywords'])
      await fillTable(owner, table, 1, 1_000);
    for (const table of ['transactions', 'interactions']) await fillTable(owner, table, 1, 100_000);
    await owner.query('set session_replication_role = origin');
    otto = await createAnalyst(ownerUrl, 'otto');
  });
  afterAll(() => otto.end());

  /** Returns the executed plan as text, including the partitions that were opened. */
  async function planOf(statement: string): Promise<string> {
    const { rows } = await otto.query<{ 'QUERY PLAN': string }>(
      `explain (analyze, costs off, timing off, summary off) ${statement}`,
    );
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  }

  it('a record is found by its id, and so are the shop and the customer of a transaction', async () => {
    const plan = await planOf(
      `select shop_name, customer_gender from transactions where transaction_id = '${someId}' and ${ours}`,
    );
    expect(plan).toMatch(
      /Index Scan using transactions_pkey[\s\S]*?Index Cond: \(\(organisation_id = .*transaction_id = /,
    );
    for (const index of ['shops_pkey', 'customers_pkey']) expect(plan).toContain(`Index Scan using ${index}`);
    expect(plan).not.toMatch(/Seq Scan on (transactions|shops|customers)/);
  });

  it('a joined table without selected columns is not read', async () => {
    const sales = await planOf(`select sum(amount) from transactions where not is_deleted and ${ours}`);
    expect(sales).not.toMatch(/on (shops|customers)/);
    const events = await planOf(`select platform, count(*) from interactions where ${ours} group by 1`);
    expect(events).not.toMatch(/on (shops|offers|tags|keywords)/);
  });

  it('interactions of some days are read from those days, by their index', async () => {
    const plan = await planOf(
      `select count(*) from interactions where interaction_id >= uuid_floor(date_trunc('day', now(), 'UTC') + interval '1 day') and ${ours}`,
    );
    const { rows } = await owner.query<{ id: string }>(
      `select interaction_id as id from interactions where ${ours} limit 1`,
    );
    const rowId = rows[0]?.id ?? '';
    // Midnight may have passed since the rows were added.
    const day = timeOfUuidV7(rowId).slice(0, 10).replaceAll('-', '_');
    expect(plan).not.toContain(`interactions_${day}`);
    const one = await planOf(
      `select item_name from interactions where interaction_id = '${rowId}' and ${ours}`,
    );
    expect(one.match(/on interactions_\w+/g)).toEqual([`on interactions_${day}`]);
    expect(one).toMatch(/Index Cond: \(\(organisation_id = .*interaction_id = /);
  });
});
