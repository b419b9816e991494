import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';
import { pathToFileURL } from 'node:url';
import { disposable } from '../../test/support/disposable.ts';
import { freePort } from '../../test/support/free-port.ts';
import { type Nginx, startNginx } from '../../test/support/nginx.ts';
import { type Redis, startRedis } from '../../test/support/redis.ts';
import { type S3Server, startS3 } from '../../test/support/s3-server.ts';
import { uuidPattern } from '../checker/uuid-pattern.ts';
import { mountDisk, unmountDisk } from '../faults/surroundings-faults.ts';
import type { Disk } from '../plan.ts';
import { Database } from './database.ts';
import { FaultProxy } from './fault-proxy.ts';
import { Program } from './program.ts';
import { makeSlowDisk, type SlowDisk } from './slow-disk.ts';

export interface WorldOptions {
  /** The entry point of the built service. */
  readonly main: string;
  readonly lake: 'folder' | 's3';
  readonly hasRedis: boolean;
  readonly isSmall?: boolean;
  /** Divides the times that copies and lakes may take at the end. Only for defects, which are to be found soon. */
  readonly haste?: number;
  /** The entry point of an older version, which runs next to the current one now and then. */
  readonly oldMain?: string | undefined;
  readonly disk: Disk;
  /** More settings for every process. */
  readonly settings?: Readonly<Record<string, string>>;
}

const logins = { serve: 'intake_faults', admin: 'intake_faults_admin', lake: 'intake_faults_lake' };
export const erasureKey = 'a key of 32 characters or more for faults';

/**
 * Everything that a run needs: two `serve` processes behind the shipped configuration of nginx, a `lake` process,
 * PostgreSQL, and Redis if wanted. There is a proxy between each two of them.
 */
export class World {
  readonly options: WorldOptions;
  readonly folder: string;
  /** A failover replaces it. */
  database: Database;
  /** Between the clients and nginx, between nginx and each process, and between each process and PostgreSQL. */
  readonly proxies: {
    readonly clients: FaultProxy;
    readonly serve: readonly FaultProxy[];
    readonly database: readonly FaultProxy[];
    readonly lakeDatabase: FaultProxy;
    readonly redis: FaultProxy | undefined;
  };
  readonly serve: readonly Program[];
  readonly lake: Program;
  readonly lakeUrl: string;
  /** The disk with PostgreSQL's data or log, if it can be filled. */
  readonly disk: string | undefined;
  /** PostgreSQL's disk, if it can be slow. */
  readonly slowDisk: SlowDisk | undefined;
  /** nginx's certificate. */
  readonly caFile: string;
  readonly redis: Redis | undefined;
  readonly s3: S3Server | undefined;
  readonly nginx: Nginx;
  /** The ids of all people, which no log may contain. */
  readonly personalIds = new Set<string>();
  #running = new AsyncDisposableStack();
  readonly #adminPorts: readonly number[];
  readonly #metricsPorts: readonly number[];
  #adminToken = '';

  private constructor(parts: Pick<World, 'options' | 'folder' | 'database' | 'proxies' | 'lakeUrl'> & Parts) {
    const { options } = parts;
    this.options = options;
    this.folder = parts.folder;
    this.database = parts.database;
    this.proxies = parts.proxies;
    this.lakeUrl = parts.lakeUrl;
    this.disk = parts.disk;
    this.slowDisk = parts.slowDisk;
    this.caFile = join(parts.folder, 'ca.pem');
    this.redis = parts.redis;
    this.s3 = parts.s3;
    this.nginx = parts.nginx;
    this.#metricsPorts = parts.metricsPorts;
    this.#adminPorts = parts.adminPorts;
    const namesPerson = (text: string) =>
      (text.match(uuidPattern) ?? []).some((id) => this.personalIds.has(id.toLowerCase()));
    this.serve = parts.ports.map(
      (port, at) =>
        new Program(`serve ${at + 1}`, options.main, 'serve', this.#environment(at, port), namesPerson),
    );
    this.lake = new Program('lake', options.main, 'lake', this.#environment('lake'), namesPerson);
  }

  static async start(options: WorldOptions): Promise<World> {
    await using running = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), 'intake-faults-'));
    running.defer(() => rmSync(folder, { recursive: true, force: true }));
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'lake'));
    mkdirSync(join(folder, 'tmp'));
    const slowDisk = options.disk === 'slow' ? makeSlowDisk(folder) : undefined;
    // Processes are killed, but never the machine, so nothing has to reach the disk, unless waiting for it is tried.
    const durability = slowDisk ? {} : disposable;
    const settings = { max_connections: '110', max_wal_size: '512MB', ...durability };
    const disk = join(folder, 'disk');
    mkdirSync(disk);
    const megabytes = diskMegabytes[options.disk];
    const isMounted = megabytes !== undefined && mountDisk(disk, megabytes);
    if (isMounted) running.defer(() => unmountDisk(disk));
    const place = isMounted && options.disk === 'small' ? disk : folder;
    const database = await Database.start(join(place, 'postgres'), { settings, ...slowDisk });
    running.defer(() => database.stop());
    if (isMounted && options.disk === 'small for the log') await database.moveLog(join(disk, 'log'));
    const redis = options.hasRedis ? await startRedis() : undefined;
    running.defer(() => redis?.stop());
    const s3 = options.lake === 's3' ? await startS3() : undefined;
    running.defer(() => s3?.stop());
    const ports = [await freePort(), await freePort()];
    const adminPorts = [await freePort(), await freePort()];
    const serve = await Promise.all(ports.map((port) => FaultProxy.start(port)));
    const nginx = await startNginx(serve.map(({ port }) => port));
    running.defer(() => nginx.stop());
    // The library uses the runtime's own fetch, which trusts the certificates of this list.
    writeFileSync(join(folder, 'ca.pem'), nginx.ca);
    tls.setDefaultCACertificates([...tls.getCACertificates(), nginx.ca.toString()]);
    const proxies = {
      clients: await FaultProxy.start(Number(new URL(nginx.url).port)),
      serve,
      database: await Promise.all(ports.map(() => FaultProxy.start(database.port))),
      lakeDatabase: await FaultProxy.start(database.port),
      redis: redis && (await FaultProxy.start(Number(new URL(redis.url).port))),
    };
    const lakeUrl = s3?.lakeUrl ?? pathToFileURL(join(folder, 'lake')).href;
    const metricsPorts = [await freePort(), await freePort()];
    const parts = { options, folder, database, proxies, lakeUrl, redis, s3, nginx, slowDisk };
    const ownPorts = { ports, adminPorts, metricsPorts };
    const all = { ...parts, ...ownPorts, disk: isMounted ? disk : undefined };
    const world = new World(all);
    running.defer(() => world.#end());
    await world.#prepare();
    for (const program of [...world.serve, world.lake]) program.start();
    if (!(await world.untilReady())) {
      const logs = [...world.serve, world.lake].flatMap(({ name, log }) => [`${name}:`, ...log.slice(-10)]);
      throw new Error(`the processes do not get ready:\n${logs.join('\n')}`);
    }
    world.#running = running.move();
    return world;
  }

  #environment(at: number | 'lake', port?: number): Record<string, string> {
    const proxy = at === 'lake' ? this.proxies.lakeDatabase : (this.proxies.database[at] as FaultProxy);
    const url = (login: string) =>
      `postgres://${login}:${this.database.password}@127.0.0.1:${proxy.port}/postgres`;
    const { PATH = '', AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION } = process.env;
    return {
      PATH,
      TMPDIR: join(this.folder, 'tmp'),
      NODE_ENV: 'production',
      DATABASE_URL: url(at === 'lake' ? logins.lake : logins.serve),
      DATABASE_CONNECTIONS_MAX: '6',
      ERASURE_KEYS: erasureKey,
      LAKE_URL: this.lakeUrl,
      LAKE_DELAY_SECONDS: '1',
      LOG_LEVEL: 'info',
      ...(AWS_REGION && this.s3 && { AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY }),
      ...(this.proxies.redis && { REDIS_URL: `redis://127.0.0.1:${this.proxies.redis.port}` }),
      ...(at !== 'lake' && {
        PORT: String(port),
        ADMIN_PORT: String(this.#adminPorts[at]),
        METRICS_PORT: String(this.#metricsPorts[at]),
        ADMIN_DATABASE_URL: url(logins.admin),
        TRUSTED_PROXY: '127.0.0.1',
        ...unlimited,
      }),
      ...this.options.settings,
    } as Record<string, string>;
  }

  /** Creates the tables, the logins and a token for the admin API. */
  async #prepare(): Promise<void> {
    this.command('migrate');
    const { password } = this.database;
    const create = (login: string, role: string) =>
      this.database.query(`create role ${login} login password '${password}' in role ${role}`);
    await create(logins.serve, 'intake_serve');
    await create(logins.lake, 'intake_serve');
    await create(logins.admin, 'intake_admin');
    this.#adminToken = JSON.parse(this.command('tokens', 'issue', 'faults', '--json')).token;
  }

  /** Runs one of the program's commands as the database's owner, and returns its output. */
  command(...args: string[]): string {
    const env = { PATH: process.env.PATH ?? '', DATABASE_URL: this.database.url, ERASURE_KEYS: erasureKey };
    const more = { ...env, LAKE_URL: this.lakeUrl };
    const ran = spawnSync(process.execPath, [this.options.main, ...args], { env: more, encoding: 'utf8' });
    if (ran.status !== 0) throw new Error(`${args.join(' ')} ended with ${ran.status}: ${ran.stderr}`);
    return ran.stdout;
  }

  /** The address that clients know. */
  get url(): string {
    return `https://127.0.0.1:${this.proxies.clients.port}`;
  }

  /** Calls the admin API of one of the processes until it answers. */
  async admin<T>(method: string, path: string, body?: object): Promise<{ status: number; body: T }> {
    for (let attempt = 0; attempt < 240; attempt++) {
      const port = this.#adminPorts[attempt % this.#adminPorts.length];
      try {
        const answer = await fetch(`http://127.0.0.1:${port}/admin/v1${path}`, {
          method,
          headers: {
            authorization: `Bearer ${this.#adminToken}`,
            ...(body && { 'content-type': 'application/json' }),
          },
          ...(body && { body: JSON.stringify(body) }),
          signal: AbortSignal.timeout(10_000),
        });
        const text = await answer.text();
        if (answer.status < 500 && answer.status !== 429)
          return { status: answer.status, body: text === '' ? null : JSON.parse(text) };
      } catch {
        // The process is gone or frozen.
      }
      await sleep(250);
    }
    throw new Error(`no process answers ${method} ${path}`);
  }

  /** Waits until every process has said that it is ready. Returns false if that takes too long. */
  async untilReady(withinMs = 300_000): Promise<boolean> {
    const deadlineMs = performance.now() + withinMs;
    const isReady = async (port: number) => {
      const signal = AbortSignal.timeout(5_000);
      const answer = await fetch(`http://127.0.0.1:${port}/health/ready`, { signal }).catch(() => null);
      return answer?.status === 200;
    };
    const waitFor = async (port: number) => {
      while (performance.now() < deadlineMs) {
        if (await isReady(port)) return true;
        await sleep(50);
      }
      return false;
    };
    return (await Promise.all(this.#adminPorts.map(waitFor))).every(Boolean);
  }

  /** Returns the process that does the maintenance, if one answers that it does. */
  async leader(): Promise<Program | undefined> {
    const leads = await Promise.all(
      this.#metricsPorts.map((port) =>
        fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(1_000) })
          .then(async (answer) => /^intake_maintenance_leader 1$/m.test(await answer.text()))
          .catch(() => false),
      ),
    );
    return this.serve[leads.indexOf(true)];
  }

  /** Undoes what a fault may have left, whatever it was. */
  async heal(): Promise<void> {
    this.database.signal('SIGCONT');
    this.redis?.thaw();
    this.nginx.signal('SIGCONT');
    for (const program of [...this.serve, this.lake]) {
      program.signal('SIGCONT');
      program.start();
    }
    await this.untilReady();
  }

  /** Returns the end of a wait for something that takes no longer than this. */
  deadline(ms: number): number {
    return performance.now() + ms / (this.options.haste ?? 1);
  }

  get everyProxy(): FaultProxy[] {
    const { clients, serve, database, lakeDatabase, redis } = this.proxies;
    return [clients, ...serve, ...database, lakeDatabase, ...(redis ? [redis] : [])];
  }

  async #end(): Promise<void> {
    this.database.signal('SIGCONT');
    await Promise.all([...this.serve, this.lake].map((program) => program.stop('SIGKILL')));
    for (const proxy of this.everyProxy) proxy.close();
    await this.database.stop();
  }

  async stop(): Promise<void> {
    await this.#running.disposeAsync();
  }
}

interface Parts {
  readonly slowDisk: SlowDisk | undefined;
  readonly disk: string | undefined;
  readonly redis: Redis | undefined;
  readonly s3: S3Server | undefined;
  readonly nginx: Nginx;
  readonly metricsPorts: readonly number[];
  readonly ports: readonly number[];
  readonly adminPorts: readonly number[];
}

/** Enough for a run, and so small that the disk is soon full. */
const diskMegabytes: Readonly<Partial<Record<Disk, number>>> = { small: 2_500, 'small for the log': 900 };

/** The clients send more than the default limits allow. */
const unlimited = {
  REQUESTS_PER_SECOND_MAX: '1000000',
  INTERACTIONS_PER_SECOND_MAX: '1000000',
  BROWSER_INTERACTIONS_PER_SECOND_MAX: '1000000',
  RECORDS_PER_SECOND_MAX: '1000000000',
};
