import type { Costs } from './costs.ts';

/**
 * The costs from which `plan` calculates unless it is given others. `npm run bench -- costs` measures the first part again
 * and prints it as it stands here; paste it when the service has become slower or faster, and run `npm run generate`.
 *
 * The CPU is provisional: medians over six passes on a busy machine, three of them before the case `costs` had its
 * present form, and all of them before there was a change log; at 200 and 1,000 interactions a second it is interpolated.
 * Between passes a figure varied by a third, at low rates up to threefold. The bytes of records and of interactions in
 * their table are the same everywhere; those of log and change log for one organisation are less where a busy machine lets
 * more interactions share a commit.
 */
export const measuredCosts: Costs = {
  measuredOn: 'two busy virtual cores of an Intel Xeon, PostgreSQL 15, Node 24, November 2026',
  upload: { service: 1_300, postgres: 1_080, wal: 2_260, changes: 303 },
  record: { service: 9.5, postgres: 11.5, wal: 454, changes: 17.4 },
  interactions: [
    {
      perSecond: 50,
      one: { service: 1_630, postgres: 546, wal: 1_310, changes: 314 },
      many: { service: 1_550, postgres: 633, wal: 1_940, changes: 355 },
    },
    {
      perSecond: 200,
      one: { service: 769, postgres: 285, wal: 1_240, changes: 300 },
      many: { service: 777, postgres: 339, wal: 1_950, changes: 348 },
    },
    {
      perSecond: 500,
      one: { service: 468, postgres: 185, wal: 1_180, changes: 229 },
      many: { service: 492, postgres: 224, wal: 1_630, changes: 289 },
    },
    {
      perSecond: 1_000,
      one: { service: 285, postgres: 88.1, wal: 815, changes: 137 },
      many: { service: 347, postgres: 136, wal: 1_540, changes: 280 },
    },
    {
      perSecond: 2_000,
      one: { service: 174, postgres: 42, wal: 545, changes: 68.3 },
      many: { service: 245, postgres: 82, wal: 1_460, changes: 266 },
    },
    {
      perSecond: 5_000,
      one: { service: 173, postgres: 38, wal: 408, changes: 32.8 },
      many: { service: 220, postgres: 75, wal: 1_350, changes: 267 },
    },
  ],
  indexing: { postgres: 7, wal: 253 },
  stored: {
    record: { table: 248, key: 64 },
    interaction: { written: 254, indexes: 277 },
    receipt: 1_070,
  },

  /**
   * 465 MB with 64 uploads of 5,000 records at once (bench case `memory`), and 190 MB more for an export
   * (`test/acceptance/export-memory.test.ts`).
   */
  processBytes: 700e6,

  /** Statements are planned each time. docs/operating.md has the runs. */
  throughPooler: 1.2,

  /**
   * With statements sent to the worker that owns the organisation, Citus 14 on PostgreSQL 17, against PostgreSQL without
   * Citus. Uploads: 17 against 10 to 12 microseconds a record; through the coordinator 2 to 3 times. Interactions: of eight
   * organisations 5.3 times, of one 3.4 times, because Citus plans every statement anew.
   */
  onCitus: { record: 1.5, interaction: 5.3, interactionOfOne: 3.4 },
};
