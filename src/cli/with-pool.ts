import { readDatabaseConfig } from '../config.ts';
import { createPool, type Pool } from '../store/pool.ts';

/** Runs a command's work on a pool of connections that is closed when the work ends. */
export async function withPool<T>(work: (pool: Pool) => Promise<T>): Promise<T> {
  const pool = createPool(readDatabaseConfig(), () => {});
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}
