/**
 * The costs from which `plan` calculates. `npm run bench -- costs` measures them again and prints them in this form;
 * copy them here when the service has become slower or faster. That case and `npm run bench -- plan` fail if calculated
 * and measured costs differ by more than a fifth.
 *
 * CPU is in microseconds of CPU time (`/proc`), not wall-clock time. The figures are provisional: medians over six
 * passes on a busy machine, three of them before the case `costs` had its present form. Between passes a figure varied
 * by a third, at low rates up to threefold. For uploads of 1,000 two passes are left out in which starting threads was
 * counted too. A record is a new transaction with all its 15 fields, in uploads of one organisation. An interaction has
 * all its fields, and its item and student are cached. The change log and the report are in the bytes of
 * write-ahead log, and not yet in the CPU.
 */
export const measuredCosts = {
  measuredOn: 'two busy virtual cores of an Intel Xeon, PostgreSQL 15, Node 24, November 2026',

  /**
   * A fixed cost per upload and a cost per record. These two figures reproduce what was measured with 10, 100, 1,000
   * and 5,000 records in a request within a tenth. PostgreSQL's fixed cost is per batch of 1,000.
   */
  upload: { service: 1_300, postgres: 1_080 },
  record: { service: 9.5, postgres: 11.5 },

  /**
   * An interaction, by how many a second one process takes. Interactions that wait together share a commit, and those
   * of one organisation a statement, so both become cheaper with the rate: from 2,000 a second on, `many` organisations
   * pay for their statements, and `one` does not.
   */
  interactions: [
    { perSecond: 50, one: { service: 1_630, postgres: 546 }, many: { service: 1_550, postgres: 633 } },
    { perSecond: 500, one: { service: 468, postgres: 185 }, many: { service: 492, postgres: 224 } },
    { perSecond: 2_000, one: { service: 174, postgres: 42 }, many: { service: 245, postgres: 82 } },
    { perSecond: 5_000, one: { service: 173, postgres: 38 }, many: { service: 220, postgres: 75 } },
  ],

  /** PostgreSQL's CPU per interaction for building the indexes of its day when the day is over. */
  indexing: 7,

  /** Bytes on disk. An interaction gets its indexes when its day is over. A receipt is counted per batch. */
  stored: {
    record: { table: 248, key: 64 },
    interaction: { written: 254, indexes: 277 },
    receipt: 1_070,
  },
  /** Bytes of write-ahead log, without full-page images. */
  wal: { record: 480, batch: 1_970, interaction: 570 },

  /**
   * A process at its largest: 465 MB with 64 uploads of 5,000 records at once (bench case `memory`), and 190 MB more
   * for an export (`test/acceptance/export-memory.test.ts`).
   */
  processBytes: 700e6,

  /**
   * PostgreSQL's CPU relative to running without a pooler: statements are planned each time. docs/operating.md has the
   * runs.
   */
  throughPooler: 1.2,

  /**
   * PostgreSQL's CPU on Citus relative to plain PostgreSQL, when statements go to the worker that owns the
   * organisation. Uploads: 17 against 10 to 12 microseconds a record. Interactions, by statements a second, Citus 14 on
   * PostgreSQL 17: 7,600 against 3,400 to 3,800 with one row, 4,300 against 1,830 with ten. Through the coordinator it
   * is 2 to 3 times for uploads and 2.6 to 4.6 times for interactions.
   */
  onCitus: { record: 1.5, interaction: 2.2 },
} as const;
