import { createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Case, interleave, ratiosOf } from '../case.ts';
import { uploadFile } from '../intake-command.ts';
import { fieldsOf, makeRecords, type Recipe, referencesDefault } from '../records.ts';
import { publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const goal = { atLeast: 0.8 };
const table = publicTable('transactions');

/** Runs the whole command on a CSV file, compared with requests that were built before the clock started. */
export const uploadCsv: Case = {
  name: 'upload-csv',
  what: 'new transactions from a CSV with the intake command compared with prepared requests',
  async run(bench) {
    const { cluster, tenant, service, connections, rows } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
    const recipe: Recipe = { type: 'transactions', count: rows, seed: 7 };
    const file = join(cluster.folder, 'transactions.csv');
    await pipeline(csvOf(recipe), createWriteStream(file));
    const requests = uploadRequests(bench, recipe);
    let peakMegabytes = 0;
    const { service: bare, command: intake } = await interleave(bench, {
      service: async () => {
        await cluster.clean(table);
        return uploadRate({ port: service.port, connections }, requests, { created: rows });
      },
      command: async () => {
        await cluster.clean(table);
        const { seconds, megabytes } = await uploadFile(bench, 0, file);
        peakMegabytes = Math.max(peakMegabytes, megabytes);
        return rows / seconds;
      },
    });
    rmSync(file);
    const notes = [`the command took ${Math.round(peakMegabytes)} MB at most`];
    const ratios = ratiosOf(intake, bare);
    const yardstick = 'the same records as requests made beforehand';
    return [{ name: 'upload-csv', yardstick, unit: 'rows/s', bare, intake, ratios, goal, notes }];
  },
};

function* csvOf(recipe: Recipe): Generator<string> {
  yield `${fieldsOf(recipe.type).join(',')}\n`;
  for (const values of makeRecords(recipe)) yield `${values.join(',')}\n`;
}
