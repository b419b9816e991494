import { type Case, interleave, ratiosOf } from '../case.ts';
import { type Recipe, referencesDefault } from '../records.ts';
import { publicTable, storeReferences } from '../tables.ts';
import { keyedRequests, uploadRate, uploadRequests } from '../upload.ts';

const goal = { atLeast: 0.95 };
const table = publicTable('transactions');

/** Compares uploads that have an Idempotency-Key, as the README recommends, with the same uploads without a key. */
export const uploadKeys: Case = {
  name: 'upload-keys',
  what: 'new transactions with an Idempotency-Key each compared with the same without',
  async run(bench) {
    const { cluster, tenant, service, connections, rows } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
    const recipe: Recipe = { type: 'transactions', count: rows, seed: 7 };
    const plain = uploadRequests(bench, recipe);
    const upload = async (requests: readonly Buffer[]) => {
      await cluster.clean(table);
      return uploadRate({ port: service.port, connections }, requests, { created: rows });
    };
    const { without: bare, with: intake } = await interleave(bench, {
      without: () => upload(plain),
      with: () => upload(keyedRequests(bench, recipe)),
    });
    return [
      {
        name: 'upload-keys',
        yardstick: 'the same uploads without a key',
        unit: 'rows/s',
        bare,
        intake,
        ratios: ratiosOf(intake, bare),
        goal,
      },
    ];
  },
};
