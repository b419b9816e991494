import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { boundAreRefused, createAnalyst } from '../support/analysts.ts';
import { createTestDatabase } from '../support/database.ts';
import { fillTable } from '../support/filled-tables.ts';
import { queryDatabase } from '../support/query-database.ts';

/** An analyst sees the organisation that the login is bound to, and finds no way around that. */

const ownerUrl = await createTestDatabase();
const database = new URL(ownerUrl).pathname.slice(1);
const owner = new pg.Client({ connectionString: ownerUrl });
/** The organisations of `fillTable`: the first has nine tenths of all rows. Ours is the second. */
const [ours, theirs] = [2, 1].map((number) => `00000000-0000-0000-0000-00000000000${number}`) as [
  string,
  string,
];
const planted = 'planted-7c1e';
let analyst: pg.Client;
let views: string[];

beforeAll(async () => {
  await owner.connect();
  await owner.query('set session_replication_role = replica');
  const { rows } = await owner.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname not in ('analysts', 'interaction_partitions', 'schema_migrations', 'schema_compatibility', 'restores', 'leases', 'cursor_key')`,
  );
  for (const { name } of rows) await fillTable(owner, name, 1, 1_000);
  await owner.query('update organisations set suspended_at = null');
  await owner.query('update shops set name = $1 where organisation_id = $2', [planted, theirs]);
  // Small, so that a plan would rather compute the cheap condition first, and sampled, so that statistics hold it.
  await owner.query('analyze');
  await owner.query('set session_replication_role = origin');
  analyst = await createAnalyst(ownerUrl, 'anna', 'intake_read', ours);
  const found = await owner.query<{ name: string }>(
    `select viewname as name from pg_views where schemaname = 'analytics' order by 1`,
  );
  views = found.rows.map(({ name }) => name);
});
afterAll(async () => {
  await analyst.end();
  await owner.end();
});

const refused = { code: '42501' };
/** Citus has views in the same schema, which show the names of tables. */
const isOurs = `not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')`;
const countOf = async (client: pg.Client, from: string, values: unknown[] = []) => {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::integer as count from ${from}`,
    values,
  );
  return rows[0]?.count;
};

/** The table of which a view shows the rows of an organisation. */
const rowsBehind = (view: string) => `public.${view === 'freshness' ? 'record_counts' : view}`;

describe('an analyst of one organisation', () => {
  it.skipIf(boundAreRefused)('sees its rows in every view, and no other', async () => {
    expect(views.length).toBeGreaterThan(16);
    for (const view of views) {
      const own = await countOf(owner, `${rowsBehind(view)} where organisation_id = $1`, [ours]);
      expect(own, view).toBeGreaterThan(0);
      expect(await countOf(analyst, view), view).toBe(own);
      expect(await countOf(analyst, `${view} v where v::text like $1`, [`%${planted}%`]), view).toBe(0);
    }
  });

  it('reads no table, whichever it is, nor the views of all organisations', async () => {
    const { rows } = await owner.query<{ name: string }>(
      `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname in ('public', 'analytics_all') and c.relkind in ('r', 'p', 'v', 'm', 'S') and ${isOurs}`,
    );
    expect(rows.length).toBeGreaterThan(80);
    for (const { name } of rows)
      await expect(analyst.query(`select from ${name}`), name).rejects.toMatchObject(refused);
  });

  it.each([
    ['serve', 'set role intake_serve'],
    ['administer', 'set role intake_admin'],
    ['read all', 'set role intake_read_all'],
    ['be the owner', 'set role postgres'],
    ['log in anew as somebody else', 'set session authorization postgres'],
    ['bind a login', `insert into public.analysts values (current_user::regrole, '${theirs}')`],
    ['move a binding', `update public.analysts set organisation_id = '${theirs}'`],
    ['give itself a role', 'grant intake_read_all to current_user'],
    ['change a view', 'alter view analytics.shops set (security_barrier = false)'],
    ['take a view over', 'alter view analytics.shops owner to current_user'],
    ['replace a view', 'create or replace view analytics.shops as select * from public.shops'],
    ['make a view that others would find', 'create view analytics.more as select 1'],
    ['create a table', 'create table public.mine (a int)'],
    ['create a schema', 'create schema mine'],
    ['write through a view', `update analytics.shops set name = 'x'`],
    ['delete through a view', 'delete from analytics.shops'],
    ['insert through a view', `insert into analytics.organisations values ('${randomUUID()}', 'x', 'x')`],
    ['lock a table', 'begin; lock table public.shops in access share mode'],
    ['lock rows', 'select from analytics.shops for update'],
    ['look a key up', `select find_api_key('x')`],
    ['list keys', `select changed_api_keys('0'::xid8)`],
    ['make partitions', 'select ensure_interaction_partitions(1)'],
    ['drop partitions', 'select detach_weekly_partition(7)'],
    ['read the sampled values', 'select from pg_statistic'],
    ['read files of the machine', `select pg_read_file('/etc/passwd')`],
    ['run programs', `copy (select 1) to program 'cat'`],
    [
      'end what others do',
      `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postgres'`,
    ],
  ])('cannot %s', async (_what, statement) => {
    await expect(analyst.query(statement)).rejects.toMatchObject(refused);
    await analyst.query('rollback');
  });

  it.skipIf(boundAreRefused)('finds no values in the statistics of the planner', async () => {
    expect(
      await countOf(owner, `pg_stats where tablename = 'shops' and schemaname = 'public'`),
    ).toBeGreaterThan(0);
    for (const statistics of ['pg_stats', 'pg_stats_ext', 'pg_stats_ext_exprs'])
      expect(await countOf(analyst, `${statistics} where schemaname !~ '^(pg_|information_)'`)).toBe(0);
  });

  it('finds no organisation and no value in the definitions of the views', async () => {
    const { rows } = await analyst.query<{ definition: string }>(
      `select definition from pg_views where schemaname ~ '^analytics'
       union all select pg_get_viewdef('public.analyst_organisation'::regclass)`,
    );
    const text = rows.map(({ definition }) => definition).join('\n');
    expect(text).toContain('SESSION_USER');
    expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/);
    expect(text).not.toContain(planted);
  });
});

describe.skipIf(boundAreRefused)('what an analyst computes in a condition', () => {
  /** All that a function of the analyst's own is handed. It claims to cost nothing, so the planner would run it first. */
  const seenBy = async (statement: string): Promise<string[]> => {
    const seen: string[] = [];
    const notice = ({ message }: { message?: string | undefined }) => seen.push(message ?? '');
    analyst.on('notice', notice);
    try {
      for (const index of ['on', 'off']) {
        await analyst.query(`set enable_indexscan = ${index}; set enable_bitmapscan = ${index}`);
        await analyst.query(statement);
      }
    } finally {
      analyst.off('notice', notice);
    }
    return seen;
  };
  beforeAll(async () => {
    await analyst.query(`create function pg_temp.tell(value anyelement) returns boolean
      language plpgsql stable cost 0.0000001 as $$ begin raise notice '%', value; return true; end $$`);
    await analyst.query(`create function pg_temp.same(a text, b text) returns boolean
      language plpgsql immutable cost 0.0000001 as $$ begin raise notice '% %', a, b; return a = b; end $$`);
    await analyst.query(`create operator pg_temp.=== (function = pg_temp.same, leftarg = text, rightarg = text,
      restrict = eqsel, join = eqjoinsel)`);
  });

  it.each([
    ['a function', 'select from shops where pg_temp.tell(organisation_id)'],
    [
      'an operator of its own, which the planner tries on sampled values',
      `select from shops where name operator(pg_temp.===) 'x'`,
    ],
    ['a function in a join', 'select from shops s join transactions t on pg_temp.tell(s.organisation_id)'],
    [
      'a function in an outer join',
      'select from shops s left join offers o on pg_temp.tell(o.organisation_id)',
    ],
    [
      'a function in a lateral query',
      'select from shops s, lateral (select pg_temp.tell(s.organisation_id) as told) as l where told',
    ],
    ['a function in a case', 'select case when pg_temp.tell(organisation_id) then 1 end from shops'],
    ['a function in an order', 'select from shops order by pg_temp.tell(organisation_id)'],
    [
      'a function in having',
      'select from shops group by organisation_id, name having pg_temp.tell(organisation_id)',
    ],
    ['a function over interactions', 'select from interactions where pg_temp.tell(organisation_id)'],
    ['a function over organisations', 'select from organisations where pg_temp.tell(organisation_id)'],
    [
      'a function behind an index',
      `select from shops where shop_id > '${ours}' and pg_temp.tell(organisation_id)`,
    ],
  ])('is never handed another organisation: %s', async (what, statement) => {
    const seen = await seenBy(statement);
    if (!what.startsWith('an operator')) expect(seen.length).toBeGreaterThan(0);
    expect(seen.filter((text) => text.includes(theirs) || text.includes(planted))).toEqual([]);
  });

  it('would be handed it, and the sampled values too, by a view without a barrier', async () => {
    await owner.query('alter view analytics.shops set (security_barrier = false)');
    const byFunction = await seenBy('select from shops where pg_temp.tell(organisation_id)');
    const byPlanner = await seenBy(`select from shops where name operator(pg_temp.===) 'x'`);
    await owner.query('alter view analytics.shops set (security_barrier = true)');
    expect(byFunction).toContain(theirs);
    expect(byPlanner.some((text) => text.includes(planted))).toBe(true);
  });

  it.each([
    [
      'a division by zero',
      `select from shops where 1 / (case when name = '${planted}' then 0 else 1 end) = 1`,
    ],
    ['a cast', `select from shops where (case when name = '${planted}' then 'x' else '1' end)::integer = 1`],
    [
      'a cast of the whole row',
      `select from shops s where replace(s::text, '${planted}', '') is not null
       and (case when s.organisation_id = '${theirs}' then 'x' else '1' end)::integer = 1`,
    ],
    [
      'a regular expression',
      `select from shops where name ~ (case when name = '${planted}' then '(' else '.' end)`,
    ],
  ])('does not fail for a row of another organisation: %s', async (_what, statement) => {
    await analyst.query(statement);
    const asOwner = statement.replace(' shops', ' analytics_all.shops');
    await expect(owner.query(asOwner)).rejects.toMatchObject({ severity: 'ERROR' });
  });

  it.each([
    ['a search_path that begins with its own objects', 'set search_path = pg_temp, analytics'],
    ['plans made once', 'set plan_cache_mode = force_generic_plan'],
    ['other plans', 'set enable_indexscan = off; set enable_seqscan = off; set enable_hashjoin = off'],
    ['row security turned off', 'set row_security = off'],
    ['another role', 'set role intake_read'],
  ])('sees no more with %s', async (_what, setting) => {
    await analyst.query(`create temporary table analysts (login regrole, organisation_id uuid);
      create temporary table analyst_organisation (organisation_id uuid);
      insert into analyst_organisation values ('${theirs}');
      create function pg_temp.to_regrole(text) returns regrole language sql as $$ select 'postgres'::regrole $$;
      create function pg_temp.quote_ident(text) returns text language sql as $$ select 'postgres' $$`);
    try {
      await analyst.query(setting);
      const text = 'select count(*)::integer as count from analytics.shops where organisation_id <> $1';
      const { rows } = await analyst.query<{ count: number }>({ name: randomUUID(), text, values: [ours] });
      expect(rows).toEqual([{ count: 0 }]);
      expect(await countOf(analyst, 'analytics.shops')).toBe(50);
    } finally {
      await analyst.query(`reset all; reset role; drop table pg_temp.analysts, pg_temp.analyst_organisation;
        drop function pg_temp.to_regrole, pg_temp.quote_ident`);
    }
  });
});

describe('the binding of a login', () => {
  const rowsOf = (client: pg.Client) => countOf(client, 'analytics.shops');

  it.skipIf(boundAreRefused)('is needed to see anything', async () => {
    const unbound = await createAnalyst(ownerUrl, 'una', 'intake_read');
    expect(await rowsOf(unbound)).toBe(0);
    await unbound.end();
  });

  it.skipIf(boundAreRefused)(
    'can be moved and ended while the analyst is connected, and the audit log has it',
    async () => {
      const moved = await createAnalyst(ownerUrl, 'mona', 'intake_read', ours);
      const login = `mona_${database}`;
      expect(await rowsOf(moved)).toBe(50);
      await owner.query('update analysts set organisation_id = $1 where login = $2::regrole', [
        theirs,
        login,
      ]);
      expect(await rowsOf(moved)).toBe(900);
      await owner.query('delete from analysts where login = $1::regrole', [login]);
      expect(await rowsOf(moved)).toBe(0);
      await moved.end();
      const { rows } = await owner.query(
        `select act, organisation_id from audit_log where details->>'login' = $1 order by audit_id`,
        [login],
      );
      expect(rows).toEqual([
        { act: 'analyst.bind', organisation_id: ours },
        { act: 'analyst.unbind', organisation_id: ours },
        { act: 'analyst.bind', organisation_id: theirs },
        { act: 'analyst.unbind', organisation_id: theirs },
      ]);
    },
  );

  it.skipIf(boundAreRefused)('shows nothing while the organisation is suspended', async () => {
    await owner.query('update organisations set suspended_at = now() where organisation_id = $1', [ours]);
    expect(await rowsOf(analyst)).toBe(0);
    await owner.query('update organisations set suspended_at = null where organisation_id = $1', [ours]);
    expect(await rowsOf(analyst)).toBe(50);
  });

  it.skipIf(boundAreRefused)(
    'follows a login that is renamed, and goes with one that is dropped',
    async () => {
      const first = await createAnalyst(ownerUrl, 'rita', 'intake_read', ours);
      await owner.query(`alter role rita_${database} rename to rosa_${database}`);
      expect(await rowsOf(first)).toBe(50);
      await first.end();
      const url = new URL(ownerUrl);
      await owner.query(`alter role rosa_${database} password '${url.password}'`);
      url.username = `rosa_${database}`;
      const [renamed] = await queryDatabase<{ count: number }>(
        url.href,
        'select count(*)::integer as count from analytics.shops',
      );
      expect(renamed).toEqual({ count: 50 });
      await owner.query(`drop role rosa_${database}`);
      const second = await createAnalyst(ownerUrl, 'rosa', 'intake_read');
      expect(await rowsOf(second)).toBe(0);
      await second.end();
    },
  );

  it('is made by a member of intake_admin, who reads no records', async () => {
    const url = new URL(ownerUrl);
    await owner.query(`create role ops_${database} login password '${url.password}' in role intake_admin;
      create role nora_${database} login in role intake_read`);
    url.username = `ops_${database}`;
    await queryDatabase(
      url.href,
      `insert into analysts (login, organisation_id)
       select 'nora_${database}'::regrole, organisation_id from organisations where slug = 'organisation-2'`,
    );
    expect(
      await countOf(owner, `analysts where login = 'nora_${database}'::regrole and organisation_id = $1`, [
        ours,
      ]),
    ).toBe(1);
    for (const from of ['analytics.shops', 'analytics_all.shops', 'public.shops'])
      await expect(queryDatabase(url.href, `select from ${from}`)).rejects.toMatchObject(refused);
  });
});

it('an analyst of all organisations sees every row of what the views show, and nothing else', async () => {
  const all = await createAnalyst(ownerUrl, 'otto', 'intake_read_all');
  for (const view of views) {
    expect(await countOf(all, view), view).toBe(await countOf(owner, rowsBehind(view)));
  }
  const { rows } = await owner.query<{ name: string }>(
    `select relname as name from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v')
       and not relispartition and ${isOurs}`,
  );
  const shown = ['record_counts', ...views];
  for (const { name } of rows.filter((table) => !shown.includes(table.name)))
    await expect(all.query(`select from public.${name}`), name).rejects.toMatchObject(refused);
  await expect(all.query('select suspended_at from public.organisations')).rejects.toMatchObject(refused);
  await expect(all.query('delete from public.shops')).rejects.toMatchObject(refused);
  await all.end();
});
