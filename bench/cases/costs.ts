import { interactionCost, recordCost } from '../../src/cli/capacity.ts';
import { measuredCosts } from '../../src/cli/measured-costs.ts';
import { type Bench, type Case, type Comparison, median } from '../case.ts';
import { sendAtRate, withConnections } from '../http-load.ts';
import { expectRecorded, interactionRequest, interactionRequests } from '../interactions.ts';
import { createTenants, storeReferences } from '../tables.ts';
import { countOutcomes, uploadRequests } from '../upload.ts';
import { indexingUsage, type Usage, usageOf } from '../usage.ts';

const items = 5_000;
const organisations = 1_000;
const within = 1.2;
/** Uploads of so many records, so many a second: between a quarter and half a core of the service. */
const uploads = [
  { perBody: 10, perSecond: 200 },
  { perBody: 100, perSecond: 100 },
  { perBody: 1_000, perSecond: 20 },
  { perBody: 5_000, perSecond: 4 },
];

/** One thing to do, for which there is a planned cost. */
interface Task {
  readonly name: string;
  readonly each: number;
  readonly planned: { readonly service: number; readonly postgres: number };
  readonly work: () => Promise<unknown>;
}

/** Every cost that `intake-server plan` reckons with, measured again. */
export const costs: Case = {
  name: 'costs',
  what: 'the costs that intake-server plan reckons with, each measured again',
  long: true,
  async run(bench) {
    const tasks = [...uploadTasks(bench), ...(await interactionTasks(bench))];
    bench.progress('warm-up: everything once, for the compiler');
    for (const { work } of tasks) await usageOf(bench, work);
    const used = new Map<string, Usage[]>();
    for (const { name, each, work } of tasks) used.set(name, await rounds(bench, name, each, work));
    const medians = (name: string, part: keyof Usage) =>
      median(used.get(name)?.map((usage) => usage[part]) ?? []);
    bench.progress('the indexes of a day that is over');
    const indexing = await indexingUsage(bench);
    const table = tableOf(medians, indexing);
    return tasks.flatMap(({ name, planned }, at) => {
      const all = used.get(name) ?? [];
      const compare = (part: 'service' | 'postgres'): Comparison => {
        const bare = all.map((usage) => usage[part] * 1e6);
        return {
          name: `${name}, ${part}`,
          yardstick: 'as measured',
          unit: 'µs of CPU each',
          bare,
          intake: bare.map(() => planned[part]),
          ratios: bare.map((micros) => planned[part] / micros),
          within,
        };
      };
      const last = at === tasks.length - 1 ? { notes: [`for measured-costs.ts:\n${table}`] } : {};
      return [compare('service'), { ...compare('postgres'), ...last }];
    });
  },
};

/**
 * All rounds of a task after each other, unlike elsewhere: threads that check large bodies end when none comes for half a
 * minute, and to start and compile them again would be counted with the next.
 */
async function rounds(
  bench: Bench,
  name: string,
  each: number,
  work: () => Promise<unknown>,
): Promise<Usage[]> {
  const used: Usage[] = [];
  for (let round = 0; round <= bench.rounds; round++) {
    bench.progress(`${name}: ${round === 0 ? 'warm-up' : `round ${round} of ${bench.rounds}`}`);
    used.push(divided(await usageOf(bench, work), each));
  }
  return used.slice(1);
}

function uploadTasks(bench: Bench): Task[] {
  const { service, seconds } = bench;
  return uploads.map(({ perBody, perSecond }) => {
    const each = perBody * perSecond * seconds;
    const requests = uploadRequests(bench, { type: 'transactions', count: each, seed: 7, perBody });
    const work = () =>
      withConnections(service.port, 8, (open) =>
        sendAtRate(open, requests, { perSecond, seconds }, (answer) => countOutcomes([answer])),
      );
    return { name: uploadsOf(perBody), each, planned: recordCost(perBody), work };
  });
}

async function interactionTasks(bench: Bench): Promise<Task[]> {
  const { cluster, service, tenant, seconds } = bench;
  bench.progress(`creating ${organisations} organisations`);
  const many = await createTenants(cluster, organisations);
  const perTenant = items / organisations;
  for (const type of ['shops', 'customers'] as const) {
    await storeReferences(cluster, [tenant.organisationId], type, items);
    await storeReferences(
      cluster,
      many.map(({ organisationId }) => organisationId),
      type,
      perTenant,
    );
  }
  // Every organisation has its turn before the first has its next.
  const ofMany = Array.from({ length: perTenant }, (_, at) =>
    many.map((each) => interactionRequest(each, at + 1, at + 1)),
  ).flat();
  const ways = [
    { count: 1, requests: interactionRequests(tenant, items) },
    { count: organisations, requests: ofMany },
  ];
  return measuredCosts.interactions.flatMap(({ perSecond }) =>
    ways.map(({ count, requests }) => ({
      name: interactionsAt(perSecond, count),
      each: perSecond * seconds,
      planned: interactionCost(perSecond, count),
      work: () =>
        withConnections(service.port, 64, (open) =>
          sendAtRate(open, requests, { perSecond, seconds }, expectRecorded),
        ),
    })),
  );
}

const uploadsOf = (perBody: number) => `uploads of ${perBody}`;
const interactionsAt = (perSecond: number, count: number) => `${perSecond} interactions/s of ${count}`;

function divided(usage: Usage, by: number): Usage {
  const entries = Object.entries(usage).map(([part, value]) => [part, value / by]);
  return Object.fromEntries(entries) as unknown as Usage;
}

type Medians = (name: string, part: keyof Usage) => number;

/** The figures as they stand in the source. What an upload costs by itself shows between small ones and whole batches. */
function tableOf(medians: Medians, indexing: { readonly postgres: number; readonly bytes: number }): string {
  const [small, whole] = [10, 1_000];
  const alone = (part: keyof Usage) =>
    (medians(uploadsOf(small), part) - medians(uploadsOf(whole), part)) / (1 / small - 1 / whole);
  const cpu = (micros: (part: 'service' | 'postgres') => number) =>
    `{ service: ${figure(micros('service') * 1e6)}, postgres: ${figure(micros('postgres') * 1e6)} }`;
  const top = measuredCosts.interactions.at(-1)?.perSecond ?? 0;
  const interaction = (part: keyof Usage) => medians(interactionsAt(top, 1), part);
  const rows = measuredCosts.interactions.map(({ perSecond }) => {
    const [one, many] = [1, organisations].map((count) =>
      cpu((part) => medians(interactionsAt(perSecond, count), part)),
    );
    return `    { perSecond: ${figure(perSecond)}, one: ${one}, many: ${many} },`;
  });
  return [
    `  upload: ${cpu(alone)},`,
    `  record: ${cpu((part) => medians(uploadsOf(whole), part) - alone(part) / whole)},`,
    '  interactions: [',
    ...rows,
    '  ],',
    `  indexing: ${figure(indexing.postgres * 1e6)},`,
    '  stored: {',
    `    record: { table: ${figure(medians(uploadsOf(whole), 'records'))}, key: ${figure(medians(uploadsOf(whole), 'recordKeys'))} },`,
    `    interaction: { written: ${figure(interaction('interactions'))}, indexes: ${figure(indexing.bytes)} },`,
    `    receipt: ${figure(medians(uploadsOf(small), 'receipts') * small)},`,
    '  },',
    `  wal: { record: ${figure(medians(uploadsOf(whole), 'wal') - alone('wal') / whole)}, batch: ${figure(alone('wal'))}, interaction: ${figure(interaction('wal'))} },`,
  ].join('\n');
}

/** Three digits, written as the source does. */
function figure(value: number): string {
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString('en').replaceAll(',', '_');
}
