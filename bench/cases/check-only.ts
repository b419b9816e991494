import { makeBuilders } from '../../src/uploads/read/batch-builder.ts';
import { checkUpload } from '../../src/uploads/read/check-upload.ts';
import { type Case, interleave, ratiosOf } from '../case.ts';
import { bodiesOf, recordsPerBody } from '../records.ts';

const builders = makeBuilders();

const goal = { atLeast: 0.5 };
const floor = 0.25;

/** Measures how fast one core can do the work on a body that the service does before it needs the database. */
export const checkOnly: Case = {
  name: 'check-only',
  what: 'records read, checked and encoded on one core, no database, against JSON.parse of the same bytes',
  quick: true,
  async run(bench) {
    const bodies = bodiesOf({ type: 'transactions', count: bench.rows, seed: 7 });
    const rate = (work: (body: Buffer) => number) => async () => {
      // Do the work twice, because the first pass warms up the compiler and gives earlier garbage time to be collected.
      for (const body of bodies) work(body);
      const start = performance.now();
      let records = 0;
      for (const body of bodies) records += work(body);
      return (records * 1_000) / (performance.now() - start);
    };
    const { 'JSON.parse': bare, checked: intake } = await interleave(bench, {
      'JSON.parse': rate((body) => (JSON.parse(body.toString()) as Body).records.length),
      checked: rate(checkAll),
    });
    return [
      {
        name: 'check-only',
        yardstick: 'JSON.parse of the same bytes',
        unit: 'records/s',
        bare,
        intake,
        ratios: ratiosOf(intake, bare),
        goal,
        floor,
      },
    ];
  },
};

interface Body {
  readonly records: readonly unknown[];
}

/** Parses, checks and encodes the body for PostgreSQL. */
function checkAll(body: Buffer): number {
  const batches = checkUpload(builders, 'transactions', body, recordsPerBody);
  if (batches.some(({ failed }) => failed.length > 0)) throw new Error('a record of the bench failed');
  return batches.reduce((sum, { rows }) => sum + rows.count, 0);
}
