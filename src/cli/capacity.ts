import { limits } from '../limits.ts';
import { settings } from '../settings.ts';
import { measuredCosts as costs } from './measured-costs.ts';

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
  readonly name: string;
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
} as const;

const secondsPerDay = 86_400;
const micro = 1e-6;
/**
 * On Citus, uploads and interactions connect to the worker that has the organisation; everything else, and
 * /health/ready, to the coordinator.
 */
const connectionsForData = settings.databaseConnectionsMax[1].fallback + limits.interactionWritersMax;
const connectionsPerProcess =
  connectionsForData + limits.keyConnectionsMax + limits.maintenanceConnectionsMax + 1;

export function planCapacity(demand: Demand): Capacity {
  const disk = diskOf(demand);
  const service = serviceOf(demand);
  const { uploads, interactions } = coresFor(demand, service.processes, 'postgres');
  const connections = service.processes * connectionsPerProcess;
  const isPooled = connections > assumed.sessionsMax;
  const cores = (uploads + interactions) * (isPooled ? costs.throughPooler : 1);
  const isSpread = machinesFor(cores, disk.kept).machines > 1;
  const spreadCores = uploads * costs.onCitus.record + interactions * costs.onCitus.interaction;
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
    connectionsPerWorker: service.processes * connectionsForData,
    disk: disk.parts,
  };
}

function stageOf(isSpread: boolean, isPooled: boolean, processes: number): Stage {
  if (isSpread) return 'Citus';
  if (isPooled) return 'pooler';
  return processes > 1 ? 'many processes' : 'one process';
}

/** One process per core: its event loop is saturated before its other threads. */
function serviceOf(demand: Demand): Capacity['service'] {
  const coresOf = (processes: number) => {
    const { uploads, interactions } = coresFor(demand, processes, 'service');
    return uploads + interactions;
  };
  // The more processes share the interactions, the fewer share a commit, so the total CPU grows with each process.
  let processes = 1;
  while (coresOf(processes) > processes * assumed.coreShareMax) processes++;
  return { cores: coresOf(processes), processes };
}

function coresFor(demand: Demand, processes: number, part: Part): { uploads: number; interactions: number } {
  const { recordsPerSecond, recordsPerRequest, interactionsPerSecond, organisations } = demand;
  const interaction = interactionCost(interactionsPerSecond / processes, organisations);
  return {
    uploads: micro * recordsPerSecond * recordCost(recordsPerRequest)[part],
    interactions:
      micro * interactionsPerSecond * (interaction[part] + (part === 'postgres' ? costs.indexing : 0)),
  };
}

type Part = 'service' | 'postgres';

/** Microseconds of CPU per record, in uploads of `recordsPerRequest`. */
export function recordCost(recordsPerRequest: number): Record<Part, number> {
  const { upload, record } = costs;
  return {
    service: record.service + upload.service / recordsPerRequest,
    postgres: record.postgres + (upload.postgres * batchesIn(recordsPerRequest)) / recordsPerRequest,
  };
}

function batchesIn(recordsPerRequest: number): number {
  return Math.ceil(recordsPerRequest / limits.recordsPerBatch);
}

/**
 * Microseconds of CPU per interaction when one process takes `rate` a second. Interpolated between measured rates by
 * the logarithm of the rate, and between one organisation and many by how many share a flush.
 */
export function interactionCost(rate: number, organisations: number): Record<Part, number> {
  const { interactions: measured } = costs;
  const next = measured.findIndex(({ perSecond }) => perSecond >= rate);
  const above = measured.at(next) as Measured; // The last one, at(-1), if none is above.
  const below = next <= 0 ? above : (measured[next - 1] as Measured);
  const way =
    below === above ? 0 : Math.log(rate / below.perSecond) / Math.log(above.perSecond / below.perSecond);
  const apart = apartness(organisations);
  const costOf = (part: Part) => {
    const at = ({ one, many }: Measured) => one[part] + apart * (many[part] - one[part]);
    return at(below) + way * (at(above) - at(below));
  };
  return { service: costOf('service'), postgres: costOf('postgres') };
}

type Measured = (typeof costs.interactions)[number];

/** 0 if all interactions of a flush belong to one organisation and share a statement, 1 if each has its own. */
function apartness(organisations: number): number {
  const rows = limits.interactionsAtOnce;
  const different = organisations * (1 - (1 - 1 / organisations) ** rows);
  return (different - 1) / (rows - 1);
}

function diskOf(demand: Demand): { parts: readonly DiskPart[]; kept: number } {
  const { recordsPerSecond, recordsPerRequest, interactionsPerSecond, retentionDays } = demand;
  const { record, interaction, receipt } = costs.stored;
  const batches = (recordsPerSecond / recordsPerRequest) * batchesIn(recordsPerRequest);
  const part = (name: string, bytesPerSecond: number, days: number) => {
    const perDay = bytesPerSecond * secondsPerDay;
    return { name, perDay, days, kept: perDay * days };
  };
  const receiptDays = Math.min(retentionDays, limits.receiptsKeptDays + 7); // Dropped by the week.
  const tables = [
    part('records', recordsPerSecond * (record.table + record.key), retentionDays),
    part('interactions', interactionsPerSecond * (interaction.written + interaction.indexes), retentionDays),
    part('receipts', batches * receipt, receiptDays),
  ];
  const wal =
    recordsPerSecond * costs.wal.record +
    batches * costs.wal.batch +
    interactionsPerSecond * costs.wal.interaction;
  return {
    parts: [...tables, part('WAL archive', wal, Math.min(retentionDays, assumed.walKeptDays))],
    kept: tables.reduce((sum, { kept }) => sum + kept, 0),
  };
}

function machinesFor(cores: number, diskBytes: number): { machines: number; machinesFor: 'CPU' | 'disk' } {
  const forCpu = Math.ceil(cores / (assumed.coresPerMachine * assumed.coreShareMax));
  const forDisk = Math.ceil(diskBytes / assumed.diskBytesPerMachine);
  return { machines: Math.max(1, forCpu, forDisk), machinesFor: forDisk > forCpu ? 'disk' : 'CPU' };
}
