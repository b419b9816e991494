import { connectionsOf } from '../../src/cli/serve.ts';
import { limits } from '../../src/limits.ts';
import { settings } from '../../src/settings.ts';
import type { Cost, CostPart, Costs, InteractionCost } from './costs.ts';
import { measuredCosts } from './measured-costs.ts';

/** The load to plan for. */
export interface Demand {
  readonly recordsPerSecond: number;
  readonly recordsPerRequest: number;
  readonly interactionsPerSecond: number;
  readonly organisations: number;
  /** How many days of new data must fit on disk. */
  readonly retentionDays: number;
}

/**
 * The stages in docs/operating/scaling.md that depend on the load. Adding a standby or a region does not depend on it.
 */
export type Stage = 'one process' | 'many processes' | 'pooler' | 'Citus';

export interface Capacity {
  readonly stage: Stage;
  readonly service: { readonly cores: number; readonly processes: number };
  readonly postgres: {
    readonly cores: number;
    /** The number of machines: 1, or the number of Citus workers without the coordinator. */
    readonly machines: number;
    /** On Citus, there are at least two shards per worker, so that one of them can be moved away. */
    readonly shards: number;
    /** The resource that determines the number of machines. */
    readonly machinesFor: 'CPU' | 'disk';
    /** The size of all records' primary keys. Clients choose the ids, so the keys are accessed in random order. */
    readonly keyBytes: number;
  };
  /** The maximum number of connections that the processes open to PostgreSQL, its pooler or its coordinator. */
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

/** The assumptions about machines and their operation. docs/operating/scaling.md lists them. */
export const assumed = {
  /**
   * The maximum share of each core to use. The rest is reserved for peaks, maintenance, backups, and a failed machine's
   * load.
   */
  coreShareMax: 0.6,
  coresPerMachine: 32,
  /** A larger disk would take too long to restore: 16 TB already takes nine hours at 500 MB/s. */
  diskBytesPerMachine: 16e12,
  /** Each session is a PostgreSQL process, and with more than a few hundred processes the overhead keeps growing. */
  sessionsMax: 200,
  /** The PgBouncer pool size from docs/operating/setup.md. */
  poolerSessions: 40,
  /** The number of shards that the `distribute` command creates by default. */
  shards: 32,
  /** How long the write-ahead log is kept, in addition to base backups. */
  walKeptDays: 7,
  /** Numbering a change leaves a dead row, and autovacuum runs only when a fifth of the rows are dead. */
  deadRows: 1.2,
} as const;

const secondsPerDay = 86_400;
const micro = 1e-6;
/**
 * On Citus, uploads and interactions connect to the worker that owns the organisation. Everything else, including
 * /health/ready, connects to the coordinator.
 */
const connectionsForRequests = settings.databaseConnectionsMax[1].fallback;
const connectionsPerProcess = Object.values(
  connectionsOf({ databaseConnectionsMax: connectionsForRequests }),
).reduce((sum, count) => sum + count);
const connectionsPerWorker = connectionsForRequests + limits.interactionWritersPerNodeMax;

/**
 * Plans the capacity for a load. `cpu` scales all CPU costs in `costs`, for a machine of a different speed. It does not
 * change the number of interactions that share a commit: a process on a slower machine receives fewer interactions, but
 * also takes longer to write them.
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
 * The range by which CPU costs may differ from `measuredCosts`, which were measured on another machine. On a shared
 * machine, the CPU time for the same work varied up to fourfold from hour to hour.
 */
export const cpuRange = { least: 0.5, most: 2.7 } as const;

function stageOf(isSpread: boolean, isPooled: boolean, processes: number): Stage {
  if (isSpread) return 'Citus';
  if (isPooled) return 'pooler';
  return processes > 1 ? 'many processes' : 'one process';
}

/**
 * Estimates the service's cores. There is one process per core, because a process's event loop saturates before its
 * other threads.
 */
function serviceOf(demand: Demand, costs: Costs): Capacity['service'] {
  const coresOf = (processes: number) => {
    const { uploads, interactions } = coresFor(demand, costs, processes, 'service');
    return uploads + interactions;
  };
  // The more processes there are, the fewer interactions share a commit, so each additional process increases the total
  // CPU use.
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

/**
 * Returns the cost of an interaction. Interactions that arrive while their process is busy with uploads are written
 * together, as if they had arrived at a higher rate.
 */
function interactionCostIn(demand: Demand, costs: Costs, processes: number): Cost {
  const { recordsPerSecond, recordsPerRequest, interactionsPerSecond, organisations } = demand;
  const uploadCores = micro * recordsPerSecond * recordCost(recordsPerRequest, costs).service;
  const busyShare = Math.min(uploadCores / processes, assumed.coreShareMax);
  return interactionCost(interactionsPerSecond / processes / (1 - busyShare), organisations, costs);
}

/** Returns the cost of a record in uploads of `recordsPerRequest` records. */
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
 * Returns the cost of an interaction if one process receives `rate` interactions per second. Between measured rates,
 * the cost is interpolated as a power of the rate, because more interactions share a commit at higher rates, which
 * spreads the fixed cost. Between one organisation and many, the cost depends on how many organisations share a flush.
 */
export function interactionCost(rate: number, organisations: number, costs: Costs = measuredCosts): Cost {
  const { interactions: measured } = costs;
  const next = measured.findIndex(({ perSecond }) => perSecond >= rate);
  const above = measured.at(next) as InteractionCost; // If no measured rate is higher, this is at(-1), the last one.
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

/**
 * Returns 0 if all interactions in a flush belong to one organisation and share a statement, and 1 if each belongs to a
 * different organisation.
 */
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
    part('receipts', batches * receipt, limits.receiptsKeptDays + 7), // Receipts are dropped weekly.
    part('change log', both('changes') * assumed.deadRows, limits.changesKeptDays + 1), // Changes are dropped daily.
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
