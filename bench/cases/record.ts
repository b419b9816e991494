import { type Bench, type Case, interleave, ratiosOf } from '../case.ts';
import { buildCheckout } from '../checkout.ts';
import { cpuSecondsOfEach } from '../cpu-time.ts';
import { expectStored, interactionOf } from '../interactions.ts';
import { storeReferences } from '../tables.ts';

const items = 1_000;
/** Interactions without an answer. A client from before batches refuses more than this many that wait. */
const unansweredMax = 1_000;
const tables = ['public.interactions', 'public.interaction_idempotency_keys'];
const built = new URL('../../client/dist/index.js', import.meta.url).href;

/** What is used of a version's library, which is loaded when the run has built it. */
interface Library {
  readonly Intake: new (options: {
    url: string;
    key: string;
  }) => { record(interaction: object): Promise<unknown> };
}

interface Cpu {
  readonly service: number[];
  readonly postgres: number[];
}

/** `record()` of this version's library and of another's, from this process, to the same service. */
export const record: Case = {
  name: 'record',
  what: 'record() of the library against that of --base, from one process: rate, and CPU of the server',
  long: true,
  async run(bench) {
    if (bench.base === undefined) {
      bench.progress('skipped: it needs --base');
      return [];
    }
    bench.progress(`building ${bench.base}`);
    const { commit, buildClient, remove } = await buildCheckout(bench.base);
    bench.defer(remove);
    const libraries = { old: await import(await buildClient()), new: await import(built) };
    for (const type of ['shops', 'customers'] as const)
      await storeReferences(bench.cluster, [bench.tenant.organisationId], type, items);
    const cpu: Record<'old' | 'new', Cpu> = {
      old: { service: [], postgres: [] },
      new: { service: [], postgres: [] },
    };
    const way = (which: 'old' | 'new') => () => recordRate(bench, libraries[which], cpu[which]);
    const rates = await interleave(bench, { old: way('old'), new: way('new') });
    // The first one is the warm-up's.
    const [old, now] = [cpu.old, cpu.new].map(({ service, postgres }) =>
      service.map((seconds, round) => seconds + (postgres[round] as number)).slice(1),
    ) as [number[], number[]];
    const lineOf = (name: string, unit: string, bare: number[], intake: number[]) => ({
      ...{ name, yardstick: `the library of ${commit}`, unit, bare, intake, ratios: ratiosOf(intake, bare) },
    });
    const part = (name: keyof Cpu) => [cpu.old[name].slice(1), cpu.new[name].slice(1)] as const;
    return [
      { ...lineOf('record()', 'interactions/s', rates.old, rates.new), goal: { atLeast: 5 } },
      { ...lineOf('record(), CPU of the server', 'µs each', old, now), goal: { atMost: 0.33 } },
      lineOf('record(), CPU of the service', 'µs each', ...part('service')),
      lineOf('record(), CPU of PostgreSQL', 'µs each', ...part('postgres')),
    ];
  },
};

/** Fails unless each is stored once, and none is refused. */
async function recordRate(bench: Bench, { Intake }: Library, cpu: Cpu): Promise<number> {
  const { cluster, service, tenant, seconds } = bench;
  await cluster.clean(...tables);
  const intake = new Intake({ url: `http://127.0.0.1:${service.port}`, key: tenant.key });
  const before = cpuSecondsOfEach({ service, cluster });
  const startMs = performance.now();
  let recorded = 0;
  const recordInTurn = async () => {
    while (performance.now() - startMs < seconds * 1_000) {
      const row = recorded++;
      await intake.record(interactionOf(1 + (row % items), 1 + ((row * 7 + 3) % items)));
    }
  };
  await Promise.all(Array.from({ length: unansweredMax }, recordInTurn));
  const takenMs = performance.now() - startMs;
  const after = cpuSecondsOfEach({ service, cluster });
  await expectStored(bench, recorded);
  for (const part of ['service', 'postgres'] as const)
    cpu[part].push(((after[part] - before[part]) / recorded) * 1e6);
  return (recorded / takenMs) * 1_000;
}
