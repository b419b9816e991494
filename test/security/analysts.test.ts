// @module-tag full
// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createAnalyst } from '../support/analysts.ts';
import { createTestDatabase } from '../support/database.ts';
import { fillTable } from '../support/filled-tables.ts';
import { runCommand } from '../support/run-command.ts';

/** An analyst can read the views and the tables behind them, but cannot read or write anything else. */

const ownerUrl = await createTestDatabase();
const owner = new pg.Client({ connectionString: ownerUrl });
let analyst: pg.Client;

/** The API description lists the record types that the role may read. It may not read other relations in our schemas. */
const description = readFileSync(fileURLToPath(new URL('../../openapi.json', import.meta.url)), 'utf8');
const recordTypes = Object.keys(JSON.parse(description).paths).flatMap(
  (path) => /^\/v1\/data\/([a-z-]+)$/.exec(path)?.[1]?.replaceAll('-', '_') ?? [],
);
const tables = [...recordTypes, 'interactions', 'organisations', 'record_counts'];
const views = [...recordTypes, 'interactions', 'organisations', 'freshness'];
const readable = [...tables.map((name) => `public.${name}`), ...views.map((name) => `analytics_all.${name}`)];
const readableColumns = ['organisation_id', 'slug', 'name'];

const refused = { code: '42501' };
/** Tables whose values must never be visible to an analyst. */
const secretTables = ['api_keys', 'audit_log'];
const [hash, entry] = ['c0ffee00'.repeat(8), 'planted-in-the-audit-log-7c1e'];
const secrets = [hash, Buffer.from(hash, 'hex').toString('base64'), entry];

interface Relation {
  readonly name: string;
  readonly kind: string;
}

/** Returns the relations in the matching schemas, without the views that Citus adds to our schemas. */
async function relationsIn(schemas: string): Promise<Relation[]> {
  const { rows } = await owner.query<Relation>(
    `select format('%I.%I', n.nspname, c.relname) as name, c.relkind::text as kind
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where ${schemas} and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f', 't')
       and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
     order by 1`,
  );
  return rows;
}
const ours = `n.nspname not in ('pg_catalog', 'information_schema')`;

beforeAll(async () => {
  await owner.connect();
  // The template database has been migrated, but clones do not inherit privileges on the database itself.
  expect(await runCommand(['migrate'], { DATABASE_URL: ownerUrl })).toMatchObject({ exitCode: 0 });
  await owner.query('set session_replication_role = replica');
  for (const table of [...tables, ...secretTables]) await fillTable(owner, table, 1, 100);
  await owner.query(`update api_keys set key_sha256 = decode('${hash}', 'hex')`);
  await owner.query(`update audit_log set actor = '${entry}', details = '{"secret": "${entry}"}'`);
  await owner.query('set session_replication_role = origin');
  await owner.query('analyze');
  analyst = await createAnalyst(ownerUrl, 'otto');
});
afterAll(async () => {
  await analyst.end();
  await owner.end();
});

/** Returns how many of a relation's rows show a secret to the given login. */
async function countShowing(client: pg.Client, relation: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::integer as count from ${relation} t
     where exists (select from unnest($1::text[]) as secret where strpos(t::text, secret) > 0)`,
    [secrets],
  );
  return rows[0]?.count ?? 0;
}

describe('an analyst reads', () => {
  it('every row of the views', async () => {
    for (const name of views) {
      const table = name === 'freshness' ? 'record_counts' : name;
      const counts = await Promise.all(
        [analyst.query(`select from analytics_all.${name}`), owner.query(`select from public.${table}`)].map(
          async (rows) => (await rows).rowCount,
        ),
      );
      expect(counts[0], name).toBe(100);
      expect(counts[1], name).toBe(100);
    }
  });

  it('no other relation of the database', async () => {
    const relations = await relationsIn(ours);
    const others = relations.filter(({ name }) => !readable.includes(name));
    expect(relations.length - others.length).toBe(readable.length);
    expect(others.length).toBeGreaterThan(60);
    for (const { name } of others)
      await expect(analyst.query(`select from ${name}`), name).rejects.toMatchObject(refused);
  });

  it('only the name of organisations', async () => {
    const { rows } = await owner.query<{ name: string }>(
      `select attname as name from pg_attribute
       where attrelid = 'public.organisations'::regclass and attnum > 0 and not attisdropped`,
    );
    const others = rows.filter(({ name }) => !readableColumns.includes(name));
    expect(rows.length - others.length).toBe(readableColumns.length);
    for (const { name } of others)
      await expect(analyst.query(`select ${name} from public.organisations`), name).rejects.toMatchObject(
        refused,
      );
  });

  it('no hash of a key and no audit entry in the catalogues', async () => {
    // The statistics contain the planted values and show them to the owner, which proves that the check works.
    expect(await countShowing(owner, 'pg_catalog.pg_stats')).toBeGreaterThan(0);
    const relations = await relationsIn(`not (${ours})`);
    expect(relations.length).toBeGreaterThan(150);
    for (const { name } of relations) {
      const shown = await countShowing(analyst, name).catch((error) => {
        expect(error, name).toMatchObject(refused);
        return 0;
      });
      expect(shown, name).toBe(0);
    }
  });
});

describe('an analyst writes', () => {
  it('to no relation, and creates nothing in any schema', async () => {
    for (const { name, kind } of await relationsIn(ours)) {
      const statements = kind === 'S' ? [`select nextval('${name}')`] : [`delete from ${name}`];
      if (kind !== 'S') statements.push(`insert into ${name} default values`, `truncate ${name}`);
      for (const statement of statements) {
        // No login can write to a view with a join, or to any view on Citus, and PostgreSQL reports that before it
        // checks privileges.
        const error = await analyst.query(statement).catch((thrown) => thrown);
        const codes = ['42501', '55000', '42809', ...(inject('citus') && kind === 'v' ? ['0A000'] : [])];
        expect(codes, `${statement}: ${error.message}`).toContain(error.code);
      }
    }
    const { rows } = await analyst.query(
      `select nspname from pg_namespace where has_schema_privilege(oid, 'create')
       union all select relname from pg_class c
       where (has_table_privilege(oid, 'insert, update, delete, truncate, references, trigger')
          or has_any_column_privilege(oid, 'insert, update, references'))
         -- Updating this view only changes the current session's settings.
         and oid <> 'pg_catalog.pg_settings'::regclass
       union all select spcname from pg_tablespace where has_tablespace_privilege(oid, 'create')`,
    );
    expect(rows).toEqual([]);
  });

  it.each([
    ['serve', 'set role intake_serve'],
    ['administer', 'set role intake_admin'],
    ['be the owner', 'set role postgres'],
    ['log in again as somebody else', 'set session authorization postgres'],
    ['give itself a role', 'grant intake_admin to current_user'],
    ['change a view', 'alter view analytics_all.shops set (security_barrier = false)'],
    ['replace a view', 'create or replace view analytics_all.shops as select * from public.shops'],
    ['create a table', 'create table public.mine (a int)'],
    ['create a temporary table', 'create temporary table mine (a int)'],
    ['create a schema', 'create schema mine'],
    // Lock only one organisation's rows. Otherwise Citus refuses the statement before it checks privileges.
    ['lock rows', `select from public.shops where organisation_id = '${randomUUID()}' for share`],
    ['keep writers out', 'begin; lock table public.shops in share mode'],
    ['look a key up', `select find_api_key('x')`],
    ['list keys', `select changed_api_keys('0'::xid8)`],
    ['drop partitions', 'select detach_weekly_partition(7)'],
    ['read files of the machine', `select pg_read_file('/etc/passwd')`],
    ['run programs', `copy (select 1) to program 'cat'`],
    [
      'end the sessions of others',
      `select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postgres'`,
    ],
  ])('nothing else either: it cannot %s', async (_what, statement) => {
    await expect(analyst.query(statement)).rejects.toMatchObject(refused);
    await analyst.query('rollback');
  });
});

describe('the functions that an analyst may call', () => {
  interface Callable {
    readonly name: string;
    readonly types: string[];
  }

  it('are, of our own, two that read no table', async () => {
    const { rows } = await analyst.query<{ name: string }>(
      `select p.proname as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where ${ours} and has_function_privilege(p.oid, 'execute') and p.prorettype <> 'trigger'::regtype
         and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
       order by 1`,
    );
    expect(rows.map(({ name }) => name)).toEqual(['recovery_target', 'uuid_floor']);
  });

  /** Returns arguments that refer to a table, by argument type, in several variants. */
  const argumentsFor = (table: string): Readonly<Record<string, readonly string[]>> => ({
    text: [`'public.${table}'`, `'select * from public.${table}'`, `'delete from public.${table}'`],
    name: [`'${table}'`, `'public'`],
    cstring: [`'public.${table}'`],
    regclass: [`'public.${table}'`, `pg_get_serial_sequence('audit_log', 'audit_id')::regclass`],
    oid: [`'public.${table}'::regclass::oid`, '0', `'otto_${new URL(ownerUrl).pathname.slice(1)}'::regrole`],
    regnamespace: [`'public'`],
    refcursor: [`'c'`],
    bytea: [`'x'`],
    integer: ['1', '0', '131072'],
    bigint: ['1'],
    smallint: ['1'],
    boolean: ['true', 'false'],
    tid: [`'(0,1)'`],
    'double precision': ['0.1'],
    interval: [`'1 ms'`],
    'timestamp with time zone': ['now()'],
    pg_lsn: [`'0/1'`],
    xid: [`'3'`],
    xid8: [`'3'`],
    'text[]': [`'{}'`],
    'oid[]': [`'{}'`],
    'integer[]': [`'{1}'`],
    '"char"': [`'r'`],
    anyarray: ['array[1]'],
    anyelement: ['1'],
    numeric: ['1'],
    tsquery: [`'x'`],
  });

  /** Returns all functions that could read or write data. Immutable functions only see their arguments. */
  async function callable(): Promise<Callable[]> {
    const { rows } = await analyst.query<Callable>(
      `select format('%I.%I', n.nspname, p.proname) as name,
         array(select format_type(t, null) from unnest(p.proargtypes) with ordinality a (t, o) order by o) as types
       from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where has_function_privilege(p.oid, 'execute') and p.provolatile <> 'i' and p.prokind in ('f', 'p')
         and has_schema_privilege(n.oid, 'usage')
         and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
       order by 1`,
    );
    const known = argumentsFor('api_keys');
    return rows.filter(({ types }) => types.every((type) => type in known));
  }

  /** Returns the call's result as text, and whether the call wrote anything. Only a writing transaction has an id. */
  async function call(client: pg.Client, statement: string): Promise<{ returned: string; wrote: boolean }> {
    const script = `begin; set local statement_timeout = '2s'; ${statement};
      select pg_current_xact_id_if_assigned() is not null as wrote`;
    try {
      const results = (await client.query(script)) as unknown as pg.QueryResult[];
      return { returned: JSON.stringify(results[2]?.rows), wrote: results[3]?.rows[0].wrote };
    } catch {
      return { returned: '', wrote: false };
    } finally {
      await client.query('rollback; select pg_advisory_unlock_all()');
    }
  }

  /**
   * Functions that every login can call on a primary, because only a superuser could revoke that privilege.
   * docs/analytics.md lists these functions.
   */
  const writing = [
    'lo_creat',
    'lo_create',
    'lo_from_bytea',
    'pg_current_xact_id',
    'pg_logical_emit_message',
    'txid_current',
  ];

  it('return no secret, and write to no table', async () => {
    const functions = await callable();
    expect(functions.length).toBeGreaterThan(400);
    // The same kind of call returns the secrets to the owner, which proves that the check would detect them.
    for (const [table, index] of [
      ['api_keys', 1],
      ['audit_log', 2],
    ] as const) {
      const all = `select v::text from query_to_xml('select * from public.${table}', true, true, '') as v`;
      expect((await call(owner, all)).returned).toContain(secrets[index]);
    }
    const wrote = new Set<string>();
    const leaked = new Set<string>();
    for (const table of secretTables) {
      const known = argumentsFor(table);
      for (const { name, types } of functions)
        for (const variant of types.length === 0 ? [0] : [0, 1, 2]) {
          const values = types.map((type) => {
            const choices = known[type] ?? [];
            return `${choices[Math.min(variant, choices.length - 1)]}::${type}`;
          });
          const answer = await call(
            analyst,
            `select v::text from ${name}(${values.join(', ')}) as v limit 1000`,
          );
          if (answer.wrote) wrote.add(name.replace('pg_catalog.', ''));
          if (secrets.some((secret) => answer.returned.includes(secret))) leaked.add(name);
        }
    }
    expect([...leaked]).toEqual([]);
    expect([...wrote].toSorted()).toEqual(writing);
  });
});
