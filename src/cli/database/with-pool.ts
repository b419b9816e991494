import { readDatabaseConfig } from '../../config.ts';
import { createPool, type Pool } from '../../postgres/pool.ts';
import { explaining } from './explain-database.ts';

export async function withPool<T>(work: (pool: Pool) => Promise<T>): Promise<T> {
  const config = readDatabaseConfig();
  const pool = createPool(config, () => {});
  try {
    const target = { setting: 'DATABASE_URL', url: config.databaseUrl, role: 'intake_admin' } as const;
    return await explaining(target, () => work(pool));
  } finally {
    await pool.end();
  }
}
