// jobs/: runs long work in steps, a transaction each, for all organisations in turn.

import type { Done } from '../bookkeeping/store.ts';
import type { Client, Pool } from '../postgres/pool.ts';

/** A job that has ended is deleted. */
export type Next<S extends string> = { readonly step: S; readonly position?: unknown } | 'ended';

export interface Place {
  readonly organisationId: string;
  /** What the previous step left for this one, as JSON, or null. */
  readonly position: unknown;
  /**
   * Throws if another process has taken this step. A `call` that must not happen twice, or after a later step, starts
   * its transaction with it. `work` has done so already.
   */
  lock(client: Client): Promise<void>;
}

/**
 * One step of a job.
 * - `work` reads, writes and is saved in one transaction that holds the job's lock. A retry reads again.
 * - `wait` looks outside a transaction, and is then saved. It returns undefined if it has to look again later.
 * - `call` may take several transactions. It may be interrupted and repeated.
 */
export type Step<S extends string> =
  | {
      readonly work: (
        client: Client,
        place: Place,
      ) => Promise<{ readonly next: Next<S>; readonly done?: readonly Done[] }>;
    }
  | { readonly wait: (pool: Pool, place: Place) => Promise<Next<S> | undefined> }
  | { readonly call: (pool: Pool, place: Place, stopping?: AbortSignal) => Promise<Next<S>> };

/** An organisation has at most one job of each kind. */
export interface JobKind<S extends string = string> {
  readonly name: string;
  readonly first: NoInfer<S>;
  readonly steps: Readonly<Record<S, Step<S>>>;
  /** Organisations with such work. They get a job unless they have one. */
  readonly find: (pool: Pool) => Promise<readonly string[]>;
  /** A job pauses for this many times the duration of each step, so that it does not slow down other work. */
  readonly pauseFactor?: number;
}

/** Lets the compiler check that every step leads to a step that exists. */
export function jobKind<S extends string>(kind: JobKind<S>): JobKind {
  return kind as unknown as JobKind;
}
