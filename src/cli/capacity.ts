import { limits } from '../limits.ts';
import { settings } from '../settings.ts';
import { measuredCosts as costs } from './measured-costs.ts';

/** What a service is to take. */
export interface Demand {
  readonly recordsPerSecond: number;
  readonly recordsPerRequest: number;
  readonly interactionsPerSecond: number;
  readonly organisations: number;
  /** Days of new data to have room for. */
  readonly retentionDays: number;
}

/** The stages of docs/scaling.md that follow from a size; a standby and regions do not. */
export type Stage = 'one process' | 'many processes' | 'pooler' | 'Citus';

export interface Capacity {
  readonly stage: Stage;
  readonly service: { readonly cores: number; readonly processes: number };
  readonly postgres: {
    readonly cores: number;
    /** One, or the workers of a Citus cluster; its coordinator comes on top. */
    readonly machines: number;
    /** Of a Citus cluster: at least two for each worker, so that one can be moved away. */
    readonly shards: number;
    /** What asks for so many of them. */
    readonly machinesFor: 'CPU' | 'disk';
    /** The primary keys of all records, which clients' ids hit at random. */
    readonly keyBytes: number;
  };
  /** What the processes open at most to PostgreSQL, its pooler or its coordinator. */
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

/** What is assumed of machines and of whoever runs them; printed with every plan. */
export const assumed = {
  /** Of each core: the rest is for peaks, maintenance, backups, and for what another was doing that is down. */
  coreShareMax: 0.6,
  coresPerMachine: 32,
  /** More takes too long to restore: 16 TB are nine hours at 500 MB/s. */
  diskBytesPerMachine: 16e12,
  /** Each session is a process of PostgreSQL; beyond some hundreds it spends ever more on having them. */
  sessionsMax: 200,
  /** Of PgBouncer, as docs/operating.md sets it up. */
  poolerSessions: 40,
  /** As `distribute` makes them. */
  shards: 32,
  /** How long the write-ahead log is kept beside base backups. */
  walKeptDays: 7,
} as const;

const secondsPerDay = 86_400;
const micro = 1e-6;
/** Uploads and interactions go to the worker that has the organisation; the rest, with /health/ready, to one place. */
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

/** A process for each core: its one thread for requests is full before the others. */
function serviceOf(demand: Demand): Capacity['service'] {
  const coresOf = (processes: number) => {
    const { uploads, interactions } = coresFor(demand, processes, 'service');
    return uploads + interactions;
  };
  // The more processes share the interactions, the fewer of them share a commit, so that the sum grows with each.
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

/** Microseconds of CPU for a record in uploads of so many. */
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
 * Microseconds of CPU for an interaction where a process takes so many a second: between two measured rates by the
 * logarithm of the rate, between one organisation and many by how many share a flush.
 */
export function interactionCost(rate: number, organisations: number): Record<Part, number> {
  const { interactions: measured } = costs;
  const next = measured.findIndex(({ perSecond }) => perSecond >= rate);
  const above = measured.at(next) as Measured; // The last one where none is above.
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

/** 0 where all of a flush are of one organisation and share a statement, 1 where each has its own. */
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
  const receiptDays = Math.min(retentionDays, limits.receiptsKeptDays + 7); // They go by the week.
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
