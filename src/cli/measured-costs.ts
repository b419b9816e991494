/**
 * What `plan` reckons with. `npm run bench -- costs` measures the figures again and prints them as they should stand here;
 * take them over when the service has become dearer or cheaper. That case and `plan` fail where what is reckoned and what
 * is measured differ by more than a fifth.
 *
 * CPU is in microseconds of the processes' own time (`/proc`), not of the clock. These are provisional: medians over six passes
 * on a busy machine, three of them before the case `costs` had its present form, and between passes a figure varied by a
 * third and up to three times at low rates. For uploads of 1,000 two passes are left out, in which starting threads was
 * counted too. A record is a transaction with all its 15 fields, new, in the uploads of one organisation. An interaction has
 * all its fields, and its item and student were seen a moment ago.
 */
export const measuredCosts = {
  measuredOn: 'two busy virtual cores of an Intel Xeon, PostgreSQL 15, Node 24, November 2026',

  /**
   * An upload costs so much by itself, and so much for each record. Two figures are enough: they give what was measured
   * with 10, 100, 1,000 and 5,000 records in a request within a tenth. PostgreSQL's is for each batch of 1,000.
   */
  upload: { service: 1_300, postgres: 1_080 },
  record: { service: 9.5, postgres: 11.5 },

  /**
   * An interaction, by how many a second one process takes. Those that wait together share a commit, and those of one
   * organisation a statement, so both grow cheaper with the rate: from 2,000 a second on, `many` organisations pay for
   * their statements, and `one` does not.
   */
  interactions: [
    { perSecond: 50, one: { service: 1_630, postgres: 546 }, many: { service: 1_550, postgres: 633 } },
    { perSecond: 500, one: { service: 468, postgres: 185 }, many: { service: 492, postgres: 224 } },
    { perSecond: 2_000, one: { service: 174, postgres: 42 }, many: { service: 245, postgres: 82 } },
    { perSecond: 5_000, one: { service: 173, postgres: 38 }, many: { service: 220, postgres: 75 } },
  ],

  /** Of PostgreSQL, for each interaction: the indexes of its day, built when the day is over. */
  indexing: 7,

  /**
   * Bytes on disk, of an interaction as it is written, and of the indexes that it gets when its day is over. A receipt is
   * that of a batch.
   */
  stored: {
    record: { table: 248, key: 64 },
    interaction: { written: 256, indexes: 276 },
    receipt: 1_070,
  },
  /** Bytes of write-ahead log, without full-page images. */
  wal: { record: 439, batch: 1_450, interaction: 328 },

  /**
   * A process at its largest: 465 MB with 64 uploads of 5,000 records at once (bench case `memory`), and 190 MB more for
   * an export (`test/acceptance/export-memory.test.ts`).
   */
  processBytes: 700e6,

  /** CPU of PostgreSQL beside the same without a pooler: statements are planned each time. docs/operating.md has the runs. */
  throughPooler: 1.2,

  /**
   * CPU of PostgreSQL on Citus beside plain PostgreSQL, where a statement is sent to the worker that owns the
   * organisation. Uploads: 17 against 10 to 12 microseconds a record. Interactions, by statements a second, Citus 14 on
   * PostgreSQL 17: 7,600 against 3,400 to 3,800 with one row, 4,300 against 1,830 with ten. Through the coordinator it is
   * 2 to 3 times for uploads and 2.6 to 4.6 times for interactions.
   */
  onCitus: { record: 1.5, interaction: 2.2 },
} as const;
