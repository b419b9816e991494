// @module-tag postgres-15

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { views } from '../../src/operator/analytics-views.ts';
import { grantRoles } from '../../src/operator/roles.ts';
import { migrate } from '../../src/postgres/migrate.ts';
import { tableOf } from '../../src/records/tables.ts';
import { resourceTypes } from '../../src/registry/resources.ts';
import { boundAreRefused, createAnalyst } from '../support/analysts.ts';
import { createTestDatabase } from '../support/database.ts';
import { fillTable } from '../support/filled-tables.ts';

/** The views are what docs/analytics-views.md says, stay so when migrate runs again, and are fast on large tables. */

const ownerUrl = await createTestDatabase();
const owner = new pg.Client({ connectionString: ownerUrl });
beforeAll(() => owner.connect());
afterAll(() => owner.end());

const schemas = ['analytics', 'analytics_all'];

/** The columns as the database has them, each with its description. */
async function columnsOf(view: string): Promise<string[]> {
  const { rows } = await owner.query<{ line: string }>(
    `select concat_ws(' | ', attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum)) as line
     from pg_attribute where attrelid = $1::regclass and attnum > 0 order by attnum`,
    [view],
  );
  return rows.map(({ line }) => line);
}

/** Changes when a view is replaced. */
const versionOf = async (view: string) =>
  (await owner.query('select oid, xmin from pg_rewrite where ev_class = $1::regclass', [view])).rows[0];

describe.each(schemas)('%s', (schema) => {
  it('has the views that are described, with their columns, and no other', async () => {
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
  it('leaves the views alone while they are as described', async () => {
    const before = await versionOf('analytics.shops');
    await migrate(ownerUrl, grantRoles);
    expect(await versionOf('analytics.shops')).toEqual(before);
  });

  it('makes them anew where they are not, and keeps what was built on those that only grow', async () => {
    await owner.query(`create view built as select * from analytics_all.tags`);
    await owner.query(`drop view analytics.shops; drop view analytics.courses;
      create view analytics.courses as select 1 as other;
      create view analytics.forgotten as select 1 as one;
      comment on schema analytics is 'of another version'`);
    await migrate(ownerUrl, grantRoles);
    for (const name of ['shops', 'courses'])
      expect(await columnsOf(`analytics.${name}`)).toHaveLength(
        views.find((view) => view.name === name)?.columns.length ?? 0,
      );
    expect((await owner.query(`select to_regclass('analytics.forgotten') as found`)).rows).toEqual([
      { found: null },
    ]);
    expect((await owner.query(`select count(*) from built`)).rowCount).toBe(1);
    const { rows } = await owner.query(
      `select has_table_privilege('intake_read', 'analytics.courses', 'select') as may`,
    );
    expect(rows).toEqual([{ may: true }]);
  });

  it.skipIf(boundAreRefused)(
    'waits for an analyst who reads a view for three seconds only, and then changes nothing',
    async () => {
      const reader = await createAnalyst(ownerUrl, 'rina', 'intake_read');
      await owner.query(`comment on schema analytics is 'of another version'`);
      await reader.query('begin; select from analytics.shops');
      await expect(migrate(ownerUrl, grantRoles)).rejects.toMatchObject({ code: '55P03' });
      await reader.query('commit');
      await reader.end();
      await migrate(ownerUrl, grantRoles);
      expect(
        (await owner.query(`select obj_description('analytics'::regnamespace, 'pg_namespace') as mark`))
          .rows[0].mark,
      ).toMatch(/[0-9a-f]{64}$/);
    },
  );
});

it('costs whoever serves nothing: tables have no row security and no trigger for it', async () => {
  const { rows } = await owner.query(
    `select relname from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
       and (relrowsecurity or relforcerowsecurity or (relname in ('interactions', 'transactions', 'shops')
         and exists (select from pg_trigger where tgrelid = c.oid and not tgisinternal)))`,
  );
  expect(rows).toEqual([]);
});

describe.skipIf(boundAreRefused)('on large tables', () => {
  const organisation = '00000000-0000-0000-0000-000000000001';
  const someId = '00000000-0000-0000-0000-000000000bb9';
  let anna: pg.Client;
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
    await owner.query('update organisations set suspended_at = null');
    await owner.query('set session_replication_role = origin');
    anna = await createAnalyst(ownerUrl, 'anna', 'intake_read', organisation);
    otto = await createAnalyst(ownerUrl, 'otto', 'intake_read_all');
  });
  afterAll(async () => {
    await anna.end();
    await otto.end();
  });

  /** What is run, in the end: the plan in words, with the partitions that were opened. */
  async function planOf(client: pg.Client, statement: string): Promise<string> {
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (analyze, costs off, timing off, summary off) ${statement}`,
    );
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  }

  /** Who asks, and what finds the organisation: the binding, or the analyst's own condition. */
  const askers = () => [
    { client: anna, and: '' },
    { client: otto, and: `and organisation_id = '${organisation}'` },
  ];

  it('a record is found by its id, and so are the shop and the customer of a transaction', async () => {
    for (const { client, and } of askers()) {
      const plan = await planOf(
        client,
        `select shop_name, customer_gender from transactions where transaction_id = '${someId}' ${and}`,
      );
      expect(plan).toMatch(
        /Index Scan using transactions_pkey[\s\S]*?Index Cond: \(\(organisation_id = .*transaction_id = /,
      );
      for (const index of ['shops_pkey', 'customers_pkey'])
        expect(plan).toContain(`Index Scan using ${index}`);
      expect(plan).not.toMatch(/Seq Scan on (transactions|shops|customers)/);
    }
  });

  it('what is joined but not asked for is not read', async () => {
    for (const { client, and } of askers()) {
      const sales = await planOf(client, `select sum(amount) from transactions where not is_deleted ${and}`);
      expect(sales).not.toMatch(/on (shops|customers)/);
      const events = await planOf(
        client,
        `select platform, count(*) from interactions where true ${and} group by 1`,
      );
      expect(events).not.toMatch(/on (shops|offers|tags|keywords)/);
    }
  });

  it('interactions of some days are read from those days, by their index', async () => {
    for (const { client, and } of askers()) {
      const plan = await planOf(
        client,
        `select count(*) from interactions where interaction_id >= uuid_floor(date_trunc('day', now(), 'UTC') + interval '1 day') ${and}`,
      );
      const today = new Date().toISOString().slice(0, 10).replaceAll('-', '_');
      expect(plan).not.toContain(`interactions_${today}`);
      const one = await planOf(
        client,
        `select item_name from interactions where interaction_id = '${await anInteraction()}' ${and}`,
      );
      expect(one.match(/on interactions_\w+/g)).toEqual([`on interactions_${today}`]);
      expect(one).toMatch(/Index Cond: \(\(organisation_id = .*interaction_id = /);
    }
  });

  it('conditions on times are computed where the table is read', async () => {
    const plan = await planOf(
      anna,
      `select count(*) from interactions where event_time >= now() - interval '1 hour'`,
    );
    expect(plan).toMatch(/on interactions_[\s\S]*?Filter: .*event_time >= /);
    expect(plan).not.toMatch(/Subquery Scan[\s\S]*?Filter: .*event_time/);
  });

  it('PostgreSQL compares ids, times, dates and texts before it knows whose row it is, since that tells nothing', async () => {
    const { rows } = await owner.query<{ name: string }>(
      `select distinct p.proname as name from pg_operator o join pg_proc p on p.oid = o.oprcode
       where o.oprleft = o.oprright and o.oprleft in ('uuid'::regtype, 'timestamptz'::regtype, 'date'::regtype, 'text'::regtype)
         and (o.oprname = '=' or o.oprname in ('<', '<=', '>', '>=') and o.oprleft <> 'text'::regtype) and not p.proleakproof`,
    );
    expect(rows).toEqual([]);
  });

  const anInteraction = async () =>
    (
      await owner.query<{ id: string }>(
        'select interaction_id as id from interactions where organisation_id = $1 limit 1',
        [organisation],
      )
    ).rows[0]?.id;
});
