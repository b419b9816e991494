import { randomUUID } from 'node:crypto';
import { isClockRight } from '../postgres/health/server-state.ts';
import type { Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { lakeLimits } from './limits.ts';

/** Derived from the last bits of the organisation's id, which are random. */
export function slotOf(organisationId: string): number {
  return Number.parseInt(organisationId.slice(-4), 16) % lakeLimits.slots;
}

/**
 * Each process takes no more than its share of the slots. For a short time, two processes may both assume that they
 * hold the same slot. In that case, the second process to commit to a table fails.
 */
export class LakeSlots {
  readonly #pool: Pool;
  readonly #processId = randomUUID();
  /** Local expiry times. They count from before the query was sent, so they are never later than in PostgreSQL. */
  #held = new Map<number, number>();

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  isHeld(organisationId: string): boolean {
    return performance.now() < (this.#held.get(slotOf(organisationId)) ?? 0);
  }

  get count(): number {
    return [...this.#held.values()].filter((untilMs) => performance.now() < untilMs).length;
  }

  /** A process with a wrong clock holds no slots, because it would delete files by their age. */
  async renew(): Promise<void> {
    const askedMs = performance.now();
    const { rows } = await this.#pool.query<{ is_right: boolean }>(
      `select ${isClockRight('$1')} as is_right`,
      [new Date()],
    );
    if (!rows[0]?.is_right) return this.release();
    const seconds = lakeLimits.slotMs / 1_000;
    const slots = await inTransaction(this.#pool, async (client) => {
      await client.query('delete from lake_processes where ends_at < now()');
      await client.query(
        `insert into lake_processes (process_id, ends_at) values ($1, now() + make_interval(secs => $2))
         on conflict (process_id) do update set ends_at = excluded.ends_at`,
        [this.#processId, seconds],
      );
      // Slots that this process already holds come first, so it takes new ones only up to its share.
      const { rows } = await client.query<{ slot: number }>(
        `update lake_slots s set holder = $1, ends_at = now() + make_interval(secs => $2)
         from (
           select slot from lake_slots where holder = $1 or ends_at < now()
           order by (holder = $1 and ends_at >= now()) is true desc, slot
           limit (select ceil(${lakeLimits.slots}::numeric / count(*))::bigint from lake_processes)
           for update skip locked) as mine
         where s.slot = mine.slot returning s.slot`,
        [this.#processId, seconds],
      );
      const taken = rows.map(({ slot }) => slot);
      await client.query(
        `update lake_slots set holder = null, ends_at = '-infinity' where holder = $1 and slot <> all ($2::integer[])`,
        [this.#processId, taken],
      );
      return taken;
    });
    this.#held = new Map(slots.map((slot) => [slot, askedMs + lakeLimits.slotMs]));
  }

  /** Lets other processes take over without waiting for the slots to expire. */
  async release(): Promise<void> {
    this.#held.clear();
    await this.#pool.query(`update lake_slots set holder = null, ends_at = '-infinity' where holder = $1`, [
      this.#processId,
    ]);
    await this.#pool.query('delete from lake_processes where process_id = $1', [this.#processId]);
  }
}
