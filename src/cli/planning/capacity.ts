import { limits } from '../../limits.ts';
import { settings } from '../../settings.ts';
import type { Cost, CostPart, Costs, InteractionCost } from './costs.ts';
import { measuredCosts } from './measured-costs.ts';

/** The load to plan for. */
export interface Demand {
  readonly recordsPerSecond: number;
  readonly recordsPerRequest: number;
  readonly interactionsPerSecond: number;
  readonly organisations: number;
  /** Days of new data that must fit on disk. */
  readonly retentionDays: number;
}

/** The stages of docs/scaling.md that follow from a load; a standby and regions do not. */
export type Stage = 'one process' | 'many processes' | 'pooler' | 'Citus';

export interface Capacity {
  readonly stage: Stage;
  readonly service: { readonly cores: number; readonly processes: number };
  readonly postgres: {
    readonly cores: number;
    /** One, or the workers of a Citus cluster, without its coordinator. */
    readonly machines: number;
    /** On Citus: at least two per worker, so that one can be moved away. */
    readonly shards: number;
    /** What determines the number of machines. */
    readonly machinesFor: 'CPU' | 'disk';
    /** The primary keys of all records; clients' ids hit them at random. */
    readonly keyBytes: number;
  };
  /** The most connections that the processes open to PostgreSQL, its pooler or its coordinator. */
  readonly connections: number;
  readonly connectionsPerWorker: number;
  readonly disk: readonly DiskPart[];
}

export interface DiskPart {
  readonly name: 'records' | 'interactions' | 'receipts' | 'change log' | 'WAL archive';
  readonly perDay: number;
  readonly days: number;
  readonly kept: number;
}

/** What a plan assumes about machines and their operation; printed with every plan. */
export const assumed = {
  /** The rest of each core is for peaks, maintenance, backups, and the work of a machine that is down. */
  coreShareMax: 0.6,
  coresPerMachine: 32,
  /** A larger disk takes too long to restore: 16 TB are nine hours at 500 MB/s. */
  diskBytesPerMachine: 16e12,
  /** Each session is a PostgreSQL process; beyond some hundreds their overhead keeps growing. */
  sessionsMax: 200,
  /** PgBouncer's pool as docs/operating.md sets it up. */
  poolerSessions: 40,
  /** The default of `distribute`. */
  shards: 32,
  /** How long the write-ahead log is kept beside base backups. */
  walKeptDays: 7,
  /** Numbering a change leaves a dead row, until autovacuum comes when a fifth of the rows are dead. */
  deadRows: 1.2,
} as const;

const secondsPerDay = 86_400;
const micro = 1e-6;
/**
 * On Citus, uploads and interactions connect to the worker that has the organisation; everything else, and
 * /health/ready, to the coordinator.
 */
const connectionsForRequests = settings.databaseConnectionsMax[1].fallback;
const connectionsPerProcess =
  connectionsForRequests +
  limits.interactionWritersMax +
  limits.keyConnectionsMax +
  limits.choreConnectionsMax +
  limits.leaseConnectionsMax +
  1;
const connectionsPerWorker = connectionsForRequests + limits.interactionWritersPerNodeMax;

/**
 * With `cpu`, everything takes that many times the CPU of `costs`, as on a machine of another speed. How many interactions
 * share a commit stays the same: a process on a slower machine gets fewer, and takes longer to write them.
 */
export function planCapacity(demand: Demand, costs: Costs = measuredCosts, cpu = 1): Capacity {
  const measured = serviceOf(demand, costs);
  const service = {
    cores: cpu * measured.cores,
    processes:
      cpu === 1 ? measured.processes : Math.max(1, Math.ceil((cpu * measured.cores) / assumed.coreShareMax)),
  };
  const disk = diskOf(demand, costs, measured.processes);
  const { uploads, interactions } = coresFor(demand, costs, measured.processes, 'postgres');
  const connections = service.processes * connectionsPerProcess;
  const isPooled = connections > assumed.sessionsMax;
  const cores = cpu * (uploads + interactions) * (isPooled ? costs.throughPooler : 1);
  const isSpread = machinesFor(cores, disk.kept).machines > 1;
  const { record, interaction, interactionOfOne } = costs.onCitus;
  const onCitus = demand.organisations === 1 ? interactionOfOne : interaction;
  const spreadCores = cpu * (uploads * record + interactions * onCitus);
  const needed = isSpread ? spreadCores : cores;
  const machines = machinesFor(needed, disk.kept);
  return {
    stage: stageOf(isSpread, isPooled, service.processes),
    service,
    postgres: {
      cores: needed,
      ...machines,
      shards: Math.max(assumed.shards, 2 ** Math.ceil(Math.log2(2 * machines.machines))),
      keyBytes: demand.recordsPerSecond * secondsPerDay * demand.retentionDays * costs.stored.record.key,
    },
    connections,
    connectionsPerWorker: service.processes * connectionsPerWorker,
    disk: disk.parts,
  };
}

/**
 * How far the CPU that a load takes can be from `measuredCosts`: they were measured on another machine, and CPU time for the
 * same work varied up to fourfold between hours on one that is shared.
 */
export const cpuRange = { least: 0.5, most: 2.7 } as const;

function stageOf(isSpread: boolean, isPooled: boolean, processes: number): Stage {
  if (isSpread) return 'Citus';
  if (isPooled) return 'pooler';
  return processes > 1 ? 'many processes' : 'one process';
}

/** One process per core: its event loop is saturated before its other threads. */
function serviceOf(demand: Demand, costs: Costs): Capacity['service'] {
  const coresOf = (processes: number) => {
    const { uploads, interactions } = coresFor(demand, costs, processes, 'service');
    return uploads + interactions;
  };
  // The more processes share the interactions, the fewer share a commit, so the total CPU grows with each process.
  let processes = 1;
  for (let needed = 1; needed > 0; ) {
    needed = Math.ceil(coresOf(processes) / assumed.coreShareMax) - processes;
    processes += Math.max(0, needed);
  }
  return { cores: coresOf(processes), processes };
}

function coresFor(
  demand: Demand,
  costs: Costs,
  processes: number,
  part: 'service' | 'postgres',
): { uploads: number; interactions: number } {
  const { recordsPerSecond, recordsPerRequest, interactionsPerSecond } = demand;
  const interaction = interactionCostIn(demand, costs, processes)[part];
  const indexing = part === 'postgres' ? costs.indexing.postgres : 0;
  return {
    uploads: micro * recordsPerSecond * recordCost(recordsPerRequest, costs)[part],
    interactions: micro * interactionsPerSecond * (interaction + indexing),
  };
}

/** Interactions that arrive while their process is busy with uploads are written together, as if they came faster. */
function interactionCostIn(demand: Demand, costs: Costs, processes: number): Cost {
  const { recordsPerSecond, recordsPerRequest, interactionsPerSecond, organisations } = demand;
  const uploadCores = micro * recordsPerSecond * recordCost(recordsPerRequest, costs).service;
  const busyShare = Math.min(uploadCores / processes, assumed.coreShareMax);
  return interactionCost(interactionsPerSecond / processes / (1 - busyShare), organisations, costs);
}

/** What a record costs in uploads of `recordsPerRequest`. */
export function recordCost(recordsPerRequest: number, { upload, record }: Costs = measuredCosts): Cost {
  const perBatch = batchesIn(recordsPerRequest) / recordsPerRequest;
  return {
    service: record.service + upload.service / recordsPerRequest,
    postgres: record.postgres + upload.postgres * perBatch,
    wal: record.wal + upload.wal * perBatch,
    changes: record.changes + upload.changes * perBatch,
  };
}

function batchesIn(recordsPerRequest: number): number {
  return Math.ceil(recordsPerRequest / limits.recordsPerBatch);
}

/**
 * What an interaction costs when one process takes `rate` a second. Between measured rates the cost is taken for a power of
 * the rate: how many share a commit grows with the rate, and the rest is divided among them. Between one organisation and
 * many it follows how many share a flush.
 */
export function interactionCost(rate: number, organisations: number, costs: Costs = measuredCosts): Cost {
  const { interactions: measured } = costs;
  const next = measured.findIndex(({ perSecond }) => perSecond >= rate);
  const above = measured.at(next) as InteractionCost; // The last one, at(-1), if none is above.
  const below = next <= 0 ? above : (measured[next - 1] as InteractionCost);
  const way =
    below === above ? 0 : Math.log(rate / below.perSecond) / Math.log(above.perSecond / below.perSecond);
  const apart = apartness(organisations);
  const costOf = (part: CostPart) => {
    const at = ({ one, many }: InteractionCost) => one[part] + apart * (many[part] - one[part]);
    return at(below) * (at(above) / at(below)) ** way;
  };
  return {
    service: costOf('service'),
    postgres: costOf('postgres'),
    wal: costOf('wal'),
    changes: costOf('changes'),
  };
}

/** 0 if all interactions of a flush belong to one organisation and share a statement, 1 if each has its own. */
function apartness(organisations: number): number {
  const rows = limits.interactionsAtOnce;
  const different = organisations * (1 - (1 - 1 / organisations) ** rows);
  return (different - 1) / (rows - 1);
}

function diskOf(
  demand: Demand,
  costs: Costs,
  processes: number,
): { parts: readonly DiskPart[]; kept: number } {
  const { recordsPerSecond, recordsPerRequest, interactionsPerSecond, retentionDays } = demand;
  const { record, interaction, receipt } = costs.stored;
  const batches = (recordsPerSecond / recordsPerRequest) * batchesIn(recordsPerRequest);
  const ofRecord = recordCost(recordsPerRequest, costs);
  const ofInteraction = interactionCostIn(demand, costs, processes);
  const both = (part: 'wal' | 'changes') =>
    recordsPerSecond * ofRecord[part] + interactionsPerSecond * ofInteraction[part];
  const part = (name: DiskPart['name'], bytesPerSecond: number, daysKept: number) => {
    const perDay = bytesPerSecond * secondsPerDay;
    const days = Math.min(retentionDays, daysKept);
    return { name, perDay, days, kept: perDay * days };
  };
  const tables = [
    part('records', recordsPerSecond * (record.table + record.key), retentionDays),
    part('interactions', interactionsPerSecond * (interaction.written + interaction.indexes), retentionDays),
    part('receipts', batches * receipt, limits.receiptsKeptDays + 7), // Dropped by the week.
    part('change log', both('changes') * assumed.deadRows, limits.changesKeptDays + 1), // Dropped by the day.
  ];
  const wal = both('wal') + interactionsPerSecond * costs.indexing.wal;
  return {
    parts: [...tables, part('WAL archive', wal, assumed.walKeptDays)],
    kept: tables.reduce((sum, { kept }) => sum + kept, 0),
  };
}

function machinesFor(cores: number, diskBytes: number): { machines: number; machinesFor: 'CPU' | 'disk' } {
  const forCpu = Math.ceil(cores / (assumed.coresPerMachine * assumed.coreShareMax));
  const forDisk = Math.ceil(diskBytes / assumed.diskBytesPerMachine);
  return { machines: Math.max(1, forCpu, forDisk), machinesFor: forDisk > forCpu ? 'disk' : 'CPU' };
}
