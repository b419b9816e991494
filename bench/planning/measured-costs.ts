import type { Costs } from './costs.ts';

/**
 * The costs behind the sizes in docs/operating/scaling.md. `npm run bench -- costs` measures the first part again and prints it in this form. When
 * the service has become slower or faster, paste the output here and run `npm run generate`.
 *
 * The CPU figures are provisional. They are medians of six runs on a busy machine. Three of the runs were made before
 * the `costs` case had its current form, and all six were made before the change log existed. The figures at 200 and
 * 1,000 interactions per second are interpolated. Figures varied by a third between runs, and up to threefold at low
 * rates. The table sizes of records and interactions are the same everywhere. With one organisation, the WAL and the
 * change log are smaller if the machine is so busy that more interactions share a commit.
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
   * The sum of 465 MB with 64 concurrent uploads of 5,000 records (bench case `memory`) and 190 MB for an export
   * (`test/acceptance/export-memory.test.ts`), rounded up.
   */
  processBytes: 700e6,

  /** Through a pooler, statements are replanned each time. docs/operating/setup.md gives the range. */
  throughPooler: 1.2,

  /**
   * Measured with Citus 14 on PostgreSQL 17, with statements sent to the worker that owns the organisation, and
   * compared with PostgreSQL without Citus. An uploaded record took 17 microseconds instead of 10 to 12, and 2 to 3
   * times as long through the coordinator. An interaction took 5.3 times as long with eight organisations and 3.4 times
   * as long with one, because Citus replans every statement.
   */
  onCitus: { record: 1.5, interaction: 5.3, interactionOfOne: 3.4 },
};
