import { startBackgroundUploads } from '../background-uploads.ts';
import { type Case, interleave, median, percentile, ratiosOf } from '../case.ts';
import { sendAtRate, withConnections } from '../http-load.ts';
import { expectRecorded, expectStored, interactionRequests } from '../interactions.ts';
import { fieldsOf, type Recipe, recordsPerBody, referencesDefault } from '../records.ts';
import { storeReferences } from '../tables.ts';
import { uploadRequests } from '../upload.ts';

const goal = { atMost: 3 };
const perSecond = 500;
const clients = 64;
const uploaders = 4;
const items = 5_000;
const amountAt = fieldsOf('transactions').indexOf('amount');

/** Measures how much uploading one organisation's export slows down the interactions of other organisations. */
export const interactionsBesideUploads: Case = {
  name: 'interactions-beside-uploads',
  what: `p99 of ${perSecond} interactions a second while ${uploaders} uploaders saturate the service`,
  async run(bench) {
    const { cluster, tenant, service, seconds, rows } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', Math.max(items, referencesDefault));
    await storeReferences(cluster, [tenant.organisationId], 'customers', items);
    bench.progress('preparing bodies');
    const recipe: Recipe = { type: 'transactions', count: rows, seed: 7 };
    // In the first pass the records are new, and in every later pass all records are changed, so that there is always work
    // to do.
    const dearer = (_: number, values: unknown[]) => {
      values[amountAt] = Number(values[amountAt]) + 1;
    };
    const uploads = [
      ...uploadRequests(bench, recipe),
      ...uploadRequests(bench, { ...recipe, alter: dearer }),
    ];
    const requests = interactionRequests(tenant, items);
    const uploadRates: number[] = [];
    const latency = async () => {
      const load = await withConnections(service.port, clients, (connections) =>
        sendAtRate(connections, requests, { perSecond, seconds }, expectRecorded),
      );
      await expectStored(bench, load.answers);
      return percentile(load.latenciesMs, 0.99);
    };
    const { alone, 'during uploads': beside } = await interleave(bench, {
      alone: async () => {
        await cluster.clean('public.transactions', 'public.interactions');
        return latency();
      },
      'during uploads': async () => {
        await cluster.clean('public.transactions', 'public.interactions');
        const start = performance.now();
        const background = await startBackgroundUploads({
          port: service.port,
          connections: uploaders,
          requests: uploads,
        });
        const p99 = await latency().finally(async () => {
          const answered = await background.stop();
          uploadRates.push((answered * Math.min(rows, recordsPerBody) * 1_000) / (performance.now() - start));
        });
        return p99;
      },
    });
    return [
      {
        name: 'interactions-beside-uploads',
        yardstick: `p99 alone, ${perSecond} a second`,
        unit: 'ms',
        bare: alone,
        intake: beside,
        ratios: ratiosOf(beside, alone),
        goal,
        notes: [
          `open loop; meanwhile ${uploaders} uploaders stored about ${Math.round(median(uploadRates.slice(1))).toLocaleString('en')} records a second`,
        ],
      },
    ];
  },
};
