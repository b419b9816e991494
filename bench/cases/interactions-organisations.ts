import { type Case, interleave, median, ratiosOf } from '../case.ts';
import { cpuSeconds } from '../cpu-time.ts';
import { sendAtRate, withConnections } from '../http-load.ts';
import { expectRecorded, expectStored, interactionRequest, interactionRequests } from '../interactions.ts';
import { createTenants, storeReferences } from '../tables.ts';

const goal = { atMost: 2 };
const organisations = 1_000;
const perOrganisation = 5;
const perSecond = organisations * perOrganisation;
const clients = 250;

/**
 * Measures the additional CPU cost in the service and the database when interactions come from many organisations. A
 * statement stores the interactions of only one organisation, so with many small organisations each statement stores
 * fewer of them.
 */
export const interactionsOrganisations: Case = {
  name: 'interactions-organisations',
  what: `${organisations} organisations sending ${perOrganisation} a second each compared with one sending ${perSecond}`,
  async run(bench) {
    const { cluster, service, seconds } = bench;
    bench.progress(`creating ${organisations + 1} organisations`);
    const [single, ...many] = await createTenants(cluster, organisations + 1);
    if (!single) throw new Error('no organisation was created');
    const ids = many.map(({ organisationId }) => organisationId);
    for (const type of ['shops', 'customers'] as const) {
      await storeReferences(cluster, [single.organisationId], type, perSecond);
      await storeReferences(cluster, ids, type, perOrganisation);
    }
    // Create requests for one second, interleaving the organisations.
    const ofSingle = interactionRequests(single, perSecond);
    const ofMany = Array.from({ length: perOrganisation }, (_, at) =>
      many.map((tenant) => interactionRequest(tenant, at + 1, at + 1)),
    ).flat();
    const reached = { single: [] as number[], many: [] as number[] };
    const costOf = (requests: readonly Buffer[], rates: number[]) => async () => {
      await cluster.clean('public.interactions');
      const { load, used } = await withConnections(service.port, clients, async (connections) => {
        const before = cpuSeconds(bench);
        const load = await sendAtRate(connections, requests, { perSecond, seconds }, expectRecorded);
        return { load, used: cpuSeconds(bench) - before };
      });
      await expectStored(bench, load.answers);
      rates.push(load.answers / load.seconds);
      return (used * 1_000) / (load.answers / 1_000);
    };
    const { 'one organisation': bare, 'many organisations': intake } = await interleave(bench, {
      'one organisation': costOf(ofSingle, reached.single),
      'many organisations': costOf(ofMany, reached.many),
    });
    return [
      {
        name: 'interactions-organisations',
        yardstick: `one organisation, ${perSecond} a second`,
        unit: 'CPU ms per 1,000',
        bare,
        intake,
        ratios: ratiosOf(intake, bare),
        goal,
        notes: [
          `open loop of ${perSecond} a second over ${clients} connections; reached by one organisation ` +
            `${Math.round(median(reached.single.slice(1)))}, by ${organisations} ${Math.round(median(reached.many.slice(1)))} a second`,
        ],
      },
    ];
  },
};
