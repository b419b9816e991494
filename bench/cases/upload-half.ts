import { type Bench, bestOf, type Case, type Comparison, interleave, ratiosOf } from '../case.ts';
import { copyRate, openSessions, secondsOf, writeCopyFiles } from '../copy.ts';
import { fieldsOf, type Recipe, referencesDefault } from '../records.ts';
import { bareTable, columnsOf, publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const goal = { atLeast: 0.6 };
const floor = 0.25;
/** Merging may cost 1.15 times as much as replacing. */
const mergingGoal = { atLeast: 1 / 1.15 };
const mergingFloor = 0.6;
const bare = bareTable('transactions');
const table = publicTable('transactions');
const columns = columnsOf('transactions');
const amountAt = fieldsOf('transactions').indexOf('amount');

/** Sends stored records again, half of them with a different amount. */
export const uploadHalf: Case = {
  name: 'upload-half',
  what: 'half of the records changed compared with insert … on conflict from a staging table',
  quick: true,
  async run(bench) {
    const { cluster, tenant, service, connections, rows } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
    bench.progress('preparing tables and bodies');
    const original: Recipe = { type: 'transactions', count: rows, seed: 7 };
    const changed: Recipe = { ...original, alter: changeEveryOther };
    await fillStaging(bench, original, changed);
    const serviceRate = (mode: string) => {
      const requests = uploadRequests(bench, changed, mode);
      return async () => {
        await restore(bench, table);
        const half = Math.ceil(rows / 2);
        const expected = { updated: half, unchanged: rows - half };
        return uploadRate({ port: service.port, connections }, requests, expected);
      };
    };
    const sessions = await openSessions(bench, 2);
    const bareRate = (statements: string[]) => async () => {
      await restore(bench, bare);
      return rows / (await secondsOf(sessions, statements));
    };
    const selectively = bareRate([
      upsertFrom('bare.changed_1', whereDifferent),
      upsertFrom('bare.changed_2', whereDifferent),
    ]);
    const measured = await interleave<string>(bench, {
      '1 connection': bareRate([upsertFrom('bare.changed')]),
      '2 connections': bareRate([upsertFrom('bare.changed_1'), upsertFrom('bare.changed_2')]),
      // This variant has no floor, so the quick run does not need it.
      ...(!bench.quick && { selectively }),
      service: serviceRate('replace'),
      merging: serviceRate('merge'),
    });
    const { service: intake = [], merging = [], selectively: selective, ...plain } = measured;
    const best = bestOf(plain);
    const common = { unit: 'rows/s', intake };
    const comparisons: Comparison[] = [
      {
        ...common,
        name: 'upload-half',
        yardstick: `insert … on conflict, ${best.name}`,
        bare: best.rates,
        ratios: ratiosOf(intake, best.rates),
        goal,
        floor,
      },
      {
        unit: 'rows/s',
        name: 'upload-half, merging',
        yardstick: 'the same records, replaced',
        bare: intake,
        intake: merging,
        ratios: ratiosOf(merging, intake),
        goal: mergingGoal,
        floor: mergingFloor,
      },
    ];
    if (selective)
      comparisons.push({
        ...common,
        name: 'upload-half, selective',
        yardstick: 'the same with a where that skips equal rows, 2 connections',
        bare: selective,
        ratios: ratiosOf(intake, selective),
      });
    return comparisons;
  },
};

function changeEveryOther(number: number, values: (string | number | boolean)[]): void {
  if (number % 2 === 0) values[amountAt] = Number(values[amountAt]) + 1;
}

/**
 * Returns an upsert that sets all columns. The service has to set all columns too, because the differences are not known in
 * advance.
 */
function upsertFrom(staging: string, where = ''): string {
  const set = fieldsOf('transactions')
    .slice(1)
    .map((field) => `${field} = excluded.${field}`);
  return (
    `insert into ${bare} as t (${columns}) select ${columns} from ${staging} ` +
    `on conflict (organisation_id, transaction_id) do update set ${set.join(', ')} ${where};`
  );
}

const whereDifferent = (() => {
  const fields = fieldsOf('transactions').slice(1);
  const row = (from: string) => `(${fields.map((field) => `${from}.${field}`).join(', ')})`;
  return `where ${row('t')} is distinct from ${row('excluded')}`;
})();

/**
 * Fills the staging tables. `original` is the tables' content before each measurement, and `changed` is the data that
 * each measurement writes. `changed` is also split into two halves.
 */
async function fillStaging(bench: Bench, original: Recipe, changed: Recipe): Promise<void> {
  const [session] = await openSessions(bench, 1);
  if (!session) throw new Error('psql did not start');
  const fill = async (staging: string, files: readonly string[], recipe: Recipe) => {
    await bench.cluster.query(`truncate ${bare}`);
    for (const file of files) await copyRate([session], [file], recipe);
    await bench.cluster.query(`drop table if exists ${staging}`);
    await bench.cluster.query(`create unlogged table ${staging} as select ${columns} from ${bare}`);
    await bench.cluster.query(`vacuum (analyze) ${staging}`);
  };
  for (const recipe of [original, changed]) {
    const files = writeCopyFiles(bench, recipe, [1, 2]);
    await fill(recipe === original ? 'bare.original' : 'bare.changed', files.of(1), recipe);
    if (recipe === changed) {
      for (const [at, half] of files.of(2).entries()) await fill(`bare.changed_${at + 1}`, [half], recipe);
    }
    files.remove();
  }
  await session.close();
}

async function restore({ cluster }: Bench, into: string): Promise<void> {
  await cluster.query(`truncate ${bare}, ${table}`);
  await cluster.query(`insert into ${into} (${columns}) select ${columns} from bare.original`);
  await cluster.settle(into);
}
