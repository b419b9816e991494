import { type Bench, type Case, interleave, ratiosOf } from '../case.ts';
import { referencesDefault } from '../records.ts';
import { publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const goal = { atLeast: 2 };
const floor = 0.7;
const table = publicTable('transactions');

/** Sends stored records again, which must be faster than storing them and must not write a single row version. */
export const uploadAgain: Case = {
  name: 'upload-again',
  what: 'the same records again, nothing changed, compared with the first time',
  quick: true,
  async run(bench) {
    const { cluster, tenant, service, connections, rows } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
    bench.progress('preparing bodies');
    const requests = uploadRequests(bench, { type: 'transactions', count: rows, seed: 7 });
    const to = { port: service.port, connections };
    const upload = async () => {
      await cluster.clean(table);
      return uploadRate(to, requests, { created: rows });
    };
    const uploadOnceMore = async () => {
      await cluster.settle(table);
      const before = await versionsOf(bench);
      const rate = await uploadRate(to, requests, { unchanged: rows });
      const after = await versionsOf(bench);
      if (after !== before) throw new Error(`rows were written again: ${before} became ${after}`);
      return rate;
    };
    const { 'first time': first, again } = await interleave(bench, {
      'first time': upload,
      again: uploadOnceMore,
    });
    return [
      {
        name: 'upload-again',
        yardstick: 'the same records, the first time',
        unit: 'rows/s',
        bare: first,
        intake: again,
        ratios: ratiosOf(again, first),
        goal,
        floor,
        notes: ['not one row version was written: xmin and ctid of every row are what they were'],
      },
    ];
  },
};

/** Returns the exact number of row versions. The statistics views show other sessions' counts with a delay. */
async function versionsOf(bench: Bench): Promise<string> {
  const [row] = await bench.cluster.query<{ versions: string }>(
    `select count(*) || ' rows, ' || sum(hashtext(xmin::text || ctid::text)::bigint) as versions from ${table}`,
  );
  return row?.versions ?? '';
}
