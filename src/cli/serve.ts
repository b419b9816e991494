import { once } from 'node:events';
import { type AddressInfo, Server } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { FastifyBaseLogger, FastifyInstance, FastifyListenOptions } from 'fastify';
import { ActivityReport } from '../activity/report-activity.ts';
import { BytesInFlight } from '../admission/bytes-in-flight.ts';
import { type AdminConfig, type Config, isLoopback, readConfig, version } from '../config.ts';
import { buildAdminApp, buildApp } from '../http/app.ts';
import type { Parts } from '../http/operation/operation.ts';
import { Certificate, logged } from '../http/server/certificate.ts';
import { serveMetrics } from '../http/server/metrics-server.ts';
import { isDuckDbInstalled } from '../lake/table/parquet-writer.ts';
import { limits } from '../limits.ts';
import { choresOf, counting } from '../maintenance/chores.ts';
import { type Maintenance, startMaintenance } from '../maintenance/maintenance.ts';
import type { DetourLog } from '../postgres/cluster/node-detours.ts';
import { isLossOfWorker } from '../postgres/cluster/worker-errors.ts';
import { Reachability, type ReachabilityLog } from '../postgres/health/reachability.ts';
import { Readiness } from '../postgres/health/readiness.ts';
import { createPool, leavesOutcomeOpen } from '../postgres/pool.ts';
import type { Traces } from '../traces/traces.ts';
import { commandError, refuseArguments } from './arguments/help.ts';
import { checkAdminDatabase, checkDatabase } from './database/check-database.ts';
import { explaining, type Target } from './database/explain-database.ts';
import { createParts, sourcesOf, statementEvents } from './serving/composition.ts';
import { checkPlace } from './serving/lake-place.ts';

export async function run(args: string[]): Promise<void> {
  refuseArguments('serve', args);
  const config = readConfig();
  const service = await explaining(targetOf(config), () => startService(config));
  let isStopping = false;
  const stop = async (signal: string) => {
    // A second signal does not interrupt requests in progress.
    if (isStopping) return;
    isStopping = true;
    // Anything that is still open by now would never end, for example a connection that receives no more data.
    if (!(await service.stop(signal))) process.exit(1);
    // The exporter retries an unreachable collector for ten seconds, which would keep the process alive.
    setTimeout(() => process.exit(), limits.stopIntervalMs).unref();
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
  process.on('SIGUSR2', () => service.toggleDebug());
}

function targetOf({ databaseUrl: url }: Config): Target {
  return { setting: 'DATABASE_URL', url, role: 'intake_serve' };
}

export interface Service {
  /** A URL. */
  readonly address: string;
  /** Returns false if requests had to be interrupted. */
  stop(signal?: string): Promise<boolean>;
  toggleDebug(): void;
}

export async function startService(config: Config): Promise<Service> {
  const ends: (() => unknown)[] = [];
  /** Clean-up functions run in reverse order. */
  const onStop = (end: () => unknown) => void ends.unshift(end);
  const endAll = async () => {
    for (const end of ends) await end();
  };
  try {
    return await start(config, onStop, endAll);
  } catch (error) {
    await endAll();
    throw error;
  }
}

async function start(
  config: Config,
  onStop: (end: () => unknown) => void,
  endAll: () => Promise<void>,
): Promise<Service> {
  if (config.lakeUrl !== null && !isDuckDbInstalled())
    throw commandError(
      'LAKE_URL is set, but DuckDB, which reads the lake, is not installed. npm does not install its package for this ' +
        'platform if optional packages are omitted: install again with --include=optional',
    );
  const metrics =
    config.metricsPort > 0 ? new (await import('../metrics/metrics.ts')).Metrics(version()) : undefined;
  let log: FastifyBaseLogger | undefined;
  const traces = config.traces ? await startTraces(config.traces, () => log, onStop) : undefined;
  // The pool replaces idle connections that break. If that fails, the next request that needs one reports the error.
  const pool = createPool(config, () => {}, {
    plansOnce: true,
    statements: statementEvents(metrics, traces),
  });
  onStop(() => pool.end());
  const { warnings, away } = await checkDatabase(pool, targetOf(config), config.databasePooler);
  const certificate = config.tls ? new Certificate(config.tls) : undefined;
  // Loaded only if Redis is configured, because loading the library takes 0.14 s of CPU time.
  const shared = config.redisUrl
    ? (await import('../admission/shared-counts.ts')).connectSharedCounts(config.redisUrl, (isThere, error) =>
        tellOfRedis(log, isThere, error),
      )
    : undefined;
  onStop(() => shared?.close());
  const parts = createParts(config, pool, shared, metrics, traces);
  onStop(() => parts.close());
  const lakeWarning = await checkPlace(parts.place);
  const stopAsking = parts.owners?.watch();
  onStop(() => stopAsking?.());
  const app = await buildApp(parts, certificate);
  onStop(() => app.close());
  log = app.log;
  parts.detours.logTo(tellOfDetours(log));
  for (const warning of [...config.warnings, ...warnings, ...lakeWarning]) log.warn(warning);
  onStop(parts.requirements.watch(log));
  const reachability = new Reachability(config.databaseUrl, tellOfDatabase(log));
  if (away !== undefined) reachability.failed('keys', away);
  const maintenance = startBackground(config, parts, reachability, log, onStop);
  const stopWatching = certificate?.watch(logged(app.log));
  onStop(() => stopWatching?.());
  const admin = config.admin ? await startAdmin(config, config.admin, parts, certificate, onStop) : undefined;
  if (metrics) {
    const sources = sourcesOf(parts, maintenance, certificate, shared);
    const { metricsHost: host, metricsPort: port } = config;
    const server = await serveMetrics(host, port, () => metrics.exposition(sources)).catch((error) => {
      throw cannotListen(error, host, port, 'METRICS_PORT');
    });
    onStop(() => {
      server.close();
      // This also closes connections that have not sent a request yet, which would keep the process alive.
      server.closeAllConnections();
    });
  }
  const address = await listen(app, config, 'PORT', connectionsOf(config));
  const servers: [FastifyInstance, ...FastifyInstance[]] = admin ? [app, admin] : [app];
  return {
    address,
    stop(signal) {
      // Wake waiting streams first. Otherwise the shutdown would wait for them.
      parts.changeWatch.stop();
      return stopServers(servers, config, endAll, signal);
    },
    toggleDebug: () => toggleDebug(servers, config.logLevel),
  };
}

async function startTraces(
  { hasSampler }: NonNullable<Config['traces']>,
  logOf: () => FastifyBaseLogger | undefined,
  onStop: (end: () => unknown) => void,
): Promise<Traces> {
  let isSending = true;
  const traces = new (await import('../traces/traces.ts')).Traces({
    version: version(),
    hasSampler,
    onExport(succeeded, error) {
      if (succeeded === isSending) return;
      isSending = succeeded;
      if (succeeded) logOf()?.info('the collector takes traces again');
      else
        logOf()?.warn(
          { err: error },
          'traces cannot be sent to the collector and are dropped; check OTEL_EXPORTER_OTLP_ENDPOINT',
        );
    },
  });
  onStop(() => traces.close());
  return traces;
}

/** Background work is the first to notice that PostgreSQL is unavailable or has come back. */
function startBackground(
  config: Config,
  { keys, metrics, references, activity: counts }: Parts,
  reachability: Reachability,
  log: FastifyBaseLogger,
  onStop: (end: () => unknown) => void,
): Maintenance {
  onStop(
    keys.watch(
      (error) => {
        if (!reachability.failed('keys', error)) log.warn({ err: error }, 'the poll for changed keys failed');
      },
      () => reachability.succeeded('keys'),
    ),
  );
  const ofChores = { ...config, databaseConnectionsMax: limits.choreConnectionsMax };
  const pool = createPool(ofChores, () => {}, { plansOnce: true });
  onStop(() => pool.end());
  const databaseTimeoutMs = Math.min(config.databaseTimeoutMs, limits.leaseRenewMs);
  const ofLease = { ...config, databaseConnectionsMax: limits.leaseConnectionsMax, databaseTimeoutMs };
  const leasePool = createPool(ofLease, () => {});
  onStop(() => leasePool.end());
  const chores = choresOf(pool, config, references.suppressions);
  if (metrics) chores.push(...counting(pool, config, (state) => metrics.counted(state)));
  const report = new ActivityReport(pool, {
    version: version(),
    isLeader: () => maintenance.isLeader,
    counts,
  });
  const maintenance = startMaintenance(leasePool, chores, {
    elected: () => log.info('this process does the maintenance from now on'),
    held: () => reachability.succeeded('election'),
    done(chore) {
      metrics?.choreDone(chore);
      report.choreDone(chore);
    },
    failed(chore, error) {
      metrics?.choreFailed(chore);
      report.choreFailed(chore);
      // Only the election runs often enough to notice that the database is back.
      const isLost = chore === 'election' || (leavesOutcomeOpen(error) && !isLossOfWorker(error));
      if (isLost && reachability.failed('election', error)) return;
      log.error({ err: error, chore }, 'maintenance failed; it will be tried again');
    },
  });
  onStop(() => maintenance.stop());
  onStop(report.start((error) => log.debug({ err: error }, 'the activity of a minute could not be written')));
  return maintenance;
}

async function startAdmin(
  config: Config,
  admin: AdminConfig,
  { cursors, pool: shared, server }: Parts,
  certificate: Certificate | undefined,
  onStop: (end: () => unknown) => void,
): Promise<FastifyInstance> {
  const ofAdmin = {
    ...config,
    databaseUrl: admin.databaseUrl,
    databaseConnectionsMax: limits.adminConnectionsMax,
    bodyBytesMax: limits.adminBodyBytesMax,
    // On loopback, clients connect directly, not through the proxy.
    trustedProxy: isLoopback(admin.host) ? [] : config.trustedProxy,
  };
  const pool = createPool(ofAdmin, () => {});
  onStop(() => pool.end());
  const target = { setting: 'ADMIN_DATABASE_URL', url: admin.databaseUrl, role: 'intake_admin' } as const;
  await explaining(target, () => checkAdminDatabase(pool, target));
  const readiness = new Readiness(ofAdmin);
  onStop(() => readiness.close());
  const app = await buildAdminApp(
    {
      config: ofAdmin,
      pool,
      cursors,
      shared,
      bytesInFlight: new BytesInFlight(ofAdmin),
      readiness,
      server,
    },
    certificate,
  );
  onStop(() => app.close());
  const connections = { admin: limits.adminConnectionsMax, readiness: 1 };
  await listen(app, { ...admin, reusePort: config.reusePort }, 'ADMIN_PORT', connections);
  return app;
}

/** Returns false if something was still running at the timeout. Exiting the process interrupts it. */
async function stopServers(
  servers: readonly [FastifyInstance, ...FastifyInstance[]],
  { stopTimeoutMs, trustedProxy }: Config,
  endAll: () => Promise<void>,
  signal: string | undefined,
): Promise<boolean> {
  const beganMs = performance.now();
  const idleMs = trustedProxy.length > 0 ? limits.stopProxyIdleMs : 0;
  // A connection becomes idle after its response. Left open, it would delay the shutdown.
  const closeIdle = () => {
    for (const app of servers) app.closeIdle(idleMs);
  };
  const timer = setInterval(closeIdle, limits.stopIntervalMs);
  const stopped = stopListening(servers, closeIdle).then(async () => {
    await Promise.all(servers.map((app) => app.close()));
    await endAll();
    return true;
  });
  const timedOut = sleep(stopTimeoutMs, false, { ref: false });
  const isClean = await Promise.race([stopped, timedOut]);
  clearInterval(timer);
  const cutShort = servers.reduce((sum, app) => sum + app.countUnderWay(), 0);
  const line = { signal, duration_ms: Math.round(performance.now() - beganMs), requests_cut_short: cutShort };
  const { log } = servers[0];
  if (isClean) log.info(line, 'stopped');
  else log.error(line, 'stopped; some requests did not finish in time and are interrupted');
  if (!isClean) for (const app of servers) app.server.closeAllConnections();
  return isClean;
}

/** The change is logged at the more verbose of the two levels, so that the line is always visible. */
function toggleDebug(servers: readonly [FastifyInstance, ...FastifyInstance[]], configured: string): void {
  const { log } = servers[0];
  // If LOG_LEVEL is already that verbose, the signal makes the log less verbose instead.
  const other = configured === 'debug' || configured === 'trace' ? 'info' : 'debug';
  const level = log.level === configured ? other : configured;
  const tell = () => log.info({ level_now: level }, `SIGUSR2: the log level is ${level} from now on`);
  if (level === configured) tell();
  for (const app of servers) app.log.level = level;
  if (level !== configured) tell();
}

/**
 * When a listener closes, the kernel resets the connections that the process has not accepted yet, along with any
 * requests on them. Listeners are therefore closed right after a short turn of the event loop, which has just accepted
 * all pending connections.
 */
async function stopListening(servers: readonly FastifyInstance[], closeIdle: () => void): Promise<void> {
  for (const app of servers) app.endConnections();
  const untilMs = performance.now() + limits.stopTurnWaitMs;
  for (let ms = Number.POSITIVE_INFINITY; ms > limits.stopTurnMs && performance.now() < untilMs; ) {
    const beganMs = performance.now();
    await nextTurn();
    ms = performance.now() - beganMs;
  }
  const ended = servers.map(({ server }) => once(server, 'close'));
  // An HTTP server's own close() would end idle connections immediately.
  for (const { server } of servers) Server.prototype.close.call(server);
  closeIdle();
  await Promise.all(ended);
}

function tellOfDatabase(log: FastifyBaseLogger): ReachabilityLog {
  return {
    away: (away) =>
      log.error(
        away,
        `PostgreSQL at ${away.host}:${away.port} cannot be used (${away.cause}); waiting for it, and answering 503 meanwhile`,
      ),
    back: (back) => log.info(back, `PostgreSQL at ${back.host}:${back.port} can be used again`),
  };
}

function tellOfDetours(log: FastifyBaseLogger): DetourLog {
  return {
    begun: (what) =>
      log.warn(
        what,
        `cannot connect to the worker ${what.worker} (${what.cause}); the coordinator forwards its requests, which takes more ` +
          'CPU. Check that the worker is running, lets this login in, and has a certificate for this name that sslrootcert trusts',
      ),
    ended: (what) => log.info(what, `can connect to the worker ${what.worker} again`),
  };
}

function tellOfRedis(log: FastifyBaseLogger | undefined, isThere: boolean, error: Error | undefined): void {
  if (isThere) log?.info('Redis can be reached: all processes share their limits');
  else
    log?.warn(
      { err: error },
      'Redis cannot be reached: until it can, each process enforces limits on its own',
    );
}

/** The most connections that a process opens to PostgreSQL, or on Citus to the coordinator, without the admin API. */
export function connectionsOf({ databaseConnectionsMax }: Pick<Config, 'databaseConnectionsMax'>) {
  return {
    requests: databaseConnectionsMax,
    interactions: limits.interactionWritersMax,
    keys: limits.keyConnectionsMax,
    maintenance: limits.choreConnectionsMax + limits.leaseConnectionsMax,
    readiness: 1,
  };
}

async function listen(
  app: FastifyInstance,
  { host, port, reusePort }: Pick<Config, 'host' | 'port' | 'reusePort'>,
  setting: 'PORT' | 'ADMIN_PORT',
  connections: Readonly<Record<string, number>>,
): Promise<string> {
  const { log } = app;
  // Fastify logs a line for each of the machine's addresses. We log a single line with more information instead.
  Object.assign(app, { log: log.child({}, { level: 'warn' }) });
  try {
    // Fastify's types lack reusePort, but Fastify passes all options to Node.
    const options: FastifyListenOptions & { reusePort: boolean } = { host, port, reusePort };
    const url = await app.listen(options);
    const { address, port: taken } = app.server.address() as AddressInfo;
    const line = {
      version: version(),
      node_version: process.versions.node,
      address,
      port: taken,
      connections,
    };
    log.info(line, `${setting === 'PORT' ? 'Server' : 'Admin API'} listening at ${url}`);
    return url;
  } catch (error) {
    throw cannotListen(error, host, port, setting);
  } finally {
    Object.assign(app, { log });
  }
}

function cannotListen(error: unknown, host: string, port: number, setting: string): Error {
  const { code } = error as { code?: string };
  if (code === 'EADDRINUSE')
    return commandError(`port ${port} of ${host} is taken; set ${setting} to another`);
  return commandError(
    `cannot listen on port ${port} of ${host} (${code}); check ${setting.replace('PORT', 'HOST')} and ${setting}`,
  );
}
