import {
  Counter,
  collectDefaultMetrics,
  Gauge,
  type GaugeConfiguration,
  Histogram,
  Registry,
} from 'prom-client';
import { type DescribedMetric, described } from './metric-definitions.ts';
import { statementLabel } from './statement-label.ts';

export interface Sources {
  readonly pools: Readonly<Record<string, PoolState>>;
  /** The number of requests in the fair queue in front of the pool. */
  readonly waitingForConnection: () => number;
  readonly interactionsWaiting: () => number;
  readonly isReady: () => Promise<boolean>;
  readonly stalledMs: () => Readonly<Record<string, number>>;
  readonly bytesInFlight: () => number;
  readonly bytesInFlightMax: number;
  readonly keys: () => { readonly hits: number; readonly misses: number; readonly changesAgeMs: number };
  readonly isLeader: () => boolean;
  /** Returns undefined if Redis is not configured. */
  readonly isRedisUp: () => boolean | undefined;
  readonly certificateExpires: () => Date | undefined;
}

interface PoolState {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly waitingCount: number;
  readonly options: { readonly max: number };
}

/** The fields of a request's log line that are counted. */
export interface AnsweredRequest {
  /** Undefined if the request did not reach an operation. */
  readonly operation_id: string | undefined;
  readonly status: number;
  readonly code: string | undefined;
  readonly dry_run: true | undefined;
  readonly counts: object | undefined;
}

/** The state of one kind of stepwise maintenance work, summed over all organisations. */
export interface WaitingWork {
  readonly waiting: number;
  /** 0 if nothing is waiting. */
  readonly oldestSeconds: number;
}

/** Totals over all organisations, counted by the leader. */
export interface Counted {
  readonly rejectionsOpen?: number;
  readonly partitionsAheadDays?: number;
  readonly reportLagSeconds?: number;
  readonly lakeLagSeconds?: number;
  readonly keysExpiring?: number;
  readonly logBackupAgeSeconds?: number;
  readonly work?: Readonly<Record<string, WaitingWork>>;
  readonly quotas?: { readonly near: number; readonly full: number };
}

interface Exposition {
  readonly type: string;
  readonly text: string;
}

type Label = string | number;

const countedByLeader = [
  described.partitionsAhead,
  described.rejectionsOpen,
  described.keysExpiring,
  described.logBackupAge,
  described.workWaiting,
  described.workOldest,
  described.quotasNearlyUsed,
  described.quotasUsedUp,
  described.lakeLag,
];

export class Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<DescribedMetric, Counter>();
  readonly #gauges = new Map<DescribedMetric, Gauge>();
  readonly #histograms = new Map<DescribedMetric, Histogram>();
  #reported = { hits: 0, misses: 0 };

  constructor(version: string) {
    const registers = [this.#registry];
    for (const metric of Object.values<DescribedMetric>(described)) {
      const { name, help, labels: labelNames } = metric;
      const options = { name, help, labelNames: [...labelNames], registers };
      if (metric.kind === 'counter') this.#counters.set(metric, new Counter(options));
      else if (metric.kind === 'gauge') this.#gauges.set(metric, emptyGauge(options));
      else this.#histograms.set(metric, new Histogram({ ...options, buckets: [...(metric.buckets ?? [])] }));
    }
    collectDefaultMetrics({ register: this.#registry });
    this.#set(described.buildInfo, 1, version, process.version);
  }

  answered(request: AnsweredRequest, durationMs: number): void {
    const { operation_id: operation = 'none', status, code, dry_run, counts } = request;
    // A probe that finds a process not ready is not a failed request. If such probes counted as failed requests, half
    // of the requests would be errors while only probes arrive.
    if (operation.startsWith('health-')) return;
    this.#count(described.requests, 1, operation, status);
    this.#observe(described.requestSeconds, durationMs / 1_000, operation);
    if (code !== undefined) this.#count(described.errors, 1, code);
    if (!counts || dry_run) return;
    for (const [outcome, count] of Object.entries(counts as Record<string, number>))
      if (count > 0 && outcome !== 'received') this.#count(described.records, count, operation, outcome);
  }

  batchStored(durationMs: number): void {
    this.#observe(described.batchSeconds, durationMs / 1_000);
  }

  statement(name: string, durationMs: number): void {
    this.#observe(described.statementSeconds, durationMs / 1_000, statementLabel(name));
  }

  flushed(rows: number): void {
    this.#observe(described.flushRows, rows);
  }

  choreDone(chore: string): void {
    this.#set(described.choreSuccess, Date.now() / 1_000, chore);
  }

  choreFailed(chore: string): void {
    this.#count(described.choreFailures, 1, chore);
  }

  counted(counted: Counted): void {
    const { rejectionsOpen, partitionsAheadDays, reportLagSeconds, keysExpiring } = counted;
    const { work = {}, quotas, lakeLagSeconds, logBackupAgeSeconds } = counted;
    if (rejectionsOpen !== undefined) this.#set(described.rejectionsOpen, rejectionsOpen);
    if (partitionsAheadDays !== undefined) this.#set(described.partitionsAhead, partitionsAheadDays);
    if (reportLagSeconds !== undefined) this.#set(described.reportLag, reportLagSeconds);
    if (keysExpiring !== undefined) this.#set(described.keysExpiring, keysExpiring);
    if (lakeLagSeconds !== undefined) this.#set(described.lakeLag, lakeLagSeconds);
    if (logBackupAgeSeconds !== undefined) this.#set(described.logBackupAge, logBackupAgeSeconds);
    for (const [kind, { waiting, oldestSeconds }] of Object.entries(work)) {
      this.#set(described.workWaiting, waiting, kind);
      this.#set(described.workOldest, oldestSeconds, kind);
    }
    if (quotas !== undefined) {
      this.#set(described.quotasNearlyUsed, quotas.near);
      this.#set(described.quotasUsedUp, quotas.full);
    }
  }

  lakeExposition(): Promise<Exposition> {
    return this.#text();
  }

  async exposition(sources: Sources): Promise<Exposition> {
    const isReady = await sources.isReady();
    this.#set(described.ready, isReady ? 1 : 0);
    this.#read(sources);
    return this.#text();
  }

  async #text(): Promise<Exposition> {
    return { type: this.#registry.contentType, text: await this.#registry.metrics() };
  }

  #read(sources: Sources): void {
    for (const [name, { totalCount, idleCount, waitingCount, options }] of Object.entries(sources.pools)) {
      this.#set(described.poolInUse, totalCount - idleCount, name);
      this.#set(described.poolMax, options.max, name);
      this.#set(described.poolWaiting, waitingCount, name);
    }
    this.#set(described.poolWaiting, sources.waitingForConnection(), 'requests');
    const { hits, misses, changesAgeMs } = sources.keys();
    this.#count(described.keyLookUps, hits - this.#reported.hits, 'hit');
    this.#count(described.keyLookUps, misses - this.#reported.misses, 'miss');
    this.#reported = { hits, misses };
    this.#set(described.keyChangesAge, changesAgeMs / 1_000);
    this.#set(described.interactionsWaiting, sources.interactionsWaiting());
    for (const [part, ms] of Object.entries(sources.stalledMs()))
      this.#set(described.stalled, ms / 1_000, part);
    this.#set(described.bytesInFlight, sources.bytesInFlight());
    this.#set(described.bytesInFlightMax, sources.bytesInFlightMax);
    this.#set(described.leader, sources.isLeader() ? 1 : 0);
    // Values that were counted while this process was the leader are out of date.
    if (!sources.isLeader()) for (const metric of countedByLeader) this.#remove(metric);
    const isRedisUp = sources.isRedisUp();
    if (isRedisUp !== undefined) this.#set(described.redisUp, isRedisUp ? 1 : 0);
    const expires = sources.certificateExpires();
    if (expires) this.#set(described.certificateExpires, expires.getTime() / 1_000);
  }

  #count(metric: DescribedMetric, by: number, ...labels: Label[]): void {
    this.#counters.get(metric)?.inc(labelled(metric, labels), by);
  }

  #set(metric: DescribedMetric, value: number, ...labels: Label[]): void {
    this.#gauges.get(metric)?.set(labelled(metric, labels), value);
  }

  #remove(metric: DescribedMetric): void {
    const gauge = this.#gauges.get(metric);
    // The library's reset sets a gauge without labels to 0 instead of removing it.
    if (metric.labels.length === 0) gauge?.remove();
    else gauge?.reset();
  }

  #observe(metric: DescribedMetric, value: number, ...labels: Label[]): void {
    this.#histograms.get(metric)?.observe(labelled(metric, labels), value);
  }
}

/** The library sets a gauge without labels to 0, which would raise a false alarm about the certificate's expiry. */
function emptyGauge(options: GaugeConfiguration<string>): Gauge {
  const gauge = new Gauge(options);
  if (options.labelNames?.length === 0) gauge.remove();
  return gauge;
}

function labelled({ labels }: DescribedMetric, values: readonly Label[]): Record<string, Label> {
  const named: Record<string, Label> = {};
  for (const [at, label] of labels.entries()) named[label] = values[at] ?? '';
  return named;
}
