import { setTimeout as sleep } from 'node:timers/promises';
import { clockDifferenceMaxMs } from '../postgres/health/server-state.ts';
import type { Pool } from '../postgres/pool.ts';
import { type Endings, findEndings } from './ending/lake-endings.ts';
import {
  countWaitingRows,
  LakeTaken,
  oldestChanges,
  organisationsWaiting,
  organisationsWithLake,
  type Waiting,
} from './lake-progress.ts';
import type { LakeSlots } from './lake-slots.ts';
import type { LakeWriter, StepDone } from './lake-writer.ts';
import { lakeLimits } from './limits.ts';

/** Each kind of work has its own back-off. */
type LakeWork = 'step' | 'tend' | 'erase' | 'remove';

export interface LakeLog {
  looked(): void;
  stepped(organisationId: string, done: StepDone): void;
  /** Called without `work` if looking for new data or renewing the slots failed. */
  failed(error: unknown, work?: LakeWork | 'look', organisationId?: string): void;
  recovered(work: LakeWork, organisationId: string): void;
}

interface KeeperParts {
  readonly pool: Pool;
  readonly slots: LakeSlots;
  readonly writer: LakeWriter;
  readonly log: LakeLog;
  /** The maximum time before an organisation's new rows are written, even if there are only a few of them. */
  readonly delayMs: number;
}

interface Failing {
  readonly pauseMs: number;
  readonly untilMs: number;
}

/** Writes the lakes of all organisations whose slots this process holds, until it is stopped. */
export class LakeKeeper {
  readonly #parts: KeeperParts;
  readonly #stopping = new AbortController();
  readonly #failing = new Map<string, Failing>();
  readonly #nextCountMs = new Map<string, number>();
  /** For each organisation that is behind, the last change in its lake and the time of the next change. */
  #oldest = new Map<string, { readonly number: number; readonly ms: number }>();
  /** In the order in which they were queued, like the steps. */
  #endings = new Map<string, undefined>();
  #steps = new Map<string, Waiting>();
  readonly #working = new Map<string, Promise<void>>();
  #endingsWorking = 0;
  #running: Promise<unknown> = Promise.resolve();
  #lakes: Endings & { readonly readMs: number; readonly ids: readonly string[] } = {
    readMs: Number.NEGATIVE_INFINITY,
    ids: [],
    erasing: new Map(),
    removing: new Set(),
  };

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  start(): void {
    const renewed = Promise.withResolvers<void>();
    this.#running = Promise.all([
      this.#repeat(lakeLimits.slotRenewMs, () => this.#parts.slots.renew().finally(renewed.resolve)),
      // Wait until the slots are renewed, because without slots the first look would find nothing to do.
      renewed.promise.then(() => this.#repeat(lakeLimits.pollMs, () => this.look())),
    ]);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.settle();
    await this.#parts.slots.release().catch(() => {});
  }

  /** Does not wait for the work that it starts. */
  async look(): Promise<void> {
    const { pool, slots } = this.#parts;
    // The database does not show the work in progress yet.
    const busy = new Set(this.#working.keys());
    if (performance.now() - this.#lakes.readMs > lakeLimits.switchMs) {
      // This throws on a restored database until the people who had been erased are hidden again.
      await pool.query('select keys_can_be_trusted()');
      const readMs = performance.now();
      this.#lakes = { readMs, ids: await organisationsWithLake(pool), ...(await findEndings(pool)) };
    }
    const { ids, erasing, removing } = this.#lakes;
    const waiting = await organisationsWaiting(
      pool,
      ids.filter((id) => slots.isHeld(id) && !removing.has(id)),
    );
    await this.#findOldest(waiting);
    this.#parts.log.looked();
    const isFree = (id: string) => slots.isHeld(id) && !busy.has(id) && !this.#working.has(id);
    const isDue = (id: string) => isFree(id) && !this.#isPaused(removing.has(id) ? 'remove' : 'erase', id);
    const endings = [...removing, ...erasing.keys()].filter(isDue);
    const behind = waiting.filter(({ organisationId: id }) => isFree(id) && !this.#isPaused('step', id));
    this.#endings = queued(this.#endings, new Map(endings.map((id) => [id, undefined])));
    this.#steps = queued(this.#steps, new Map(behind.map((one) => [one.organisationId, one])));
    this.#startNext();
  }

  async settle(): Promise<void> {
    while (this.#working.size > 0) await Promise.all(this.#working.values());
  }

  /** Erasures and removals have a deadline, so they come first. They can take long, so one place is kept for rows. */
  #startNext(): void {
    const firstIn = (queue: ReadonlyMap<string, unknown>) => {
      for (const id of queue.keys()) if (!this.#working.has(id)) return id;
      return undefined;
    };
    while (this.#working.size < lakeLimits.organisationsAtOnce && !this.#stopping.signal.aborted) {
      const ending =
        this.#endingsWorking < lakeLimits.organisationsAtOnce - 1 ? firstIn(this.#endings) : undefined;
      const id = ending ?? firstIn(this.#steps);
      if (id === undefined) return;
      const waiting = this.#steps.get(id);
      this.#steps.delete(id);
      if (ending !== undefined) {
        this.#endings.delete(id);
        this.#endingsWorking++;
      }
      const work = this.#workOn(id, waiting, ending !== undefined).finally(() => {
        this.#working.delete(id);
        if (ending !== undefined) {
          this.#endingsWorking--;
          this.#lakes = { ...this.#lakes, readMs: Number.NEGATIVE_INFINITY };
        }
        this.#startNext();
      });
      this.#working.set(id, work);
    }
  }

  async #workOn(organisationId: string, waiting: Waiting | undefined, isEnding: boolean): Promise<void> {
    const { slots, writer } = this.#parts;
    const { signal } = this.#stopping;
    // The slot may have been lost since the work was queued.
    if (!slots.isHeld(organisationId)) return;
    if (isEnding && this.#lakes.removing.has(organisationId))
      return void (await this.#trying('remove', organisationId, () => writer.remove(organisationId)));
    const erasing = isEnding ? this.#lakes.erasing.get(organisationId) : undefined;
    // Follow the log before files are searched, because the log has the newest versions of the records whose old versions
    // the erasure removes.
    if (waiting) await this.#step(waiting, erasing?.isStarted === false);
    if (erasing) await this.#trying('erase', organisationId, () => writer.erase(organisationId, signal));
  }

  /** Queries only organisations whose oldest change is unknown, because one with few new rows waits for many rounds. */
  async #findOldest(waiting: readonly Waiting[]): Promise<void> {
    const known = new Map<string, { number: number; ms: number }>();
    const unknown: Waiting[] = [];
    for (const one of waiting.filter(({ isCopying }) => !isCopying)) {
      const oldest = this.#oldest.get(one.organisationId);
      if (oldest?.number === one.number) known.set(one.organisationId, oldest);
      else unknown.push(one);
    }
    const ids = unknown.map(({ organisationId }) => organisationId);
    const found = await oldestChanges(this.#parts.pool, ids);
    for (const { organisationId, number } of unknown) {
      const ms = found.get(organisationId);
      if (ms !== undefined) known.set(organisationId, { number, ms });
    }
    this.#oldest = known;
  }

  async #isDue({ organisationId, isCopying, number }: Waiting): Promise<boolean> {
    const { pool, delayMs } = this.#parts;
    const nowMs = performance.now();
    // If the log no longer has the next change, the step will start a copy.
    const oldest = this.#oldest.get(organisationId);
    if (isCopying || !oldest) return true;
    const ageMs = Date.now() - oldest.ms;
    // A process whose clock was wrong may have written a change from the future, whose age is unknown.
    if (ageMs >= delayMs || ageMs < -clockDifferenceMaxMs) return true;
    if (ageMs < lakeLimits.busyDelayMs || nowMs < (this.#nextCountMs.get(organisationId) ?? 0)) return false;
    const rows = await countWaitingRows(pool, organisationId, number, lakeLimits.changesEstimated);
    if (rows >= lakeLimits.rowsOfBusy) return true;
    // If rows keep arriving at this rate.
    const enoughInMs = ageMs * (lakeLimits.rowsOfBusy / Math.max(rows, 1) - 1);
    this.#nextCountMs.set(organisationId, nowMs + Math.max(enoughInMs, lakeLimits.busyDelayMs / 4));
    return false;
  }

  async #step(waiting: Waiting, isForced: boolean): Promise<void> {
    const { writer, log } = this.#parts;
    const { signal } = this.#stopping;
    const { organisationId } = waiting;
    const isDone = await this.#trying('step', organisationId, async () => {
      if (!isForced && !(await this.#isDue(waiting))) return false;
      log.stepped(organisationId, await writer.step(organisationId, signal));
      this.#nextCountMs.delete(organisationId);
      return true;
    });
    if (isDone && !signal.aborted)
      await this.#trying('tend', organisationId, () => writer.tend(organisationId));
  }

  #isPaused(work: LakeWork, organisationId: string): boolean {
    return performance.now() < (this.#failing.get(`${work} ${organisationId}`)?.untilMs ?? 0);
  }

  /** Returns whether the work was done: not during a pause after a failure, and not if `work` returns false. */
  async #trying(kind: LakeWork, organisationId: string, work: () => Promise<unknown>): Promise<boolean> {
    if (this.#isPaused(kind, organisationId)) return false;
    const { log } = this.#parts;
    const key = `${kind} ${organisationId}`;
    try {
      if ((await work()) === false) return false;
      if (this.#failing.delete(key)) log.recovered(kind, organisationId);
      return true;
    } catch (error) {
      const before = this.#failing.get(key)?.pauseMs ?? 0;
      const pauseMs = Math.min(Math.max(lakeLimits.pauseMs, 2 * before), lakeLimits.pauseMsMax);
      this.#failing.set(key, { pauseMs, untilMs: performance.now() + pauseMs });
      // The process that took over the slot continues the work.
      if (!(error instanceof LakeTaken)) log.failed(error, kind, organisationId);
      return false;
    }
  }

  async #repeat(everyMs: number, work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await work().catch((error: unknown) => {
        if (!signal.aborted) this.#parts.log.failed(error);
      });
      await sleep(everyMs, undefined, { signal }).catch(() => {});
    }
  }
}

/** Entries that are already in the queue keep their places in front of the others. */
function queued<T>(queue: ReadonlyMap<string, T>, due: ReadonlyMap<string, T>): Map<string, T> {
  const kept = [...queue.keys()].filter((id) => due.has(id));
  return new Map([...kept.map((id) => [id, due.get(id) as T] as const), ...due]);
}
