import { expect, it } from 'vitest';
import { assumed, type Demand, interactionCost, planCapacity, recordCost } from './capacity.ts';
import type { InteractionCost } from './costs.ts';
import { measuredCosts as costs } from './measured-costs.ts';

const small: Demand = {
  recordsPerSecond: 10,
  recordsPerRequest: 1_000,
  interactionsPerSecond: 10,
  organisations: 1,
  retentionDays: 30,
};
const day = 86_400;

it('ten a second need one process on one machine', () => {
  const { stage, service, postgres, connections } = planCapacity(small);
  expect({ stage, processes: service.processes, machines: postgres.machines, connections }).toEqual({
    stage: 'one process',
    processes: 1,
    machines: 1,
    connections: 24,
  });
  expect(service.cores).toBeLessThan(0.1);
});

it('each stage follows when the previous one is not enough', () => {
  const of = (recordsPerSecond: number, retentionDays: number) =>
    planCapacity({ ...small, recordsPerSecond, interactionsPerSecond: 0, retentionDays }).stage;
  const processCarries = (assumed.coreShareMax / recordCost(1_000).service) * 1e6;
  expect(of(Math.floor(processCarries), 1)).toBe('one process');
  expect(of(Math.ceil(processCarries) + 1, 1)).toBe('many processes');
  const pooled = planCapacity({ ...small, interactionsPerSecond: 120_000, retentionDays: 1 });
  expect(pooled.stage).toBe('pooler');
  expect(pooled.connections).toBeGreaterThan(assumed.sessionsMax);
  expect(of(100, 100_000)).toBe('Citus');
});

it('names what requires more machines', () => {
  const forDisk = planCapacity({ ...small, recordsPerSecond: 10_000, retentionDays: 365 });
  expect(forDisk.postgres).toMatchObject({ machinesFor: 'disk' });
  const forCpu = planCapacity({
    ...small,
    recordsPerSecond: 3_000_000,
    recordsPerRequest: 10,
    retentionDays: 1,
  });
  expect(forCpu.postgres).toMatchObject({ machinesFor: 'CPU' });
});

it('a cluster of 100,000 organisations has enough workers for its CPU and its disk', () => {
  const { stage, service, postgres, disk } = planCapacity({
    recordsPerSecond: 500_000,
    recordsPerRequest: 1_000,
    interactionsPerSecond: 100_000,
    organisations: 100_000,
    retentionDays: 2,
  });
  expect(stage).toBe('Citus');
  expect(service.cores).toBeLessThanOrEqual(service.processes * assumed.coreShareMax);
  expect(postgres.cores).toBeLessThanOrEqual(
    postgres.machines * assumed.coresPerMachine * assumed.coreShareMax,
  );
  expect(postgres.shards).toBeGreaterThanOrEqual(2 * postgres.machines);
  const kept = disk.filter(({ name }) => name !== 'WAL archive').reduce((sum, part) => sum + part.kept, 0);
  expect(kept).toBeLessThanOrEqual(postgres.machines * assumed.diskBytesPerMachine);
});

it('Citus costs as much more CPU as was measured', () => {
  const oneMachine = { ...small, recordsPerSecond: 10_000, interactionsPerSecond: 0, retentionDays: 1 };
  const spread = { ...oneMachine, retentionDays: 3_650 };
  expect(planCapacity(spread).stage).toBe('Citus');
  expect(planCapacity(spread).postgres.cores / planCapacity(oneMachine).postgres.cores).toBeCloseTo(
    costs.onCitus.record,
  );
});

it('Citus costs more for interactions, but less if all belong to one organisation', () => {
  const oneMachine = { ...small, recordsPerSecond: 0, interactionsPerSecond: 10_000, retentionDays: 1 };
  for (const [organisations, factor] of [
    [1, costs.onCitus.interactionOfOne],
    [8, costs.onCitus.interaction],
  ] as const) {
    const spread = { ...oneMachine, organisations, retentionDays: 3_650 };
    expect(planCapacity(spread).stage).toBe('Citus');
    const plain = planCapacity({ ...oneMachine, organisations }).postgres.cores;
    expect(planCapacity(spread).postgres.cores / plain).toBeCloseTo(factor);
  }
});

it('with twice the CPU for everything a load takes twice the cores, and the same disk', () => {
  const demand = { ...small, recordsPerSecond: 1_000, interactionsPerSecond: 0 };
  const [once, twice] = [1, 2].map((cpu) => planCapacity(demand, costs, cpu));
  expect(twice!.service.cores).toBeCloseTo(2 * once!.service.cores);
  expect(twice!.postgres.cores).toBeCloseTo(2 * once!.postgres.cores);
  expect(twice!.disk).toEqual(once!.disk);
});

it('disk grows with the rate and the days, receipts only until they are removed', () => {
  const kept = (demand: Demand) =>
    Object.fromEntries(planCapacity(demand).disk.map((part) => [part.name, part.kept]));
  const month = kept(small);
  const year = kept({ ...small, retentionDays: 360 });
  const { table, key } = costs.stored.record;
  expect(month.records).toBe(10 * day * 30 * (table + key));
  expect(year.records).toBe(12 * (month.records ?? 0));
  expect(year.interactions).toBe(12 * (month.interactions ?? 0));
  expect((year.receipts ?? 0) / (month.receipts ?? 0)).toBeCloseTo(37 / 30);
});

it('a record in a small upload has a larger share of the cost of its upload', () => {
  expect(recordCost(1).service).toBe(costs.record.service + costs.upload.service);
  expect(recordCost(1_000).service).toBeLessThan(recordCost(10).service);
  // A batch contains up to 1,000 records, and PostgreSQL has a fixed cost per batch.
  expect(recordCost(5_000).postgres).toBeCloseTo(recordCost(1_000).postgres);
  expect(recordCost(1_001).postgres).toBeGreaterThan(recordCost(1_000).postgres);
});

it('an interaction costs what was measured at its rate, with interpolation between rates', () => {
  const parts = ['service', 'postgres', 'wal', 'changes'] as const;
  for (const { perSecond, one } of costs.interactions)
    for (const part of parts) expect(interactionCost(perSecond, 1)[part]).toBeCloseTo(one[part]);
  const [first, slow, fast] = costs.interactions as [InteractionCost, InteractionCost, InteractionCost];
  for (const part of parts) {
    const between = interactionCost(Math.sqrt(slow.perSecond * fast.perSecond), 1)[part];
    expect(between).toBeCloseTo(Math.sqrt(slow.one[part] * fast.one[part]));
  }
  expect(interactionCost(0, 1)).toEqual(first.one);
  expect(interactionCost(1e6, 1)).toEqual(costs.interactions.at(-1)?.one);
  expect(interactionCost(fast.perSecond, 1e6).postgres).toBeCloseTo(fast.many.postgres, 1);
});

it('interactions share more commits in a process that is busy with uploads', () => {
  const interactions = { ...small, recordsPerSecond: 0, interactionsPerSecond: 200 };
  const uploads = { ...small, recordsPerSecond: 5_000, interactionsPerSecond: 0 };
  const both = { ...uploads, interactionsPerSecond: 200 };
  const cores = (demand: Demand) => planCapacity(demand).service.cores;
  expect(planCapacity(both).service.processes).toBe(1);
  expect(cores(both)).toBeLessThan(cores(interactions) + cores(uploads));
  expect(cores(both)).toBeGreaterThan(cores(uploads));
});

it('the change log takes disk for as long as it is kept, and more if fewer interactions share a row', () => {
  const log = (demand: Partial<Demand>) =>
    planCapacity({ ...small, ...demand }).disk.find(({ name }) => name === 'change log')?.kept ?? 0;
  const eightDays = log({ retentionDays: 8 });
  expect(log({ retentionDays: 4 })).toBeCloseTo(eightDays / 2);
  expect(log({ retentionDays: 80 })).toBe(eightDays);
  const many = { interactionsPerSecond: 2_000, organisations: 1e6 };
  expect(log(many)).toBeGreaterThan(log({ ...many, organisations: 1 }));
});

it('different costs give a different plan', () => {
  const demand = { ...small, recordsPerSecond: 10_000, interactionsPerSecond: 0 };
  const twice = { ...costs.record, service: 2 * costs.record.service + costs.upload.service / 1_000 };
  const { service } = planCapacity(demand, { ...costs, record: twice });
  expect(service.cores).toBeCloseTo(2 * planCapacity(demand).service.cores);
});

it('a load for a million processes is planned instantly', () => {
  const dear = { ...costs.record, service: 1e9 };
  const { service } = planCapacity({ ...small, recordsPerSecond: 1e6 }, { ...costs, record: dear });
  expect(service.cores).toBeLessThanOrEqual(service.processes * assumed.coreShareMax * 1.000001);
  expect(service.processes).toBeGreaterThan(1e9);
});
