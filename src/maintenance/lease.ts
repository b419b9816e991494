import { randomUUID } from 'node:crypto';
import { limits } from '../limits.ts';
import { isClockRight } from '../postgres/health/server-state.ts';
import type { Pool } from '../postgres/pool.ts';

/** Elects one process. If it is killed, its lease expires. */
export class Lease {
  readonly #pool: Pool;
  readonly #name: string;
  readonly #holder = randomUUID();
  /** On this process's monotonic clock, from before the query, so it is never later than in PostgreSQL. */
  #heldUntilMs = 0;

  constructor(pool: Pool, name: string) {
    this.#pool = pool;
    this.#name = name;
  }

  get isHeld(): boolean {
    return performance.now() < this.#heldUntilMs;
  }

  /** A process with a wrong clock must not hold the lease, because what it writes would carry wrong times. */
  async renew(): Promise<void> {
    const askedMs = performance.now();
    const { rowCount } = await this.#pool.query(
      `insert into leases as l (name, holder, ends_at) 
       select $1, $2, now() + make_interval(secs => $3) where ${isClockRight('$4')}
       on conflict (name) do update set holder = excluded.holder, ends_at = excluded.ends_at
       where l.holder = excluded.holder or l.ends_at < now()`,
      [this.#name, this.#holder, limits.leaseMs / 1_000, new Date()],
    );
    this.#heldUntilMs = rowCount === 1 ? askedMs + limits.leaseMs : 0;
  }

  /** Lets another process take over without waiting for the lease to expire. */
  async release(): Promise<void> {
    this.#heldUntilMs = 0;
    await this.#pool.query('update leases set ends_at = now() where name = $1 and holder = $2', [
      this.#name,
      this.#holder,
    ]);
  }
}
