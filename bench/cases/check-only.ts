import { makeBuilders } from '../../src/uploads/read/batch-builder.ts';
import { checkUpload } from '../../src/uploads/read/check-upload.ts';
import { type Case, interleave, ratiosOf } from '../case.ts';
import { bodiesOf, recordsPerBody } from '../records.ts';

const builders = makeBuilders();

const goal = { atLeast: 0.5 };
const floor = 0.25;

/** What the service does to a body before it needs the database, on one core. */
export const checkOnly: Case = {
  name: 'check-only',
  what: 'records read, checked and encoded on one core, no database, against JSON.parse of the same bytes',
  quick: true,
  async run(bench) {
    const bodies = bodiesOf({ type: 'transactions', count: bench.rows, seed: 7 });
    const rate = (work: (body: Buffer) => number) => async () => {
      // Twice: the first time is for the compiler and to leave nobody else's garbage to be collected.
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

/** Read, checked and brought into the form that is sent to PostgreSQL. */
function checkAll(body: Buffer): number {
  const batches = checkUpload(builders, 'transactions', body, recordsPerBody);
  if (batches.some(({ failed }) => failed.length > 0)) throw new Error('a record of the bench failed');
  return batches.reduce((sum, { rows }) => sum + rows.count, 0);
}
