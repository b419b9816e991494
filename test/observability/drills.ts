import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { makeDatedCertificate } from '../support/certificate.ts';
import { createTestDatabase } from '../support/database.ts';
import { startFreezablePostgres } from '../support/freezable-postgres.ts';
import { startNodeExporter, startPostgresExporter } from '../support/prometheus.ts';
import { queryDatabase } from '../support/query-database.ts';
import { startRedis } from '../support/redis.ts';
import { mountDisk } from './full-disk.ts';
import { type Pace, type Stand, startStand } from './stand.ts';

/** An outage that can be caused and fixed, on its own processes and database. */
export interface Drill {
  /** The drill's title in the table. */
  readonly title: string;
  /** The alerts that must fire during the outage and end after the fix. */
  readonly alerts: readonly string[];
  /** Returns undefined if the outage is not possible on this machine. */
  prepare(pace: Pace): Promise<Prepared | undefined>;
}

export interface Prepared {
  readonly stand: Stand;
  /** The certificates that clients trust, if the processes use TLS. */
  readonly trusted?: readonly Buffer[];
  cause(): unknown;
  repair(): unknown;
  stop(): Promise<unknown>;
}

const stopProcess: Drill = {
  title: 'A process is stopped (SIGTERM) and not started again',
  alerts: ['IntakeProcessDown'],
  async prepare(pace) {
    const stand = await startStand(await createTestDatabase(), pace);
    const cause = async () => stand.servers[0]?.stop();
    return { stand, cause, repair: () => stand.replace(0), stop: () => stand.stop() };
  },
};

const killProcess: Drill = {
  title: 'A process is killed (SIGKILL), the one that does the maintenance',
  alerts: ['IntakeProcessDown'],
  async prepare(pace) {
    const stand = await startStand(await createTestDatabase(), pace);
    const cause = () => killServer(stand, 0);
    return { stand, cause, repair: () => stand.replace(0), stop: () => stand.stop() };
  },
};

export async function killServer({ servers }: Stand, at: number): Promise<void> {
  const server = servers[at]?.process;
  if (!server) throw new Error(`there is no process ${at}`);
  const ended = once(server, 'exit');
  server.kill('SIGKILL');
  await ended;
}

const freeze: Drill = {
  title: 'PostgreSQL is frozen (SIGSTOP)',
  alerts: ['IntakeDatabaseAway'],
  async prepare(pace) {
    const postgres = await startFreezablePostgres();
    const stand = await startStand(postgres.url, pace);
    const stop = () => stand.stop().finally(() => postgres.stop());
    return { stand, cause: postgres.freeze, repair: postgres.thaw, stop };
  },
};

export const lock: Drill = {
  title: 'A session locks a table and is forgotten',
  alerts: ['IntakeStalled'],
  async prepare(pace) {
    const databaseUrl = await createTestDatabase();
    const stand = await startStand(databaseUrl, pace);
    let session: pg.Client | undefined;
    return {
      stand,
      async cause() {
        session = await lockTable(databaseUrl, 'tags');
      },
      repair: () => session?.end(),
      stop: () => stand.stop(),
    };
  },
};

/** Locks a table until the session ends. */
export async function lockTable(databaseUrl: string, table: string): Promise<pg.Client> {
  const session = new pg.Client({ connectionString: databaseUrl });
  await session.connect();
  await session.query(`begin; lock table ${table}`);
  return session;
}

/** The disk has enough room for PostgreSQL and our tables, but little for WAL files. */
const diskMegabytes = 600;

const fullDisk: Drill = {
  title: "PostgreSQL's disk is full",
  alerts: ['IntakeDiskNearlyFull'],
  async prepare(pace) {
    const disk = mountDisk(diskMegabytes);
    if (!disk) return undefined;
    const settings = { min_wal_size: '96MB', max_wal_size: '128MB' };
    const postgres = await startFreezablePostgres(settings, disk.folder);
    // Create spare WAL files. Without spare files, PostgreSQL shuts down instead of failing writes.
    for (let files = 0; files < 5; files++) await queryDatabase(postgres.url, endFile);
    await queryDatabase(postgres.url, 'checkpoint');
    const stand = await startStand(postgres.url, pace, { exporters: { node: await startNodeExporter() } });
    const stop = async () => {
      await stand.stop().finally(() => postgres.stop());
      disk.remove();
    };
    return { stand, cause: () => disk.fill(0), repair: () => disk.empty(), stop };
  },
};

const redisAway: Drill = {
  title: 'Redis is killed',
  alerts: ['IntakeRedisAway'],
  async prepare(pace) {
    const redis = await startRedis();
    const settings = { REDIS_URL: redis.url };
    const stand = await startStand(await createTestDatabase(), pace, { settings: [settings, settings] });
    const stop = () => stand.stop().finally(() => redis.stop());
    return { stand, cause: redis.kill, repair: redis.restart, stop };
  },
};

const certificateExpired: Drill = {
  title: 'The certificate of the processes expires, 10 seconds after it was installed',
  alerts: ['IntakeCertificateExpires'],
  async prepare(pace) {
    const folder = mkdtempSync(join(tmpdir(), 'intake-drill-'));
    const files = { certFile: join(folder, 'served-cert.pem'), keyFile: join(folder, 'served-key.pem') };
    const trusted: Buffer[] = [];
    /** Installs a certificate that expires this many seconds from now. The processes refuse an expired certificate. */
    const install = (name: string, seconds: number) => {
      const [from, to] = [Date.now() - 86_400_000, Date.now() + seconds * 1_000].map((ms) => new Date(ms));
      const made = makeDatedCertificate(folder, name, from as Date, to as Date);
      copyFileSync(made.keyFile, files.keyFile);
      copyFileSync(made.certFile, files.certFile);
      trusted.push(made.pem);
    };
    install('first', 30 * 86_400);
    const settings = { TLS_CERT_FILE: files.certFile, TLS_KEY_FILE: files.keyFile };
    const stand = await startStand(await createTestDatabase(), pace, { settings: [settings, settings] });
    return {
      stand,
      trusted,
      cause: () => install('expires-soon', 10),
      repair: () => install('last', 30 * 86_400),
      async stop() {
        await stand.stop();
        rmSync(folder, { recursive: true });
      },
    };
  },
};

/** A statement that switches to a new WAL file, as if 16 MB had been written. */
const endFile = `select pg_logical_emit_message(false, 'drill', ''), pg_switch_wal()`;

/** Starts a PostgreSQL server that archives its WAL to a folder that can be removed. */
export async function startArchivingPostgres() {
  const folder = mkdtempSync(join(tmpdir(), 'intake-archive-'));
  chmodSync(folder, 0o777);
  const [archive, away] = [folder, `${folder}-away`];
  const settings = { archive_mode: 'on', archive_command: `cp %p ${archive}/%f` };
  const postgres = await startFreezablePostgres(settings);
  return {
    url: postgres.url,
    freeze: postgres.freeze,
    thaw: postgres.thaw,
    async breakArchive() {
      renameSync(archive, away);
      await queryDatabase(postgres.url, endFile);
    },
    repairArchive: () => renameSync(away, archive),
    async stop() {
      await postgres.stop();
      for (const each of [archive, away]) rmSync(each, { recursive: true, force: true });
    },
  };
}

const archivingBroken: Drill = {
  title: 'The archive of the write-ahead log is gone',
  alerts: ['IntakeArchivingFails'],
  async prepare(pace) {
    const postgres = await startArchivingPostgres();
    const exporters = { postgres: await startPostgresExporter(postgres.url) };
    const stand = await startStand(postgres.url, pace, { exporters });
    const stop = () => stand.stop().finally(() => postgres.stop());
    return { stand, cause: postgres.breakArchive, repair: postgres.repairArchive, stop };
  },
};

/** The drills, by their names on the command line. */
export const drills = {
  lock,
  freeze,
  'full-disk': fullDisk,
  stop: stopProcess,
  kill: killProcess,
  redis: redisAway,
  certificate: certificateExpired,
  archiving: archivingBroken,
} as const satisfies Record<string, Drill>;
