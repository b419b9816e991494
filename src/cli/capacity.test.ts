import { expect, it } from 'vitest';
import { assumed, type Demand, interactionCost, planCapacity, recordCost } from './capacity.ts';
import { measuredCosts as costs } from './measured-costs.ts';

const small: Demand = {
  recordsPerSecond: 10,
  recordsPerRequest: 1_000,
  interactionsPerSecond: 10,
  organisations: 1,
  retentionDays: 30,
};
const day = 86_400;

it('ten a second are one process on one machine', () => {
  const { stage, service, postgres, connections } = planCapacity(small);
  expect({ stage, processes: service.processes, machines: postgres.machines, connections }).toEqual({
    stage: 'one process',
    processes: 1,
    machines: 1,
    connections: 20,
  });
  expect(service.cores).toBeLessThan(0.1);
});

it('each stage follows from what the one before cannot carry', () => {
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

it('what asks for more machines is named', () => {
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

it('a record in a small upload carries more of what an upload costs', () => {
  expect(recordCost(1).service).toBe(costs.record.service + costs.upload.service);
  expect(recordCost(1_000).service).toBeLessThan(recordCost(10).service);
  // A batch holds 1,000 records, and PostgreSQL pays for each batch.
  expect(recordCost(5_000).postgres).toBeCloseTo(recordCost(1_000).postgres);
  expect(recordCost(1_001).postgres).toBeGreaterThan(recordCost(1_000).postgres);
});

it('an interaction costs what was measured at its rate, and something between at rates between', () => {
  for (const { perSecond, one } of costs.interactions) expect(interactionCost(perSecond, 1)).toEqual(one);
  const [slow, fast] = [costs.interactions[1], costs.interactions[2]];
  const between = interactionCost(1_000, 1).service;
  expect(between).toBeLessThan(slow.one.service);
  expect(between).toBeGreaterThan(fast.one.service);
  expect(interactionCost(0, 1)).toEqual(costs.interactions[0].one);
  expect(interactionCost(1e6, 1)).toEqual(costs.interactions.at(-1)?.one);
  expect(interactionCost(2_000, 1e6).postgres).toBeCloseTo(fast.many.postgres, 1);
});
