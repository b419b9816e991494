import type { Done } from '../../bookkeeping/store.ts';
import type { People } from '../../people/people.ts';
import type { Client, Pool } from '../../postgres/pool.ts';
import type { ErasureMode } from '../request-erasure.ts';

/** An organisation's running erasures. */
export interface Sweep extends People {
  readonly modes: ReadonlyMap<string, ErasureMode>;
  /** The people's ids, each mapped to one erasure it belongs to. */
  readonly ids: ReadonlyMap<string, string>;
}

/** A person's row, and the person's erasure. */
export interface FoundRow {
  readonly id: string;
  readonly erasure_id: string;
}

/** The result of a step's transaction. */
export interface StepResult {
  readonly done: readonly Done[];
  /** For each changed or deleted row, the erasure it belongs to. */
  readonly rows: readonly string[];
  /** The position from which the next part continues, or null after the last part. */
  readonly after: string | null;
}

/** Reads the next rows, and returns a function that does the work in a transaction. */
export type Step = (
  pool: Pool,
  sweep: Sweep,
  after: string | null,
) => Promise<(client: Client) => Promise<StepResult>>;
