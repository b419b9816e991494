import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { type BuiltServer, startBuiltServer } from '../../support/built-server.ts';
import { type DelayingProxy, startDelayingProxy } from '../../support/delaying-proxy.ts';
import { startLakeProcess } from '../../support/running-lake.ts';
import type { Random } from './random.ts';

interface Settings extends Record<string, string> {
  readonly LAKE_URL: string;
}

/** Maintenance is recognised by what its connections have sent. Its statements are held back more often. */
const saysMaintenance = /\b(from|update|into) (erasures|jobs)\b/;

/** Several `serve` processes on one database, each behind a proxy that holds back statements, and one that writes lakes. */
export class Processes {
  readonly #admin: pg.Client;
  readonly #random: Random;
  readonly #databaseUrl: string;
  readonly #settings: Settings;
  readonly #proxies: DelayingProxy[] = [];
  readonly #servers: BuiltServer[] = [];
  /** The connections that have sent statements of maintenance. */
  readonly #sweeping = new WeakSet<object>();
  #lake: Awaited<ReturnType<typeof startLakeProcess>> | undefined;
  readonly counts = { kills: 0, freezes: 0, 'leaders moved': 0, 'lakes killed': 0 };
  isSlow = false;

  private constructor(databaseUrl: string, admin: pg.Client, random: Random, settings: Settings) {
    this.#databaseUrl = databaseUrl;
    this.#settings = settings;
    this.#admin = admin;
    this.#random = random;
  }

  static async start(
    databaseUrl: string,
    admin: pg.Client,
    random: Random,
    settings: Settings,
    count = 2,
  ): Promise<Processes> {
    const all = new Processes(databaseUrl, admin, random, settings);
    for (let at = 0; at < count; at++) {
      const proxy = await startDelayingProxy(databaseUrl, (bytes, connection) =>
        all.#delay(bytes, connection),
      );
      all.#proxies.push(proxy);
      all.#servers.push(await all.#startOne(at));
    }
    await all.#startLake();
    return all;
  }

  #delay(bytes: Buffer, connection: object): Promise<unknown> | null {
    if (!this.#sweeping.has(connection) && saysMaintenance.test(bytes.toString('latin1')))
      this.#sweeping.add(connection);
    if (!this.isSlow) return null;
    const isMaintenance = this.#sweeping.has(connection);
    if (!this.#random.chance(isMaintenance ? 0.15 : 0.003)) return null;
    return sleep(1 + this.#random.below(isMaintenance ? 250 : 60));
  }

  #startOne(at: number): Promise<BuiltServer> {
    const DATABASE_URL = this.#proxies[at]?.databaseUrl as string;
    return startBuiltServer({ ...this.#settings, DATABASE_URL, DATABASE_CONNECTIONS_MAX: '6' });
  }

  async #startLake(): Promise<void> {
    this.#lake = await startLakeProcess(this.#databaseUrl, this.#settings.LAKE_URL, this.#settings);
  }

  get first(): BuiltServer {
    return this.#servers[0] as BuiltServer;
  }

  get pauses(): number {
    return this.#proxies.reduce((sum, { pauses }) => sum + pauses, 0);
  }

  /** Returns the address of one of the processes, which may be about to be killed. */
  url(random: Random): string {
    return random.pick(this.#servers).url;
  }

  /** Kills, freezes or deposes one of the processes at random, again and again. */
  async disturb(until: () => boolean, random: Random, hasLake: boolean): Promise<void> {
    while (!until()) {
      await sleep(500 + random.below(1_500));
      const at = random.below(this.#servers.length);
      if (hasLake && random.chance(0.25)) await this.killLake();
      const roll = random.next();
      if (roll < 0.4) await this.#kill(at);
      else if (roll < 0.7) await this.#freeze(at, 200 + random.below(800));
      else await this.#moveLeader();
    }
  }

  async #kill(at: number): Promise<void> {
    const { process: running } = this.#servers[at] as BuiltServer;
    this.counts.kills++;
    const closed = once(running, 'close');
    running.kill('SIGKILL');
    await closed;
    await this.#moveLeader();
    this.#servers[at] = await this.#startOne(at);
  }

  /** Kills the process that writes the lakes. Another one takes its work over at once. */
  async killLake(): Promise<void> {
    this.counts['lakes killed']++;
    await this.#lake?.stop('SIGKILL');
    // Otherwise the next process would have to wait for 15 seconds.
    await this.#admin.query(`update lake_slots set holder = null, ends_at = '-infinity'`);
    await this.#admin.query('delete from lake_processes');
    await this.#startLake();
  }

  /** Freezes a process for as long as another one needs to become the leader. */
  async #freeze(at: number, ms: number): Promise<void> {
    const { process: running } = this.#servers[at] as BuiltServer;
    this.counts.freezes++;
    running.kill('SIGSTOP');
    await this.#moveLeader();
    await sleep(ms);
    running.kill('SIGCONT');
  }

  /** Ends the lease as if it had expired, so that the next process that asks becomes the leader. */
  async #moveLeader(): Promise<void> {
    this.counts['leaders moved']++;
    await this.#admin.query('delete from leases');
  }

  /** Returns the ends of the processes' logs, for failures that the test cannot explain. */
  logs(lines = 10): string {
    const logs = [...this.#servers.map(({ log }) => log), this.#lake?.log ?? []];
    return logs.map((log) => log.slice(-lines).join('\n')).join('\n--\n');
  }

  async stop(): Promise<void> {
    await this.#lake?.stop();
    await Promise.all(this.#servers.map((server) => server.stop()));
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
  }
}
