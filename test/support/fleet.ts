import { randomUUID } from 'node:crypto';
import { Agent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { apiOf } from './api.ts';
import { type BuiltServer, startBuiltServer } from './built-server.ts';
import { createTestDatabase } from './database.ts';
import { exchange } from './exchange.ts';
import { freePort } from './free-port.ts';
import { many, newTag } from './new-records.ts';
import { type Nginx, startNginx } from './nginx.ts';
import { queryDatabase } from './query-database.ts';
import { runCommand } from './run-command.ts';

const attemptsMax = 3;

/**
 * Runs a scenario with its own fleet. A process that has just started looks up the key. If the machine stalls for
 * longer than the lookup may take, the request gets database_unavailable. If nothing else failed, the scenario is run
 * again.
 */
export async function playWithFleet(play: (fleet: Fleet) => Promise<Served>, processes = 4): Promise<Served> {
  for (let attempt = 1; ; attempt++) {
    const fleet = await Fleet.start(processes);
    try {
      const served = await play(fleet);
      const isSlow = served.failed.length > 0 && served.failed.every((one) => isAway.test(one));
      if (!isSlow || attempt === attemptsMax) return served;
      console.log('played again, because the database was too slow:', served.failed);
    } finally {
      await fleet.stop();
    }
  }
}

const isAway = / 503 .*"database_unavailable"/;

export interface Served {
  readonly answered: number;
  readonly failed: readonly string[];
  /** Acknowledged records that are missing or stored twice. */
  readonly lost: readonly string[];
}

/** Processes behind nginx, as in docs/operating/setup.md. Clients only know nginx's address. */
class Fleet {
  readonly databaseUrl: string;
  readonly key: string;
  readonly itemId: string;
  readonly nginx: Nginx;
  readonly #ports: readonly number[];
  readonly #servers: BuiltServer[] = [];

  private constructor(databaseUrl: string, key: string, ports: readonly number[], nginx: Nginx) {
    this.databaseUrl = databaseUrl;
    this.key = key;
    this.itemId = randomUUID();
    this.#ports = ports;
    this.nginx = nginx;
  }

  static async start(processes: number): Promise<Fleet> {
    const databaseUrl = await createTestDatabase();
    const run = (...args: string[]) => runCommand(args, { DATABASE_URL: databaseUrl });
    await run('organisations', 'create', 'acme');
    const { key } = JSON.parse((await run('keys', 'issue', '--organisation', 'acme', '--json')).stdout);
    const ports: number[] = [];
    while (ports.length < processes) ports.push(await freePort());
    const fleet = new Fleet(databaseUrl, key, ports, await startNginx(ports));
    try {
      await Promise.all(ports.map((_, index) => fleet.startOne(index)));
      const { status } = await fleet.#send('/v1/data/tags', { records: [newTag({ tag_id: fleet.itemId })] });
      expect(status).toBe(200);
      return fleet;
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  /** Starts a process of this or another version on its port, and waits until it is ready. */
  async startOne(index: number, main?: string): Promise<BuiltServer> {
    const env = {
      DATABASE_URL: this.databaseUrl,
      PORT: String(this.#ports[index]),
      TRUSTED_PROXY: '127.0.0.1',
      DATABASE_CONNECTIONS_MAX: '4',
    };
    const server = await startBuiltServer(env, main);
    this.#servers[index] = server;
    while ((await apiOf(server.url).get('/health/ready')).status !== 200) await sleep(50);
    return server;
  }

  /** Stops a process as a supervisor does, and starts it again. */
  async restart(index: number, main?: string): Promise<BuiltServer> {
    await this.#servers[index]?.stop();
    expect(this.#servers[index]?.process.exitCode).toBe(0);
    return this.startOne(index, main);
  }

  #send(path: string, body: unknown, agent?: Agent) {
    const headers = { connection: 'keep-alive' };
    const { key, nginx } = this;
    return exchange(nginx.url + path, {
      key,
      headers,
      ca: [nginx.ca],
      ...(agent && { agent }),
      ...(body !== undefined && { body }),
    });
  }

  /** Uploads, records interactions without an Idempotency-Key, and reads until stopped. Then it reports the failures. */
  startClients(): { stop(): Promise<Served> } {
    const agent = new Agent({ keepAlive: true, ca: [this.nginx.ca] });
    const failed: string[] = [];
    const uploaded: string[] = [];
    const interacted: string[] = [];
    let answered = 0;
    let isOver = false;
    const keepOn = async (next: (mark: string) => [path: string, body: unknown, done?: string[]]) => {
      while (!isOver) {
        const mark = randomUUID();
        const [path, body, done] = next(mark);
        try {
          const { status, body: said } = await this.#send(path, body, agent);
          if (status === 200 || status === 201) done?.push(mark);
          else failed.push(`${path} ${status} ${said.slice(0, 200)}`);
        } catch (error) {
          failed.push(`${path} ${(error as Error).message}`);
        }
        answered++;
        await sleep(20);
      }
    };
    const item = { interaction_type: 'SHARE', item_type: 'TAG', item_id: this.itemId, event_timestamp: 1 };
    const clients = [
      ...many(2, () =>
        keepOn((mark) => {
          const records = many(50, (index) => newTag(index === 0 ? { tag_id: mark } : {}));
          return ['/v1/data/tags', { records }, uploaded];
        }),
      ),
      ...many(4, () => keepOn((mark) => ['/user-interactions', { ...item, user_id: mark }, interacted])),
      ...many(1, () => keepOn(() => ['/v1/data', undefined])),
    ];
    return {
      stop: async () => {
        isOver = true;
        await Promise.all(clients);
        agent.destroy();
        const lost = await this.#lost(uploaded, interacted);
        return { answered, failed, lost };
      },
    };
  }

  async #lost(uploaded: readonly string[], interacted: readonly string[]): Promise<string[]> {
    const tags = await queryDatabase<{ tag_id: string }>(this.databaseUrl, 'select tag_id from tags');
    const stored = new Set(tags.map(({ tag_id }) => tag_id));
    const users = await queryDatabase<{ user_id: string; times: number }>(
      this.databaseUrl,
      'select user_id, count(*)::integer as times from interactions group by user_id',
    );
    const times = new Map(users.map((user) => [user.user_id, user.times]));
    return [
      ...uploaded.filter((mark) => !stored.has(mark)),
      ...interacted.filter((mark) => times.get(mark) !== 1),
    ];
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
    await this.nginx.stop();
  }
}
