import type { Done } from '../../bookkeeping/store.ts';
import type { People } from '../../people/people.ts';
import type { Client, Pool } from '../../postgres/pool.ts';
import type { ErasureMode } from '../request-erasure.ts';

/** The running erasures of an organisation. */
export interface Sweep extends People {
  readonly modes: ReadonlyMap<string, ErasureMode>;
  /** The ids of the people, each with an erasure that it belongs to. */
  readonly ids: ReadonlyMap<string, string>;
}

/** A row of a person, and the erasure that the person belongs to. */
export interface FoundRow {
  readonly id: string;
  readonly erasure_id: string;
}

/** What a step did in its transaction. */
export interface StepResult {
  readonly done: readonly Done[];
  /** The erasure of each row that was changed or deleted. */
  readonly rows: readonly string[];
  /** Where the next part starts; null after the last. */
  readonly after: string | null;
}

/** Reads, and returns what to do in a transaction. */
export type Step = (
  pool: Pool,
  sweep: Sweep,
  after: string | null,
) => Promise<(client: Client) => Promise<StepResult>>;
