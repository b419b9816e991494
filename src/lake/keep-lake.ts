import { setTimeout as sleep } from 'node:timers/promises';
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

export interface LakeLog {
  /** Called after the database was checked for new data. */
  looked(): void;
  /** Called after a step for an organisation succeeded. */
  stepped(organisationId: string, done: StepDone): void;
  /** Called if a step failed and will be retried. If no organisation is given, the check for new data failed. */
  failed(error: unknown, organisationId?: string): void;
}

export interface KeeperParts {
  readonly pool: Pool;
  readonly slots: LakeSlots;
  readonly writer: LakeWriter;
  readonly log: LakeLog;
  /** The maximum time before an organisation's new rows are written, even if there are only a few of them. */
  readonly delayMs: number;
}

/** Back-off state of an organisation whose last step failed. */
interface Failing {
  readonly pauseMs: number;
  readonly untilMs: number;
}

/** Writes the lakes of all organisations whose slots this process holds, until it is stopped. */
export class LakeKeeper {
  readonly #parts: KeeperParts;
  readonly #stopping = new AbortController();
  readonly #failing = new Map<string, Failing>();
  /** For each organisation, the time at which to count its new rows again. */
  readonly #nextCountMs = new Map<string, number>();
  /** For each organisation that is behind, the last change in its lake and the time of the next change. */
  #oldest = new Map<string, { readonly number: number; readonly ms: number }>();
  #running: Promise<unknown> = Promise.resolve();
  #lakes: Endings & { readonly readMs: number; readonly ids: readonly string[] } = {
    readMs: Number.NEGATIVE_INFINITY,
    ids: [],
    erasing: new Set(),
    removing: new Set(),
  };

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  start(): void {
    const renewed = Promise.withResolvers<void>();
    this.#running = Promise.all([
      this.#repeat(lakeLimits.slotRenewMs, () => this.#parts.slots.renew().finally(renewed.resolve)),
      // Wait until the slots are renewed, because without slots the first round would find nothing to do.
      renewed.promise.then(() => this.#repeat(lakeLimits.pollMs, () => this.round())),
    ]);
  }

  /** Stops after the steps in progress have finished. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#parts.slots.release().catch(() => {});
  }

  /** Runs one step for each organisation that is due. */
  async round(): Promise<void> {
    const { pool, slots } = this.#parts;
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
    const work = new Map<string, Waiting | undefined>();
    // Erasures and removals come first because they have a deadline.
    for (const id of [...removing, ...erasing]) if (slots.isHeld(id)) work.set(id, undefined);
    for (const one of waiting) work.set(one.organisationId, one);
    const left = work.entries();
    const workers = Array.from({ length: lakeLimits.organisationsAtOnce }, async () => {
      for (const [id, one] of left) if (!this.#stopping.signal.aborted) await this.#workOn(id, one);
    });
    await Promise.all(workers);
  }

  /** Runs each kind of step that is due for an organisation. */
  async #workOn(organisationId: string, waiting: Waiting | undefined): Promise<void> {
    const { writer } = this.#parts;
    if (performance.now() < (this.#failing.get(organisationId)?.untilMs ?? 0)) return;
    if (this.#lakes.removing.has(organisationId))
      return this.#trying(organisationId, () => writer.remove(organisationId));
    const isErasing = this.#lakes.erasing.has(organisationId);
    // Follow the log before erasing, because the log has the newest versions of the records whose old versions the
    // erasure removes.
    if (waiting && (isErasing || (await this.#isDue(waiting)))) await this.#step(organisationId);
    if (isErasing)
      await this.#trying(organisationId, () => writer.erase(organisationId, this.#stopping.signal));
  }

  /**
   * Finds the oldest change that is missing from each lake. Queries only organisations for which it is unknown, because an
   * organisation with few new rows waits for many rounds.
   */
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
    if (ageMs >= delayMs) return true;
    if (ageMs < lakeLimits.busyDelayMs || nowMs < (this.#nextCountMs.get(organisationId) ?? 0)) return false;
    const rows = await countWaitingRows(pool, organisationId, number, lakeLimits.changesEstimated);
    if (rows >= lakeLimits.rowsOfBusy) return true;
    // This is how long it takes until there are enough rows if they keep arriving at this rate.
    const enoughInMs = ageMs * (lakeLimits.rowsOfBusy / Math.max(rows, 1) - 1);
    this.#nextCountMs.set(organisationId, nowMs + Math.max(enoughInMs, lakeLimits.busyDelayMs / 4));
    return false;
  }

  #step(organisationId: string): Promise<void> {
    const { writer, log } = this.#parts;
    return this.#trying(organisationId, async () => {
      const done = await writer.step(organisationId, this.#stopping.signal);
      this.#failing.delete(organisationId);
      this.#nextCountMs.delete(organisationId);
      log.stepped(organisationId, done);
      await writer.tend(organisationId);
    });
  }

  async #trying(organisationId: string, work: () => Promise<void>): Promise<void> {
    const { log } = this.#parts;
    try {
      await work();
      this.#failing.delete(organisationId);
    } catch (error) {
      const before = this.#failing.get(organisationId)?.pauseMs ?? 0;
      const pauseMs = Math.min(Math.max(lakeLimits.pauseMs, 2 * before), lakeLimits.pauseMsMax);
      this.#failing.set(organisationId, { pauseMs, untilMs: performance.now() + pauseMs });
      // The process that took over the slot continues the work.
      if (!(error instanceof LakeTaken)) log.failed(error, organisationId);
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
