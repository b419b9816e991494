import { limits } from '../../src/limits.ts';
import { type Bench, type Case, type Comparison, ratiosOf } from '../case.ts';
import { interactionsOfOne, interactionTask, type Task, uploadTask, usageOfEach } from '../cost-tasks.ts';
import { costsOf, smallUpload, wholeBatch } from '../costs-of.ts';
import { assumed, type DiskPart, planCapacity } from '../planning/capacity.ts';
import type { Costs } from '../planning/costs.ts';
import { type Usage, withoutMaintenance } from '../usage.ts';

/**
 * Under this load, the service uses half a core. For a larger load, `planCapacity` would assume two processes, but only one
 * runs here. Costs at this upload size and this rate of interactions are not measured, so it has to interpolate
 * them.
 */
const demand = {
  recordsPerSecond: 2_000,
  recordsPerRequest: 100,
  interactionsPerSecond: 400,
  organisations: 1,
  retentionDays: 1,
};
const uploadsPerSecond = { small: 100, whole: 10 };
const rates = { slow: 250, fast: 500 };
/**
 * A round must end before idle threads that check large bodies are stopped, because otherwise the measurement would
 * include the cost of restarting them.
 */
const secondsMax = Math.floor(limits.workerIdleMs / 1_000 / 7);
const within = 1.2;
/**
 * The minimum ratio for CPU time. In a one-second round on a busy machine, compiling and waking up take half of the time.
 */
const cpuFloor = 0.3;
const bytesFloor = 0.5;

/**
 * Compares an estimate by `planCapacity` with the actual cost. The costs are measured in the same rounds as the load, because on a
 * shared machine they vary by a factor of two from hour to hour.
 */
export const plan: Case = {
  name: 'plan',
  what: `the estimate for ${demand.recordsPerSecond} records and ${demand.interactionsPerSecond} interactions a second, from costs measured here, compared with their actual cost`,
  quick: true,
  async run(bench) {
    bench.progress('preparing bodies');
    const tasks = await tasksOf(bench);
    const rounds: Record<TaskName, Usage>[] = [];
    await withoutMaintenance(bench, async () => {
      for (let round = 0; round <= bench.rounds; round++) {
        bench.progress(round === 0 ? 'warm-up' : `round ${round} of ${bench.rounds}`);
        const used: [string, Usage][] = [];
        for (const [name, task] of Object.entries(tasks)) used.push([name, await usageOfEach(bench, task)]);
        if (round > 0) rounds.push(Object.fromEntries(used) as Record<TaskName, Usage>);
      }
    });
    const taken = rounds.map(({ mixed }) => takenPerSecond(mixed));
    const planned = rounds.map((used) => plannedPerSecond(costsIn(used)));
    return parts.map(([part, unit]): Comparison => {
      const bare = taken.map((figures) => figures[part]);
      const intake = planned.map((figures) => figures[part]);
      const ratios = ratiosOf(intake, bare);
      const floor = unit === 'cores' ? cpuFloor : bytesFloor;
      return { name: `plan, ${part}`, yardstick: 'as measured', unit, bare, intake, ratios, within, floor };
    });
  },
};

type TaskName = 'small' | 'slow' | 'mixed' | 'whole' | 'fast';

/**
 * Returns the tasks in the order in which they are measured. The mixed load comes between the tasks that determine its
 * costs.
 */
async function tasksOf(bench: Bench): Promise<Record<TaskName, Task>> {
  const seconds = bench.quick ? 1 : Math.min(bench.seconds, secondsMax);
  const { recordsPerSecond, recordsPerRequest: perBody, interactionsPerSecond: perSecond } = demand;
  const requests = await interactionsOfOne(bench);
  const uploads = (size: number, rate: number) =>
    uploadTask(bench, { perBody: size, perSecond: rate, seconds });
  const interactions = (rate: number) => interactionTask(bench, requests, { perSecond: rate, seconds });
  const together = [uploads(perBody, recordsPerSecond / perBody), interactions(perSecond)];
  return {
    small: uploads(smallUpload, uploadsPerSecond.small),
    slow: interactions(rates.slow),
    mixed: { each: seconds, work: () => Promise.all(together.map(({ work }) => work())) },
    whole: uploads(wholeBatch, uploadsPerSecond.whole),
    fast: interactions(rates.fast),
  };
}

/**
 * This load does not include the work that maintenance does when a day is over. The `costs` case measures that work.
 */
const nothing = { postgres: 0, wal: 0, bytes: 0 };

function costsIn({ small, whole, slow, fast }: Record<TaskName, Usage>): Costs {
  const interactions = [
    { perSecond: rates.slow, one: slow, many: slow },
    { perSecond: rates.fast, one: fast, many: fast },
  ];
  return costsOf({ small, whole, interactions, indexing: nothing }, 'here');
}

const parts = [
  ['service', 'cores'],
  ['postgres', 'cores'],
  ['records', 'bytes/s'],
  ['interactions', 'bytes/s'],
  ['changes', 'bytes/s'],
  ['wal', 'bytes/s'],
] as const;

type Figures = Readonly<Record<(typeof parts)[number][0], number>>;

function takenPerSecond({ records, recordKeys, ...others }: Usage): Figures {
  return { ...others, records: records + recordKeys };
}

function plannedPerSecond(costs: Costs): Figures {
  const { service, postgres, disk } = planCapacity(demand, costs);
  const bytes = (name: DiskPart['name']) =>
    (disk.find((part) => part.name === name)?.perDay ?? Number.NaN) / 86_400;
  return {
    service: service.cores,
    postgres: postgres.cores,
    records: bytes('records'),
    interactions: bytes('interactions'),
    changes: bytes('change log') / assumed.deadRows,
    wal: bytes('WAL archive'),
  };
}
