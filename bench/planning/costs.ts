/**
 * The cost of a unit of work. CPU costs are microseconds of CPU time (from `/proc`), not wall-clock time. The other
 * costs are bytes.
 */
export interface Cost {
  readonly service: number;
  readonly postgres: number;
  /** WAL bytes without full-page images, but including the numbering of changes. */
  readonly wal: number;
  /**
   * Bytes of change log rows. Each batch of records adds one row, and the interactions in a commit add one per
   * organisation.
   */
  readonly changes: number;
}

export type CostPart = keyof Cost;

/** The costs from which `planCapacity` estimates the hardware. */
export interface Costs {
  /** The machine and the software versions. */
  readonly measuredOn: string;
  /**
   * The fixed costs. The service has a fixed cost per upload, and everything else has one per batch of up to 1,000
   * records.
   */
  readonly upload: Cost;
  /** The cost of a new transaction record with all 15 fields, in addition to the cost of its upload. */
  readonly record: Cost;
  /**
   * The cost of an interaction with all its fields, whose item and student are cached, at several rates per second and
   * process. Queued interactions share a commit, and interactions of one organisation also share a statement and a
   * change log row. Interactions therefore become cheaper at higher rates, and more so for `one` organisation than for
   * `many`.
   */
  readonly interactions: readonly InteractionCost[];
  /** The cost per interaction of building the indexes when its day is over. */
  readonly indexing: { readonly postgres: number; readonly wal: number };
  /** Bytes on disk. Receipts are counted per batch of records. */
  readonly stored: {
    readonly record: { readonly table: number; readonly key: number };
    readonly interaction: { readonly written: number; readonly indexes: number };
    readonly receipt: number;
  };
  /** A process's peak memory usage. */
  readonly processBytes: number;
  /** PostgreSQL's CPU use with a pooler, relative to its use without one. */
  readonly throughPooler: number;
  /** PostgreSQL's CPU use on Citus, relative to plain PostgreSQL. */
  readonly onCitus: {
    readonly record: number;
    readonly interaction: number;
    /** Applies if all interactions belong to one organisation. */
    readonly interactionOfOne: number;
  };
}

export interface InteractionCost {
  readonly perSecond: number;
  readonly one: Cost;
  readonly many: Cost;
}
