// @module-tag postgres-15

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { servingUrl } from '../support/database.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Every acceptance test runs the service with these privileges. This test shows what the privileges do not allow. */

let server: BuiltServer;
let serving: pg.Client;
beforeAll(async () => {
  server = await startBuiltServer();
  await server.createKey('acme');
  serving = new pg.Client({ connectionString: servingUrl(server.databaseUrl) });
  await serving.connect();
});
afterAll(async () => {
  await serving.end();
  await server.stop();
});

describe('the serving role', () => {
  it('owns nothing', async () => {
    const { rows } = await serving.query(
      `select relname from pg_class where relowner = (select oid from pg_roles where rolname = current_user)`,
    );
    expect(rows).toEqual([]);
  });

  it.each([
    ['create a table', 'create table mine (a int)'],
    ['create a schema', 'create schema mine'],
    ['create a role', 'create role mine'],
    ['change a table', 'alter table shops add column more text'],
    ['drop a table', 'drop table shops'],
    ['empty a table', 'truncate shops'],
    ['remove records', 'delete from shops'],
    ['remove interactions', 'delete from interactions'],
    ['change interactions', 'update interactions set user_id = null'],
    ['remove receipts', 'delete from receipts'],
    ['read the hashes of keys', 'select key_sha256 from api_keys'],
    ['read the ids of keys', 'select key_id from api_keys'],
    ['make a key', `insert into api_keys (key_id) values ('x')`],
    ['revoke a key', 'update api_keys set revoked_at = now()'],
    ['read the names of organisations', 'select name from organisations'],
    ['raise a quota', 'update organisations set records_stored_max = null'],
    ['change a measurement', 'update quota_usage set records = 0'],
    ['lift a suspension', 'update organisations set suspended_at = null'],
    ['delete an organisation', 'update organisations set deleted_at = now()'],
    ['remove an organisation', 'delete from organisations'],
    ['start a removal by hand', 'insert into removals (organisation_id) values (gen_random_uuid())'],
    ['change the progress of a removal', `update removals set rows = '{}'`],
    ['remove keys', 'delete from api_keys'],
    ['read the hashes of admin tokens', 'select token_sha256 from admin_tokens'],
    ['make an admin token', `insert into admin_tokens (name) values ('x')`],
    ['read the sessions of operators', 'select from operator_sessions'],
    ['sign in as an operator', `insert into operator_sessions values ('x', 'operator', now())`],
    ['set a retention', 'update organisations set interactions_kept_days = 1'],
    [
      'make something expire',
      `insert into retention_progress values (gen_random_uuid(), 'receipts', gen_random_uuid())`,
    ],
    ['make something expire earlier', 'update retention_progress set expired_below = gen_random_uuid()'],
    ['read the audit log', 'select from audit_log'],
    ['write the audit log', `insert into audit_log (actor, act, details) values ('x', 'x', '{}')`],
    ['replace the key of cursors', `update cursor_key set key = ''`],
    ['undo a migration', 'delete from schema_migrations'],
    ['read files of the machine', `select pg_read_file('/etc/passwd')`],
    ['run programs', `copy shops to program 'cat'`],
  ])('cannot %s', async (_what, statement) => {
    // The code 42501 means insufficient_privilege.
    await expect(serving.query(statement)).rejects.toMatchObject({ code: '42501' });
  });

  it('can only read the parts of a key that it needs to check it, and only by its id', async () => {
    const { rows } = await serving.query(`select * from find_api_key('no-such-key')`);
    expect(rows).toEqual([]);
    const { rows: found } = await serving.query(`select key_id from changed_api_keys('0'::xid8)`);
    expect(found.length).toBeGreaterThan(0);
  });

  it('of the admin API can only revoke tokens, not change them', async () => {
    const [row] = await queryDatabase<{ columns: string[] }>(
      server.databaseUrl,
      `select array_agg(attname::text) as columns from pg_attribute
       where attrelid = 'admin_tokens'::regclass and attnum > 0
         and has_column_privilege('intake_admin', attrelid, attnum, 'update')`,
    );
    expect(row?.columns).toEqual(['revoked_at']);
    const [deletes] = await queryDatabase<{ may: boolean }>(
      server.databaseUrl,
      `select has_table_privilege('intake_admin', 'admin_tokens', 'delete') as may`,
    );
    expect(deletes?.may).toBe(false);
  });

  it('is the only one that reads the key of cursors', async () => {
    const [row] = await queryDatabase<{ roles: string[] }>(
      server.databaseUrl,
      `select array_agg(rolname::text) as roles from pg_roles
       where rolname like 'intake\\_%' and rolname !~ 'test' and has_table_privilege(oid, 'cursor_key', 'select')`,
    );
    expect(row?.roles).toEqual(['intake_serve']);
  });

  it('causes no warning', () => {
    expect(server.log.filter((line) => line.includes('more rights than serving needs'))).toEqual([]);
  });
});

describe('a role that may do more', () => {
  const warningsOf = async (env: Record<string, string>) => {
    const other = await startBuiltServer({ ...env });
    await other.stop();
    return other.log.filter((line) => line.includes('more rights than serving needs')).join('\n');
  };

  it('causes a warning at the start: a superuser', async () => {
    const { username } = new URL(server.databaseUrl);
    const warnings = await warningsOf({ DATABASE_URL: server.databaseUrl, SERVE_AS: username });
    expect(warnings).toContain('is a superuser');
  });

  it('causes a warning at the start: one that owns a table, may create others and reads the keys', async () => {
    const owner = new pg.Client({ connectionString: server.databaseUrl });
    await owner.connect();
    const url = new URL(server.databaseUrl);
    const role = `more_${url.pathname.slice(1)}`;
    await owner.query(
      `create role ${role} login createdb password '${url.password}' in role intake_serve, intake_admin`,
    );
    await owner.query(`grant create on schema public to ${role}`);
    await owner.query(`create table theirs ()`);
    await owner.query(`alter table theirs owner to ${role}`);
    await owner.end();
    const warnings = await warningsOf({ DATABASE_URL: server.databaseUrl, SERVE_AS: role });
    for (const right of [
      'may create databases',
      'owns tables',
      'may create tables',
      'may read the hashes of all keys',
      'may do what the operator does',
    ]) {
      expect(warnings).toContain(right);
    }
  });
});
