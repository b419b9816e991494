import type { Case } from '../case.ts';
import { interleave } from '../case.ts';
import { recordsPerBody, referencesDefault } from '../records.ts';
import { startService } from '../service.ts';
import { publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const limitMb = 700;
const uploads = 64;

/**
 * Measures how much memory a newly started service needs for as many concurrent uploads as a small container must handle.
 */
export const memory: Case = {
  name: 'memory',
  what: `peak memory of ${uploads} uploads of ${recordsPerBody} at once compared with ${limitMb} MB`,
  async run(bench) {
    const { cluster, tenant } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
    bench.progress('preparing bodies');
    const count = uploads * recordsPerBody;
    const requests = uploadRequests(bench, { type: 'transactions', count, seed: 7 });
    const { 'all at once': peaks } = await interleave(bench, {
      'all at once': async () => {
        await cluster.clean(publicTable('transactions'));
        const fresh = await startService(cluster);
        try {
          await uploadRate({ port: fresh.port, connections: uploads }, requests, { created: count });
          return fresh.peakMemory() / 1e6;
        } finally {
          await fresh.stop();
        }
      },
    });
    return [
      {
        name: 'memory',
        yardstick: `a limit of ${limitMb} MB`,
        unit: 'MB',
        bare: peaks.map(() => limitMb),
        intake: peaks,
        ratios: peaks.map((mb) => mb / limitMb),
        goal: { atMost: 1 },
        notes: [`${uploads} uploads of ${recordsPerBody} at once, every one answered 200`],
      },
    ];
  },
};
