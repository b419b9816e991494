import { expect, inject, it, onTestFinished } from 'vitest';
import { checkDatabase } from '../../src/cli/database/check-database.ts';
import { readConfig } from '../../src/config.ts';
import { Workers } from '../../src/postgres/health/workers.ts';
import { createPool } from '../../src/postgres/pool.ts';
import { createTestDatabase, servingUrl } from '../support/database.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Settings and clocks of a cluster's workers. Plain PostgreSQL stands in for Citus and runs the workers' statements itself. */
const standIn = `
  set allow_system_table_mods = on;
  insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
    values (999999, 'citus', 10, 'pg_catalog'::regnamespace, false, '');
  create table pg_dist_node (nodeid integer, groupid integer, nodename text, nodeport integer);
  grant select on pg_dist_node to public;
  create function run_command_on_all_nodes(command text) returns table (nodeid integer, success boolean, result text)
    language plpgsql as $$
    declare
      node record;
    begin
      for node in select * from pg_dist_node order by pg_dist_node.nodeid loop
        perform set_config('synchronous_commit', case when node.nodename = 'unsafe' then 'off' else 'on' end, true);
        execute command into result;
        nodeid := node.nodeid;
        success := node.nodename <> 'away';
        if not success then
          result := 'connection failed';
        elsif node.nodename = 'ahead' then
          result := jsonb_set(result::jsonb, '{now_ms}', to_jsonb((result::jsonb->>'now_ms')::numeric + 90000))::text;
        end if;
        return next;
      end loop;
    end $$;`;

const onCitus = inject('citus') !== null;

async function newDatabase() {
  const databaseUrl = await createTestDatabase();
  const url = servingUrl(databaseUrl);
  const pool = createPool(readConfig({ DATABASE_URL: url }), () => {});
  onTestFinished(() => pool.end());
  const workers = new Workers(pool);
  return {
    unmet: async () => {
      await workers.look();
      return workers.unmet();
    },
    start: () => checkDatabase(pool, { setting: 'DATABASE_URL', url, role: 'intake_serve' }, false),
    query: (text: string) => queryDatabase(databaseUrl, text),
  };
}

it.skipIf(onCitus)('plain PostgreSQL has no workers', async () => {
  const { unmet, start } = await newDatabase();
  expect(await unmet()).toBeUndefined();
  expect((await start()).warnings.join()).not.toContain('worker');
});

it.skipIf(onCitus)('a worker with an unsafe setting or a wrong clock is named', async () => {
  const { unmet, start, query } = await newDatabase();
  await query(standIn);
  await query(
    `insert into pg_dist_node values (1, 0, 'unsafe', 5432), (2, 1, 'right', 5433), (3, 2, 'away', 5434)`,
  );
  expect(await unmet()).toBeUndefined();
  await start();
  await query(`insert into pg_dist_node values (4, 3, 'ahead', 5435)`);
  expect(await unmet()).toMatchObject({
    code: 'clock_differs',
    message: expect.stringMatching(/PostgreSQL on the worker ahead:5435 is (89|90) seconds ahead of/),
  });
  await query(`update pg_dist_node set nodename = 'unsafe' where nodeid = 2`);
  const unsafe =
    /PostgreSQL on the worker unsafe:5433 may lose data .* because of synchronous_commit=off; turn it on/;
  await query('delete from pg_dist_node where nodeid = 4');
  expect(await unmet()).toMatchObject({ code: 'database_unsafe', message: expect.stringMatching(unsafe) });
  await expect(start()).rejects.toThrow(unsafe);
});
