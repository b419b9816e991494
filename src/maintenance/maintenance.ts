import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { jobLimits } from '../jobs/limits.ts';
import { Round } from '../jobs/round.ts';
import { limits } from '../limits.ts';
import { isClockRight } from '../postgres/health/server-state.ts';
import type { Pool } from '../postgres/pool.ts';

/** It must tolerate running in two processes for a short time. */
export interface Chore {
  readonly name: string;
  readonly everyMs: number;
  /** A loop's chores run one after another, so those with long statements have a loop of their own. */
  readonly loop?: string;
  /** The default is the length of a round of jobs. */
  readonly roundMs?: number;
  /** If it returns 'more', it runs again after the others of its loop, possibly in the next leader. */
  run(round?: Round): Promise<unknown>;
}

interface MaintenanceLog {
  elected(): void;
  /** A successful election shows that the database can be used. */
  held(): void;
  done(chore: string): void;
  failed(chore: string, error: unknown): void;
}

export interface Maintenance {
  readonly isLeader: boolean;
  stop(): Promise<void>;
}

/** All loops run in parallel. The lease has its own pool, because otherwise slow chores could prevent its renewal. */
export function startMaintenance(
  leasePool: Pool,
  chores: readonly Chore[],
  log: MaintenanceLog,
): Maintenance {
  const lease = new Lease(leasePool, 'maintenance');
  const stopping = new AbortController();
  const running = Promise.all([
    keepLease(lease, log, stopping.signal),
    ...[...Map.groupBy(chores, ({ loop }) => loop).values()].map((some) =>
      keepWorking(lease, some, log, stopping.signal),
    ),
  ]);
  return {
    get isLeader() {
      return lease.isHeld;
    },
    async stop() {
      stopping.abort();
      await running;
      if (lease.isHeld) await lease.release().catch(() => {});
    },
  };
}

async function keepLease(lease: Lease, log: MaintenanceLog, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const wasHeld = lease.isHeld;
    await lease.renew().then(
      () => log.held(),
      (error: unknown) => log.failed('election', error),
    );
    if (lease.isHeld && !wasHeld) log.elected();
    await pause(limits.leaseRenewMs, stopping);
  }
}

async function keepWorking(
  lease: Lease,
  chores: readonly Chore[],
  log: MaintenanceLog,
  stopping: AbortSignal,
): Promise<void> {
  const dueMs = new Map<Chore, number>();
  while (!stopping.aborted) {
    // A new leader runs everything, because it does not know which chores the previous leader has run.
    if (!lease.isHeld) dueMs.clear();
    for (const chore of chores) {
      if (!lease.isHeld || stopping.aborted || performance.now() < (dueMs.get(chore) ?? 0)) continue;
      const round = new Round(chore.roundMs ?? jobLimits.roundMs, stopping);
      const nextMs = await chore.run(round).then(
        (left) => {
          log.done(chore.name);
          return left === 'more' ? 0 : chore.everyMs;
        },
        (error: unknown) => {
          if (!stopping.aborted) log.failed(chore.name, error);
          return Math.min(chore.everyMs, limits.maintenanceRetryMs);
        },
      );
      dueMs.set(chore, performance.now() + nextMs);
    }
    await pause(limits.maintenanceTickMs, stopping);
  }
}

async function pause(ms: number, stopping: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stopping }).catch(() => {});
}

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
