import { type Case, interleave, ratiosOf } from '../case.ts';
import { fieldsOf, type Recipe, referencesDefault } from '../records.ts';
import { columnsOf, publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const goal = { atLeast: 0.9 };
const table = publicTable('transactions');
const columns = columnsOf('transactions');
const amountAt = fieldsOf('transactions').indexOf('amount');
const every = 100;

/** Uploads an export with new records and a few changed ones, compared with an export of only new records. */
export const uploadMostlyNew: Case = {
  name: 'upload-mostly-new',
  what: '99 % new and 1 % changed transactions compared with all new ones',
  async run(bench) {
    const { cluster, tenant, service, connections, rows } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
    const recipe: Recipe = { type: 'transactions', count: rows, seed: 7 };
    const requests = uploadRequests(bench, recipe);
    const stored = Math.ceil(rows / every);
    await storeFew(bench, recipe);
    const { 'all new': bare, 'mostly new': intake } = await interleave(bench, {
      'all new': async () => {
        await cluster.clean(table);
        return uploadRate({ port: service.port, connections }, requests, { created: rows });
      },
      'mostly new': async () => {
        await cluster.clean(table);
        await cluster.query(`insert into ${table} (${columns}) select ${columns} from bare.few`);
        await cluster.settle(table);
        return uploadRate({ port: service.port, connections }, requests, {
          created: rows - stored,
          updated: stored,
        });
      },
    });
    return [
      {
        name: 'upload-mostly-new',
        yardstick: 'the same uploads of records that are all new',
        unit: 'rows/s',
        bare,
        intake,
        ratios: ratiosOf(intake, bare),
        goal,
      },
    ];
  },
};

/** Stores every hundredth record with a different amount, through the service itself. */
async function storeFew(bench: Parameters<Case['run']>[0], recipe: Recipe): Promise<void> {
  const { cluster, service, connections, rows } = bench;
  const changed: Recipe = {
    ...recipe,
    alter: (_number, values) => {
      values[amountAt] = Number(values[amountAt]) + 1;
    },
  };
  await cluster.clean(table);
  await uploadRate({ port: service.port, connections }, uploadRequests(bench, changed), { created: rows });
  await cluster.query('drop table if exists bare.few');
  await cluster.query(
    `create unlogged table bare.few as select ${columns} from (
       select *, row_number() over (order by transaction_id) as number from ${table}) as numbered
     where (number - 1) % ${every} = 0`,
  );
}
