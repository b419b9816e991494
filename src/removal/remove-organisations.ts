import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../config.ts';
import { runningTransactions } from '../postgres/cluster/running-transactions.ts';
import type { Pool } from '../postgres/pool.ts';
import { queryRow, retryConflicts } from '../postgres/transactions.ts';
import { removalLimits } from './limits.ts';
import { nextPart, type Part, type Progress, partsToRemove } from './parts-to-remove.ts';

/**
 * Removes organisations in turn, one step each, and pauses after every step so that it does not slow down other work. A
 * step is a single statement that removes rows and saves the progress. If a process is killed, it leaves no partial work
 * behind, and a second leader does not repeat any work.
 */
export class OrganisationRemover {
  readonly #pool: Pool;
  readonly #daysKept: number;
  #parts: readonly Part[] = [];
  /**
   * The transactions to wait for, by organisation and stage. A set becomes empty once all of its transactions have ended.
   */
  readonly #fences = new Map<string, ReadonlySet<string>>();

  constructor(pool: Pool, config: Pick<Config, 'deletedOrganisationsKeptDays'>) {
    this.#pool = pool;
    this.#daysKept = config.deletedOrganisationsKeptDays;
  }

  async run(stopping?: AbortSignal): Promise<void> {
    const { rows } = await this.#pool.query<{ organisation_id: string }>(
      `select organisation_id from organisations
       where deleted_at is not null and (removal_started_at is not null or deleted_at < now() - make_interval(days => $1))
       order by deleted_at`,
      [this.#daysKept],
    );
    if (rows.length > 0) this.#parts = await partsToRemove(this.#pool);
    const deadlineMs = performance.now() + removalLimits.runMs;
    let failure: unknown;
    for (const one of rows) {
      if (stopping?.aborted || performance.now() > deadlineMs) break;
      const startedMs = performance.now();
      const done = await this.#step(one.organisation_id).catch((error: unknown) => {
        // Continue with the other organisations.
        failure ??= error;
        return 'ended' as const;
      });
      // The loop also visits rows that are pushed while it runs.
      if (done !== 'ended') rows.push(one);
      const tookMs = performance.now() - startedMs;
      const pauseMs = done === 'removed' ? removalLimits.pauseFactor * tookMs : tookMs;
      await sleep(pauseMs, undefined, { ...(stopping && { signal: stopping }) }).catch(() => {});
    }
    if (failure !== undefined) throw failure;
  }

  /**
   * Does the next step of a removal. Returns 'ended' if the organisation is gone, was restored, or still has files in the
   * lake.
   */
  async #step(organisationId: string): Promise<'removed' | 'nothing' | 'ended'> {
    const progress = await this.#progressOf(organisationId);
    if (!progress) return this.#begin(organisationId);
    const next = nextPart(this.#parts, progress);
    if (!next) return this.#finish(organisationId);
    // The organisation's files are removed first. `intake-server lake` deletes this row when no files are left.
    if (next.table === 'lake_progress' && (await this.#hasLakeFiles(organisationId))) return 'ended';
    // Transactions that started before this stage may still write to the stage's tables.
    if (!(await this.#isPast(`${organisationId} ${next.isDerived}`))) return 'nothing';
    const { removed } = await retryConflicts(() =>
      queryRow<{ removed: string | null }>(this.#pool, {
        text: 'select remove_rows($1, $2, $3, $4) as removed',
        values: [organisationId, progress.step, next.part, removalLimits.rowsPerStep],
      }),
    );
    // Another process has done this step, or the partition was dropped.
    if (removed === null) this.#parts = await partsToRemove(this.#pool);
    return Number(removed) > 0 ? 'removed' : 'nothing';
  }

  async #progressOf(organisationId: string): Promise<Progress | undefined> {
    const { rows } = await this.#pool.query<Progress>(
      `select step, table_name as table, part, after is not null as has_more,
         array(select jsonb_object_keys(rows)) as tables
       from removals where organisation_id = $1`,
      [organisationId],
    );
    return rows[0];
  }

  async #hasLakeFiles(organisationId: string): Promise<boolean> {
    const { rows } = await this.#pool.query('select from lake_progress where organisation_id = $1 limit 1', [
      organisationId,
    ]);
    return rows.length > 0;
  }

  async #begin(organisationId: string): Promise<'nothing' | 'ended'> {
    const { is_begun } = await retryConflicts(() =>
      queryRow<{ is_begun: boolean }>(this.#pool, {
        text: 'select begin_removal($1, $2) as is_begun',
        values: [organisationId, this.#daysKept],
      }),
    );
    return is_begun ? 'nothing' : 'ended';
  }

  async #finish(organisationId: string): Promise<'removed' | 'ended'> {
    const { is_gone } = await retryConflicts(() =>
      queryRow<{ is_gone: boolean }>(this.#pool, {
        text: 'select finish_removal($1) as is_gone',
        values: [organisationId],
      }),
    );
    if (is_gone) for (const stage of [false, true]) this.#fences.delete(`${organisationId} ${stage}`);
    return is_gone ? 'ended' : 'removed';
  }

  /**
   * Returns whether the transactions that were running at the first call have ended. A new leader starts over, which is
   * just as safe.
   */
  async #isPast(fence: string): Promise<boolean> {
    const awaited = this.#fences.get(fence);
    if (awaited?.size === 0) return true;
    const running = new Set(await runningTransactions(this.#pool));
    const left = awaited?.intersection(running) ?? running;
    this.#fences.set(fence, left);
    return left.size === 0;
  }
}
