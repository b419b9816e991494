import { readDatabaseConfig } from '../../config.ts';
import { ServerState } from '../../postgres/health/server-state.ts';
import { createPool, type Pool } from '../../postgres/pool.ts';
import { refuseUnsafeLogin } from './check-database.ts';
import { explaining } from './explain-database.ts';

/** `usesClock` is false for a command that takes no time from this machine and changes nothing that others rely on. */
export async function withPool<T>(
  work: (pool: Pool) => Promise<T>,
  { usesClock = true }: { usesClock?: boolean } = {},
): Promise<T> {
  const config = readDatabaseConfig();
  // Nobody waits behind a command, so it gives a busy server more time than a request can.
  const pool = createPool(config, () => {}, { connectTimeoutMs: config.databaseTimeoutMs });
  try {
    const target = { setting: 'DATABASE_URL', url: config.databaseUrl, role: 'intake_admin' } as const;
    return await explaining(target, async () => {
      if (usesClock) {
        await refuseWrongClock(pool);
        await refuseUnsafeLogin(pool, target);
      }
      return work(pool);
    });
  } finally {
    await pool.end();
  }
}

/** A key that lives for an hour would live for as long as this machine's clock is ahead, or never work. */
export async function refuseWrongClock(pool: Pool): Promise<void> {
  const state = new ServerState(pool);
  await state.look();
  const wrongClock = state.wrongClock();
  if (wrongClock) throw wrongClock;
}
