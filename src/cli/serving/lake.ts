import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import fastify, { type FastifyBaseLogger } from 'fastify';
import { type Config, readConfig, version } from '../../config.ts';
import { serveMetrics } from '../../http/server/metrics-server.ts';
import { loggerOf } from '../../http/server/server.ts';
import { LakeKeeper, type LakeLog } from '../../lake/keep-lake.ts';
import { LakeSlots } from '../../lake/lake-slots.ts';
import { LakeWriter } from '../../lake/lake-writer.ts';
import { lakeLimits } from '../../lake/limits.ts';
import { LakePlace } from '../../lake/store/lake-place.ts';
import { openStore } from '../../lake/store/lake-store.ts';
import { ParquetWriter } from '../../lake/table/parquet-writer.ts';
import { Requirements } from '../../postgres/health/requirements.ts';
import { ServerState } from '../../postgres/health/server-state.ts';
import { Workers } from '../../postgres/health/workers.ts';
import { createPool } from '../../postgres/pool.ts';
import { Suppressions } from '../../suppression/suppressions.ts';
import { commandError, refuseArguments } from '../arguments/help.ts';
import { checkDatabase } from '../database/check-database.ts';
import { explaining } from '../database/explain-database.ts';
import { claimPlace, missingLakeUrl, takeOver } from './lake-place.ts';

export async function run(args: string[]): Promise<void> {
  const confirmed = placeNamed(args);
  if (confirmed === undefined) refuseArguments('lake', args);
  // The image sets HOST to 0.0.0.0, which is refused without encryption. This command serves no API and ignores HOST.
  const config = readConfig({ HOST: '127.0.0.1' });
  if (confirmed !== undefined) return takeOver(config, confirmed);
  const log = fastify({ logger: loggerOf(config) }).log;
  const lake = await startLake(config, log);
  let isStopping = false;
  const stop = async (signal: string) => {
    if (isStopping) return;
    isStopping = true;
    // The next process will redo any unfinished work.
    const timer = setTimeout(() => process.exit(1), config.stopTimeoutMs);
    await lake.stop();
    clearTimeout(timer);
    log.info({ signal }, 'stopped');
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal));
}

function placeNamed(args: string[]): string | undefined {
  if (!args.some((arg) => arg.startsWith('--take-over'))) return undefined;
  return parseArgs({ args, options: { 'take-over': { type: 'string' } } }).values['take-over'];
}

export async function startLake(config: Config, log: FastifyBaseLogger): Promise<{ stop(): Promise<void> }> {
  const { databaseUrl: url, lakeUrl } = config;
  if (lakeUrl === null) throw missingLakeUrl();
  const metrics =
    config.metricsPort > 0 ? new (await import('../../metrics/metrics.ts')).Metrics(version()) : undefined;
  const ofLake = { ...config, databaseConnectionsMax: lakeLimits.connectionsMax };
  const pool = createPool(ofLake, () => {}, { plansOnce: true });
  const databaseTimeoutMs = Math.min(config.databaseTimeoutMs, lakeLimits.slotRenewMs);
  const slotPool = createPool({ ...config, databaseConnectionsMax: 1, databaseTimeoutMs }, () => {});
  const parquet = new ParquetWriter({
    folder: ownFolder(),
    memoryMb: lakeLimits.parquetMemoryMb,
    threads: lakeLimits.parquetThreads,
  });
  const ends = [() => parquet.close(), () => slotPool.end(), () => pool.end()];
  const stop = async () => {
    for (const end of ends) await end();
  };
  try {
    await parquet.run(['select 1']).catch(({ message }: Error) => {
      throw commandError(
        `DuckDB cannot be started (${message}). npm does not install its package for this platform if optional ` +
          'packages are omitted: install again with --include=optional',
      );
    });
    const target = { setting: 'DATABASE_URL', url, role: 'intake_serve' } as const;
    const { warnings, away } = await explaining(target, () =>
      checkDatabase(pool, target, config.databasePooler),
    );
    for (const warning of [...config.warnings, ...warnings]) log.warn(warning);
    if (away !== undefined) log.error({ err: away }, 'PostgreSQL cannot be used; waiting for it');
    const store = openStore(lakeUrl);
    const place = new LakePlace(pool, store, lakeUrl);
    // Without the database, the place is claimed before the first write.
    if (away === undefined) await claimPlace(place, lakeUrl);
    const stopWatching = new Requirements([new ServerState(slotPool), new Workers(pool)]).watch(log);
    ends.unshift(async () => stopWatching());
    const slots = new LakeSlots(slotPool);
    const suppressions = new Suppressions(config.erasureKeys);
    const isHeld = (organisationId: string) => slots.isHeld(organisationId);
    const startedOver = (organisation_id: string, table?: string) =>
      log.warn(
        { organisation_id, table },
        'the files of a lake do not match the database; they are deleted, and everything is copied again',
      );
    const writer = new LakeWriter({ pool, store, place, parquet, suppressions, isHeld, startedOver });
    const keeper = new LakeKeeper({
      pool,
      slots,
      writer,
      log: logged(log),
      delayMs: config.lakeDelaySeconds * 1_000,
    });
    if (metrics) {
      const server = await serveMetrics(config.metricsHost, config.metricsPort, () =>
        metrics.lakeExposition(),
      );
      ends.unshift(async () => {
        server.close();
        server.closeAllConnections();
      });
    }
    keeper.start();
    ends.unshift(() => keeper.stop());
    log.info({ version: version(), lake_url: lakeUrl }, 'Writing lakes');
    return { stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function logged(log: FastifyBaseLogger): LakeLog {
  const failing = new Set<string>();
  return {
    stepped(organisation_id, { rows, source }) {
      log.debug({ organisation_id, rows, source }, 'a step of the lake is done');
    },
    failed(error, work = 'look', organisation_id = 'all') {
      const key = `${work} ${organisation_id}`;
      if (failing.has(key)) return;
      failing.add(key);
      log.error({ err: error, organisation_id, work }, 'the lake cannot be written; it will be tried again');
    },
    recovered(work, organisation_id) {
      if (failing.delete(`${work} ${organisation_id}`))
        log.info({ organisation_id, work }, 'the lake is written again');
    },
    looked() {
      if (failing.delete('look all')) log.info('PostgreSQL can be used again');
    },
  };
}

const ownFolders = new Set<string>();

/** Removes folders left by killed processes, because they contain personal data. */
function ownFolder(): string {
  for (const name of readdirSync(tmpdir())) {
    const pid = Number(/^intake-lake-of-(\d+)-\w{6}$/.exec(name)?.[1]);
    const folder = join(tmpdir(), name);
    // In a container, a restarted process usually has the same PID as the previous one.
    const isLeft = pid === process.pid ? !ownFolders.has(folder) : pid > 0 && !isRunning(pid);
    if (isLeft) removeIfOwn(folder);
  }
  try {
    const folder = mkdtempSync(join(tmpdir(), `intake-lake-of-${process.pid}-`));
    ownFolders.add(folder);
    return folder;
  } catch (error) {
    throw commandError(
      `${tmpdir()} cannot be written (${(error as NodeJS.ErrnoException).code}); set TMPDIR to a folder with room for 2 GB`,
    );
  }
}

function removeIfOwn(folder: string): void {
  if (lstatSync(folder, { throwIfNoEntry: false })?.uid === process.getuid?.())
    rmSync(folder, { recursive: true, force: true });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // The process belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
