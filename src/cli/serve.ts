import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { FastifyBaseLogger, FastifyInstance } from 'fastify';
import { type AdminConfig, type Config, isLoopback, readConfig } from '../config.ts';
import { buildAdminApp, buildApp } from '../http/app.ts';
import { Certificate } from '../http/certificate.ts';
import { createParts } from '../http/operation.ts';
import * as uploads from '../ingest/housekeeping.ts';
import * as interactions from '../interactions/housekeeping.ts';
import { BytesInFlight } from '../keys/bytes-in-flight.ts';
import { FailedKeys } from '../keys/failed-keys.ts';
import { connectSharedCounts } from '../keys/shared-counts.ts';
import { limits } from '../limits.ts';
import { schemaState } from '../store/migrate.ts';
import { createPool, isRefusedLogin, isUnavailable, type Pool } from '../store/pool.ts';
import { mayAdminister, surplusRights } from '../store/roles.ts';
import { commandError } from './help.ts';

export async function run(args: string[]): Promise<void> {
  parseArgs({ args, options: {} });
  const service = await startService(readConfig());
  let isStopping = false;
  const stop = async () => {
    // Being told twice does not cut short what is being finished.
    if (isStopping) return;
    isStopping = true;
    // What is left then has no end of its own, such as a connection on which nothing arrives any more.
    if (!(await service.stop())) process.exit(1);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop());
}

export interface Service {
  /** Where it listens. */
  readonly address: string;
  /** Finishes what was begun, refuses what is new, lets go of the database. False where it had to cut something short. */
  stop(): Promise<boolean>;
}

export async function startService(config: Config): Promise<Service> {
  const ends: (() => unknown)[] = [];
  /** What was started is ended in the opposite order. */
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
  let log: FastifyBaseLogger | undefined;
  const pool = createPool(config, (error) => log?.warn({ err: error }, 'an idle connection was lost'));
  onStop(() => pool.end());
  await refuseOtherSchema(pool);
  const certificate = config.tls ? new Certificate(config.tls) : undefined;
  const shared = config.redisUrl
    ? connectSharedCounts(config.redisUrl, (isThere, error) => tellOfRedis(log, isThere, error))
    : undefined;
  onStop(() => shared?.close());
  const parts = createParts(config, pool, shared);
  onStop(() => parts.close());
  const app = await buildApp(parts, certificate);
  onStop(() => app.close());
  log = app.log;
  for (const warning of config.warnings) log.warn(warning);
  await warnOfRights(app, pool);
  onStop(
    parts.keys.watch((error) => app.log.warn({ err: error }, 'what changed among the keys is not known')),
  );
  onStop(startHousekeeping(app, pool, config));
  const stopWatching = certificate?.watch((error) => tellOfCertificate(app, error));
  onStop(() => stopWatching?.());
  const admin = config.admin ? await startAdmin(config, config.admin, certificate, onStop) : undefined;
  const address = await listen(app, config.host, config.port, 'PORT');
  const servers = admin ? [app, admin] : [app];
  return { address, stop: () => stopServers(servers, config.stopTimeoutMs, endAll) };
}

async function startAdmin(
  config: Config,
  admin: AdminConfig,
  certificate: Certificate | undefined,
  onStop: (end: () => unknown) => void,
): Promise<FastifyInstance> {
  const ofAdmin = {
    ...config,
    databaseUrl: admin.databaseUrl,
    databaseConnectionsMax: limits.adminConnectionsMax,
    bodyBytesMax: limits.adminBodyBytesMax,
    // Who reaches it on this machine does not come through the proxy.
    trustedProxy: isLoopback(admin.host) ? [] : config.trustedProxy,
  };
  const pool = createPool(ofAdmin, () => {});
  onStop(() => pool.end());
  if (!(await mayAdminister(pool).catch(() => true))) {
    throw commandError(
      'the role in ADMIN_DATABASE_URL (or DATABASE_URL without it) may not change organisations and keys; use a member ' +
        'of the role intake_admin',
    );
  }
  const app = await buildAdminApp(
    {
      config: ofAdmin,
      admin,
      pool,
      failedKeys: new FailedKeys(config.failedKeysPerMinuteMax),
      bytesInFlight: new BytesInFlight(ofAdmin),
    },
    certificate,
  );
  onStop(() => app.close());
  await listen(app, admin.host, admin.port, 'ADMIN_PORT', (address) => `Admin API listening at ${address}`);
  return app;
}

/** False where something was still going on when the time was up; then the rest is left to the end of the process. */
async function stopServers(
  servers: readonly FastifyInstance[],
  timeoutMs: number,
  endAll: () => Promise<void>,
): Promise<boolean> {
  // A connection that was in use is idle once it is answered, and would be waited for.
  const closeIdle = () => {
    for (const app of servers) app.closeIdle();
  };
  const timer = setInterval(closeIdle, limits.stopIntervalMs);
  const stopped = Promise.all(servers.map((app) => app.close())).then(async () => {
    await endAll();
    return true;
  });
  const timedOut = sleep(timeoutMs, false, { ref: false });
  const isClean = await Promise.race([stopped, timedOut]);
  clearInterval(timer);
  if (!isClean) {
    servers.forEach((app) => {
      app.log.error('what was begun did not end in time and is cut short');
      app.server.closeAllConnections();
    });
  }
  return isClean;
}

function tellOfRedis(log: FastifyBaseLogger | undefined, isThere: boolean, error: Error | undefined): void {
  if (isThere) log?.info('Redis is there: all processes count their limits together');
  else
    log?.warn(
      { err: error },
      'Redis cannot be reached: until it can, each process counts its limits by itself',
    );
}

function tellOfCertificate(app: FastifyInstance, error: unknown): void {
  if (error === undefined) app.log.info('the certificate was replaced; new connections get the new one');
  else app.log.error({ err: error }, 'the new certificate cannot be used; the old one stays');
}

/** Serving needs little; what it is given beyond that is what a flaw in it would give away. */
async function warnOfRights(app: FastifyInstance, pool: Pool): Promise<void> {
  const rights = await surplusRights(pool).catch(() => []);
  if (rights.length === 0) return;
  app.log.warn(
    `the role in DATABASE_URL has more rights than serving needs: it ${rights.join(', ')}; serve as a member of the ` +
      'role intake_serve instead',
  );
}

async function listen(
  app: FastifyInstance,
  host: string,
  port: number,
  setting: string,
  listenTextResolver?: (address: string) => string,
): Promise<string> {
  try {
    return await app.listen({ host, port, ...(listenTextResolver && { listenTextResolver }) });
  } catch (error) {
    const { code } = error as { code?: string };
    if (code === 'EADDRINUSE')
      throw commandError(`port ${port} of ${host} is taken; set ${setting} to another`);
    throw commandError(
      `cannot listen on port ${port} of ${host} (${code}); check ${setting.replace('PORT', 'HOST')} and ${setting}`,
    );
  }
}

/** A database that is away may come back, and /health/ready tells; one with another schema will not change by itself. */
async function refuseOtherSchema(pool: Pool): Promise<void> {
  const state = await schemaState(pool).catch((error: unknown) => {
    if (isUnavailable(error) && !isRefusedLogin(error)) return 'current';
    throw error;
  });
  if (state === 'behind')
    throw commandError('the database schema is behind this program; run intake-server migrate');
  if (state === 'ahead')
    throw commandError('the database schema is ahead of this program; run a newer intake-server');
}

function startHousekeeping(app: FastifyInstance, pool: Pool, { receiptsKeptDays }: Config): () => void {
  const chores: [work: () => Promise<void>, everyMs: number][] = [
    [() => interactions.keepHouse(pool), limits.housekeepingIntervalMs],
    [() => uploads.keepHouse(pool, receiptsKeptDays), limits.housekeepingIntervalMs],
    [() => uploads.rollUp(pool), limits.rollUpIntervalMs],
  ];
  const timers = chores.map(([work, everyMs]) => {
    const keep = () => {
      work().catch((error: unknown) =>
        app.log.error({ err: error }, 'housekeeping failed; it will be tried again'),
      );
    };
    keep();
    return setInterval(keep, everyMs);
  });
  return () => timers.forEach(clearInterval);
}
