import { type Bench, type Case, interleave, ratiosOf } from '../case.ts';
import { buildCheckout } from '../checkout.ts';
import { cpuSecondsOfEach } from '../cpu-time.ts';
import { expectStored, interactionOf } from '../interactions.ts';
import { storeReferences } from '../tables.ts';

const items = 1_000;
/**
 * The maximum number of unanswered interactions. Older client versions, which do not batch interactions, refuse more
 * than this.
 */
const unansweredMax = 1_000;
const tables = ['public.interactions', 'public.interaction_idempotency_keys'];
const built = new URL('../../client/dist/index.js', import.meta.url).href;

/** The part of a version's library that is used here. The library is loaded once the run has built it. */
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

/**
 * Compares `record()` in this version's library with `record()` in another version's library. Both run in this process
 * and call the same service.
 */
export const record: Case = {
  name: 'record',
  what: 'record() of the library compared with --base, from one process: rate, and CPU of the server',
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
    // Skip the first value, which is from the warm-up.
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

/** Measures the rate of `record()`. Fails unless every interaction is stored exactly once. */
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
