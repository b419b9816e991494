import type { Bench, Case, Comparison } from '../case.ts';
import {
  interactionsOfMany,
  interactionsOfOne,
  interactionTask,
  medianUsage,
  type Task,
  uploadTask,
  usageOfEach,
} from '../cost-tasks.ts';
import { costsOf, machineOf, rounded, smallUpload, sourceOf, wholeBatch } from '../costs-of.ts';
import { interactionCost, recordCost } from '../planning/capacity.ts';
import type { Cost, Costs } from '../planning/costs.ts';
import { measuredCosts } from '../planning/measured-costs.ts';
import { indexingUsage, type Usage, usageOf, withoutMaintenance } from '../usage.ts';

const organisations = 1_000;
const within = 1.2;
/**
 * The number of records per upload and the number of uploads per second. Under each of these loads, the service uses
 * between a fifth and a half of a core. A request costs less at a higher rate, so uploads of 10 records are not sent
 * faster than uploads of 100.
 */
const uploads = [
  { perBody: smallUpload, perSecond: 100 },
  { perBody: 100, perSecond: 100 },
  { perBody: wholeBatch, perSecond: 20 },
  { perBody: 5_000, perSecond: 4 },
];
const rates = measuredCosts.interactions.map(({ perSecond }) => perSecond);

/** A load, with the cost per item that `planCapacity` estimates. */
interface Costed extends Task {
  readonly name: string;
  readonly planned: (costs: Costs) => Cost;
  /** Whether the cost is in the table of costs rather than derived from it. */
  readonly isInTable: boolean;
}

/** Measures the costs behind the sizes in docs/operating/scaling.md. */
export const costs: Case = {
  name: 'costs',
  what: 'measures the costs behind the sizes in docs/operating/scaling.md',
  long: true,
  async run(bench) {
    const tasks = [...uploadTasks(bench), ...(await interactionTasks(bench))];
    const used = new Map<string, [Usage, ...Usage[]]>();
    const indexing = await withoutMaintenance(bench, async () => {
      bench.progress('warm-up: everything once, for the compiler');
      for (const { work } of tasks) await usageOf(bench, work);
      for (const task of tasks) used.set(task.name, await roundsOf(bench, task));
      bench.progress('the indexes of a day that is over');
      return indexingUsage(bench);
    });
    const of = (name: string) => medianUsage(used.get(name) as [Usage]);
    const measured = {
      small: of(uploadsOf(smallUpload)),
      whole: of(uploadsOf(wholeBatch)),
      interactions: rates.map((perSecond) => ({
        perSecond,
        one: of(interactionsAt(perSecond, 1)),
        many: of(interactionsAt(perSecond, organisations)),
      })),
      indexing,
    };
    const found = rounded(costsOf(measured, await machineOf(bench)));
    const lines = tasks.flatMap((task) => comparisonsOf(task, used.get(task.name) ?? [], found));
    const notes = [`for bench/planning/measured-costs.ts:\n${sourceOf(found)}`];
    return lines.map((line, at) => (at === lines.length - 1 ? { ...line, notes } : line));
  },
};

/**
 * Runs all of a task's rounds in a row, unlike other cases. Threads that check large bodies end after half a minute
 * without work, and the cost of starting and compiling them again would count towards the next round.
 */
async function roundsOf(bench: Bench, task: Costed): Promise<[Usage, ...Usage[]]> {
  const round = (number: number) => {
    bench.progress(`${task.name}: ${number === 0 ? 'warm-up' : `round ${number} of ${bench.rounds}`}`);
    return usageOfEach(bench, task);
  };
  await round(0);
  const used: [Usage, ...Usage[]] = [await round(1)];
  for (let number = 2; number <= bench.rounds; number++) used.push(await round(number));
  return used;
}

function uploadTasks(bench: Bench): Costed[] {
  return uploads.map(({ perBody, perSecond }) => ({
    ...uploadTask(bench, { perBody, perSecond, seconds: bench.seconds }),
    name: uploadsOf(perBody),
    planned: (by) => recordCost(perBody, by),
    isInTable: perBody === smallUpload || perBody === wholeBatch,
  }));
}

async function interactionTasks(bench: Bench): Promise<Costed[]> {
  bench.progress(`creating ${organisations} organisations`);
  const ways = [
    { count: 1, requests: await interactionsOfOne(bench) },
    { count: organisations, requests: await interactionsOfMany(bench, organisations) },
  ];
  return rates.flatMap((perSecond) =>
    ways.map(({ count, requests }) => ({
      ...interactionTask(bench, requests, { perSecond, seconds: secondsAt(perSecond, bench) }),
      name: interactionsAt(perSecond, count),
      planned: (by: Costs) => interactionCost(perSecond, count, by),
      isInTable: true,
    })),
  );
}

/** Returns how long to measure. Low rates need longer, because the last page of each table and index is mostly empty. */
function secondsAt(perSecond: number, { seconds }: Bench): number {
  return perSecond < 100 ? 4 * seconds : seconds;
}

const uploadsOf = (perBody: number) => `uploads of ${perBody}`;
const interactionsAt = (perSecond: number, count: number) => `${perSecond} interactions/s of ${count}`;

const parts = [
  ['service', 'µs of CPU each', 1e6],
  ['postgres', 'µs of CPU each', 1e6],
  ['wal', 'bytes each', 1],
  ['changes', 'bytes each', 1],
] as const;

/**
 * Compares the measured costs with the estimated costs. Costs in the table are compared with the costs in the
 * source code. That comparison has no goal, because the costs in the source code were measured at another time and the
 * difference depends on the machine as much as on the service. Derived costs have to agree with measurements from the
 * same run.
 */
function comparisonsOf(task: Costed, used: readonly Usage[], found: Costs): Comparison[] {
  const planned = task.planned(task.isInTable ? measuredCosts : found);
  return parts.map(([part, unit, times]) => {
    const bare = used.map((usage) => usage[part] * times);
    return {
      name: `${task.name}, ${part}`,
      yardstick: 'as measured',
      unit,
      bare,
      intake: bare.map(() => planned[part]),
      ratios: bare.map((figure) => planned[part] / figure),
      ...(task.isInTable ? {} : { within }),
    };
  });
}
