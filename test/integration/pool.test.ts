import { afterAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { createTestDatabase } from '../support/database.ts';

const config = readConfig({ DATABASE_URL: await createTestDatabase() });
const pools: OwnPool[] = [];
afterAll(() => Promise.all(pools.map((pool) => pool.end())));

async function planCacheMode(options?: { plansOnce: boolean }): Promise<string> {
  const pool = createPool(config, () => {}, options);
  pools.push(pool);
  const { rows } = await pool.query<{ plan_cache_mode: string }>('show plan_cache_mode');
  return rows[0]?.plan_cache_mode ?? '';
}

it('only a pool that asks for it makes plans once', async () => {
  expect(await planCacheMode()).toBe('auto');
  expect(await planCacheMode({ plansOnce: true })).toBe('force_generic_plan');
});
