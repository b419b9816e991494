// @module-tag postgres-15

import { afterAll, expect, inject, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { NodePools, SharedPool } from '../../src/postgres/cluster/node-pools.ts';
import {
  type Client,
  createPool,
  isUnavailable,
  leavesOutcomeOpen,
  type OwnPool,
  type Pool,
} from '../../src/postgres/pool.ts';
import { inOneTransaction } from '../../src/postgres/transactions.ts';
import { createTestDatabase } from '../support/database.ts';

const config = readConfig({ DATABASE_URL: await createTestDatabase() });
const pools: OwnPool[] = [];
afterAll(() => Promise.all(pools.map((pool) => pool.end())));

async function settingOf(name: string, options?: { plansOnce: boolean }): Promise<string> {
  const pool = createPool(config, () => {}, options);
  pools.push(pool);
  const { rows } = await pool.query<{ value: string }>('select current_setting($1) as value', [name]);
  return rows[0]?.value ?? '';
}

it('only a pool that requests it plans once, and on Citus none does', async () => {
  expect(await settingOf('plan_cache_mode')).toBe('auto');
  expect(await settingOf('plan_cache_mode', { plansOnce: true })).toBe(
    inject('citus') ? 'auto' : 'force_generic_plan',
  );
});

it('no statement is compiled', async () => {
  expect(await settingOf('jit')).toBe('off');
});

it('only a connection for requests avoids reading whole tables if it can use an index', async () => {
  expect(await settingOf('enable_seqscan')).toBe('on');
  expect(await settingOf('enable_seqscan', { plansOnce: true })).toBe('off');
});

it('of statements that share a commit nothing is stored if one reports a broken connection and COMMIT was answered', async () => {
  const pool = createPool(config, () => {});
  pools.push(pool);
  const client = await pool.connect();
  await client.query('create table kept (number integer)');
  const broken = `do $$ begin raise exception using errcode = '08006', message = 'server closed the connection'; end $$`;
  const error: unknown = await inOneTransaction(client, [
    (on) => on.query('insert into kept values (1)'),
    (on) => on.query(broken),
  ]).catch((thrown: unknown) => thrown);
  expect([isUnavailable(error), leavesOutcomeOpen(error)]).toEqual([true, false]);
  expect((await client.query('select from kept')).rowCount).toBe(0);
  // A statement outside a transaction may have been committed before the connection failed.
  const alone: unknown = await client.query(broken).catch((thrown: unknown) => thrown);
  expect(leavesOutcomeOpen(alone)).toBe(true);
  client.release();
});

it.each([
  'postmaster was shut down, exiting',
  'terminating connection due to administrator command',
  'FATAL:  terminating connection due to unexpected postmaster exit',
  'server closed the connection unexpectedly',
])('errors of Citus about a lost server, without a code, count as unavailable: %s', async (message) => {
  const pool = createPool(config, () => {});
  pools.push(pool);
  const raised = (text: string) =>
    pool
      .query(`do $$ begin raise exception using errcode = 'XX000', message = '${text}'; end $$`)
      .catch((thrown: unknown) => thrown);
  const error = await raised(message);
  expect([isUnavailable(error), leavesOutcomeOpen(error)]).toEqual([true, true]);
  expect(isUnavailable(await raised(`a row says: ${message}`))).toBe(false);
});

it('a session that PostgreSQL refuses to start counts as unavailable, whatever the code', async () => {
  const refused = createPool(
    { ...config, databaseUrl: `${config.databaseUrl}?options=-c%20no_such=1` },
    () => {},
  );
  pools.push(refused);
  const error: unknown = await refused.query('select').catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ severity: 'FATAL' });
  expect(isUnavailable(error)).toBe(true);
});

it('uploads of an organisation leave connections for its readers of changes, and both leave one for others', async () => {
  const own = createPool(config, () => {});
  pools.push(own);
  const shared = new SharedPool(new NodePools(own));
  /** Takes connections until the next client would have to wait. */
  const takeAll = async (pool: Pool): Promise<Client[]> => {
    const taken: Client[] = [];
    for (;;) {
      const connecting = pool.connect();
      if (shared.waitingCount > waiting.length) {
        waiting.push(connecting);
        return taken;
      }
      taken.push(await connecting);
    }
  };
  const waiting: Promise<Client>[] = [];
  const uploads = await takeAll(shared.for('acme'));
  const reads = await takeAll(shared.forReaders('acme'));
  expect([uploads.length, reads.length, config.databaseConnectionsMax]).toEqual([6, 3, 10]);
  const other = await shared.for('globex').connect();
  for (const client of [...uploads, ...reads, other]) client.release();
  for (const client of await Promise.all(waiting)) client.release();
});
