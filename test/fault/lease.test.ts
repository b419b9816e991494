// @module-tag full

import pg from 'pg';
import { expect, it } from 'vitest';
import { startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { countWaiting, queryDatabase } from '../support/query-database.ts';

it('the lease is renewed while all chores wait for locks, and PostgreSQL is not reported as unavailable', async () => {
  const databaseUrl = await createTestDatabase();
  const blocker = new pg.Client({ connectionString: databaseUrl });
  await blocker.connect();
  // The timeout is so long that no chore ends during the test.
  const server = await startBuiltServer({ DATABASE_URL: databaseUrl, DATABASE_TIMEOUT_MS: '170000' });
  try {
    // Locking each of these tables blocks one chore: numbering changes, counting for the report, and rolling up counts.
    const tables = ['changes', 'change_counters', 'record_count_changes'];
    await blocker.query(`begin; lock table ${tables.join(', ')} in access exclusive mode`);
    await expect.poll(() => countWaiting(databaseUrl)).toBe(tables.length);
    const endMs = async () => {
      const [lease] = await queryDatabase<{ ms: number }>(
        databaseUrl,
        'select extract(epoch from ends_at)::float8 * 1000 as ms from leases',
      );
      return lease?.ms;
    };
    const before = await endMs();
    // The lease is renewed every five seconds.
    await expect.poll(endMs).toBeGreaterThan(Number(before) + 12_000);
    expect(await countWaiting(databaseUrl)).toBe(tables.length);
    expect(server.log.join('\n')).not.toContain('cannot be used');
  } finally {
    await blocker.end();
    await server.stop();
  }
});
