import { parseBody } from '../../src/ingest/parse-body.ts';
import { resources } from '../../src/registry/resources.ts';
import { compileCheck } from '../../src/registry/validate.ts';
import { type Case, interleave, ratiosOf } from '../case.ts';
import { bodiesOf } from '../records.ts';

const goal = { atLeast: 0.5 };
const floor = 0.25;

/** What the service does to a body before it needs the database, on one core. */
export const checkOnly: Case = {
  name: 'check-only',
  what: 'records parsed and checked on one core, no database, against JSON.parse of the same bytes',
  quick: true,
  async run(bench) {
    const bodies = bodiesOf({ type: 'transactions', count: bench.rows, seed: 7 });
    const check = compileCheck(resources.transactions.fields);
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
      checked: rate((body) => checkAll(body, check)),
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

function checkAll(body: Buffer, check: ReturnType<typeof compileCheck>): number {
  const { records } = parseBody(body) as Body;
  // The rows are kept until the body is done, as they are while they wait to be stored.
  const rows = records.map((record) => check(record, unexpected).row);
  if (rows.includes(undefined)) throw new Error('a record of the bench was refused');
  return rows.length;
}

function unexpected(name: string): void {
  throw new Error(`the bench made an unknown field: ${name}`);
}
