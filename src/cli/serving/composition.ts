import { setTimeout as sleep } from 'node:timers/promises';
import { ActivityCounts } from '../../activity/activity-counts.ts';
import { BytesInFlight } from '../../admission/bytes-in-flight.ts';
import { FailedKeys } from '../../admission/failed-keys.ts';
import { FairQueue } from '../../admission/fair-queue.ts';
import { RequestLimits } from '../../admission/request-limits.ts';
import type { SharedCounts } from '../../admission/shared-counts.ts';
import { ChangeWatch } from '../../changes/change-watch.ts';
import type { Config } from '../../config.ts';
import type { Parts } from '../../http/operation/operation.ts';
import type { StallingPart } from '../../http/routes/health.ts';
import type { Certificate } from '../../http/server/certificate.ts';
import { InteractionWriter } from '../../interactions/interaction-writer.ts';
import { KnownReferences } from '../../interactions/known-ids.ts';
import { KnownKeys } from '../../keys/authenticate.ts';
import { ConsoleSessions } from '../../keys/console-sessions.ts';
import { SignedCursors } from '../../keys/signed-cursors.ts';
import { LakeReader } from '../../lake/lake-reader.ts';
import { LakePlace } from '../../lake/store/lake-place.ts';
import { openStore } from '../../lake/store/lake-store.ts';
import { limits } from '../../limits.ts';
import type { Maintenance } from '../../maintenance/maintenance.ts';
import type { Metrics, Sources } from '../../metrics/metrics.ts';
import { Detours } from '../../postgres/cluster/node-detours.ts';
import { NodePools, OwningNodes, SharedPool } from '../../postgres/cluster/node-pools.ts';
import { Readiness } from '../../postgres/health/readiness.ts';
import { Requirements } from '../../postgres/health/requirements.ts';
import {
  FileDescriptors,
  ServerState,
  type Stalling,
  StallWatch,
} from '../../postgres/health/server-state.ts';
import { Workers } from '../../postgres/health/workers.ts';
import { createPool, type OwnPool, type StatementEvents } from '../../postgres/pool.ts';
import { Suppressions } from '../../suppression/suppressions.ts';
import type { Traces } from '../../traces/traces.ts';
import { UploadChecker } from '../../uploads/read/upload-checker.ts';

/** A long page occupies the event loop for tens of milliseconds. With ten at a time, every other request would wait. */
const turnsOfLongReads = {
  atOnce: 2,
  perOrganisationMax: 1,
  waitingMax: limits.connectionsWaitingMax,
  waitMs: limits.connectionWaitMs,
};

/** Interactions and keys have their own pools, so that uploads cannot starve them. */
export function createParts(
  config: Config,
  pool: OwnPool,
  sharedCounts?: SharedCounts,
  metrics?: Metrics,
  traces?: Traces,
): Parts & {
  readonly pools: Readonly<Record<string, NodePools | OwnPool>>;
  readonly owners: OwningNodes | undefined;
  readonly detours: Detours;
  readonly requirements: Requirements;
  readonly place: LakePlace | undefined;
} {
  const keyPool = createKeyPool(config, metrics);
  // Behind a pooler, the workers' addresses are unknown. With the key pool, uploads cannot delay the shard map.
  const owners = config.databasePooler ? undefined : new OwningNodes(keyPool, 'tenants');
  const forRequests = { plansOnce: true, statements: statementEvents(metrics, traces) };
  const ofWriter = { ...config, databaseConnectionsMax: limits.interactionWritersMax };
  const suppressions = new Suppressions(config.erasureKeys);
  const references = new KnownReferences(suppressions);
  const writerPool = createPool(ofWriter, () => references.forgetKnown(), forRequests);
  const detours = new Detours();
  const writerPools = new NodePools(
    writerPool,
    owners,
    (node) => createPool(at(node, ofWriter), () => references.forgetKnown(), forRequests),
    { detours },
  );
  const server = new ServerState(keyPool);
  const requirements = requirementsOf(keyPool, server, suppressions);
  const onFlush = (rows: number) => metrics?.flushed(rows);
  const writer = new InteractionWriter(writerPools, references, onFlush, traces);
  const checker = new UploadChecker();
  const cursors = new SignedCursors(keyPool);
  const keys = new KnownKeys(
    keyPool,
    () => {
      references.forgetKnown();
      suppressions.forget();
      cursors.forget();
    },
    (changed) => changeWatch.wake(changed),
  );
  const pools = new NodePools(pool, owners, (node) => createPool(at(node, config), () => {}, forRequests), {
    openMax: config.databaseConnectionsMax,
    detours,
  });
  const sharedPool = new SharedPool(pools);
  const changeWatch = new ChangeWatch(sharedPool);
  const { lake, place } = createLake(config, keyPool);
  const uploadsStall = new StallWatch();
  const stalling = {
    uploads: uploadsStall,
    interactions: writer.stallWatch,
    connections: sharedPool,
    keys,
  } satisfies Record<StallingPart, Stalling>;
  const readiness = new Readiness(config, stalling, requirements);
  return {
    config,
    metrics,
    traces,
    activity: new ActivityCounts(),
    pools: { requests: pools, interactions: writerPools, keys: keyPool },
    pool: sharedPool,
    keys,
    sessions: new ConsoleSessions(keyPool),
    owners,
    detours,
    requirements,
    server,
    failedKeys: new FailedKeys(config.failedKeysPerMinuteMax),
    requestLimits: new RequestLimits(config, sharedCounts),
    bytesInFlight: new BytesInFlight(config),
    writer,
    references,
    longReads: new FairQueue(turnsOfLongReads),
    checker,
    cursors,
    changeWatch,
    lake,
    place,
    readiness,
    uploadsStall,
    async close() {
      await Promise.all([checker.close(), writer.close(), pools.close(), readiness.close(), lake?.close()]);
      await Promise.all([writerPool.end(), keyPool.end()]);
    },
  };
}

function requirementsOf(pool: OwnPool, server: ServerState, suppressions: Suppressions): Requirements {
  return new Requirements([server, new Workers(pool), suppressions.requirement(pool), new FileDescriptors()]);
}

function createKeyPool(config: Config, metrics: Metrics | undefined): OwnPool {
  return createPool(
    {
      ...config,
      databaseConnectionsMax: limits.keyConnectionsMax,
      databaseTimeoutMs: Math.min(config.databaseTimeoutMs, limits.keyChangesIntervalMs),
    },
    () => {},
    // Requests share a key lookup, so a lookup does not belong to any request's trace.
    { statements: statementEvents(metrics, undefined) },
  );
}

function createLake({ lakeUrl }: Config, pool: OwnPool) {
  if (lakeUrl === null) return { lake: undefined, place: undefined };
  const store = openStore(lakeUrl);
  const place = new LakePlace(pool, store, lakeUrl);
  return { lake: new LakeReader(store, place), place };
}

function at(node: string, config: Config): Config {
  const url = new URL(config.databaseUrl);
  url.host = node;
  return { ...config, databaseUrl: url.href };
}

export function statementEvents(
  metrics: Metrics | undefined,
  traces: Traces | undefined,
): StatementEvents | undefined {
  if (!metrics && !traces) return undefined;
  return {
    ended: metrics && ((name, durationMs) => metrics.statement(name, durationMs)),
    begin: traces && ((name) => traces.beginStatement(name)),
  };
}

export function sourcesOf(
  parts: ReturnType<typeof createParts>,
  maintenance: Maintenance,
  certificate: Certificate | undefined,
  shared: SharedCounts | undefined,
): Sources {
  let wasReady = false;
  return {
    // PostgreSQL may take longer to answer than a scrape should take. In that case, the previous result is reported.
    async isReady() {
      const asked = parts.readiness.isReady().then((isReady) => {
        wasReady = isReady;
      });
      await Promise.race([asked, sleep(limits.metricsReadyMs, undefined, { ref: false })]);
      return wasReady;
    },
    isRedisUp: () => shared && shared.client.status === 'ready',
    pools: parts.pools,
    waitingForConnection: () => parts.pool.waitingCount,
    interactionsWaiting: () => parts.writer.waiting,
    stalledMs: () => parts.readiness.stalledMs,
    bytesInFlight: () => parts.bytesInFlight.bytes,
    bytesInFlightMax: parts.config.bytesInFlightMax,
    keys: () => parts.keys.state,
    isLeader: () => maintenance.isLeader,
    certificateExpires: () => certificate?.expires,
  };
}
