import { bestOf, type Case, type Comparison, interleave, ratiosOf } from '../case.ts';
import { copyRate, openSessions, writeCopyFiles } from '../copy.ts';
import { type Recipe, referencesDefault } from '../records.ts';
import { bareTable, publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const goal = { atLeast: 0.75 };
const floor = 0.3;
const goalOfSingle = { atLeast: 1 };
const counts = [1, 2, 3];
/** On two cores, this number of connections is optimal or close to optimal. */
const quickCounts = [2];
const tables = [bareTable('transactions'), publicTable('transactions')];

/**
 * Uploads new records, compared with loading them with COPY into a table with a foreign key, which corresponds to the
 * service's reference check.
 */
export const uploadNew: Case = {
  name: 'upload-new',
  what: 'new transactions over HTTP compared with parallel psql \\copy',
  quick: true,
  async run(bench) {
    const { cluster, tenant, service, connections, rows } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
    const recipe: Recipe = { type: 'transactions', count: rows, seed: 7 };
    bench.progress('preparing files and bodies');
    const measuredCounts = bench.quick ? quickCounts : counts;
    const files = writeCopyFiles(bench, recipe, measuredCounts);
    const requests = uploadRequests(bench, recipe);
    const sessions = await openSessions(bench, counts.length);
    const copy = (count: number) => async () => {
      await cluster.clean(...tables);
      return copyRate(sessions, files.of(count), recipe);
    };
    const copies = measuredCounts.map((count) => [connectionsOf(count), copy(count)] as const);
    const upload = async () => {
      await cluster.clean(...tables);
      return uploadRate({ port: service.port, connections }, requests, { created: rows });
    };
    const measured = await interleave<string>(bench, { ...Object.fromEntries(copies), service: upload });
    const { service: intake = [], ...bare } = measured;
    files.remove();
    const best = bestOf(bare);
    const single = bare[connectionsOf(1)];
    const unit = 'rows/s';
    const comparisons: Comparison[] = [
      {
        name: 'upload-new',
        yardstick: `psql \\copy, ${best.name} (the best)`,
        unit,
        bare: best.rates,
        intake,
        ratios: ratiosOf(intake, best.rates),
        goal,
        floor,
      },
    ];
    if (single)
      comparisons.push({
        name: 'upload-new, single',
        yardstick: 'psql \\copy, 1 connection',
        unit,
        bare: single,
        intake,
        ratios: ratiosOf(intake, single),
        goal: goalOfSingle,
      });
    return comparisons;
  },
};

const connectionsOf = (count: number) => (count === 1 ? '1 connection' : `${count} connections`);
