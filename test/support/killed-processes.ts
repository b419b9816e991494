import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { expect, inject } from 'vitest';
import { type BuiltServer, startBuiltServer } from './built-server.ts';
import { createTestDatabase } from './database.ts';

/** How often a process is killed during each kind of work. */
export const kills = Number(process.env.KILLS ?? 3);

/** Processes that do the maintenance of one database, one after another. Each is killed while it works. */
export class KilledProcesses {
  readonly databaseUrl: string;
  readonly admin: pg.Client;
  readonly #logs: (readonly string[])[] = [];
  #server: BuiltServer | undefined;

  private constructor(databaseUrl: string) {
    this.databaseUrl = databaseUrl;
    this.admin = new pg.Client({ connectionString: databaseUrl });
  }

  static async create(): Promise<KilledProcesses> {
    const made = new KilledProcesses(await createTestDatabase());
    await made.admin.connect();
    return made;
  }

  /** What all processes have logged. */
  get log(): string[] {
    return this.#logs.flat();
  }

  async start(): Promise<BuiltServer> {
    // Delete the killed process's lease, which would last another 15 s.
    await this.admin.query('delete from leases');
    this.#server = await startBuiltServer({ DATABASE_URL: this.databaseUrl });
    this.#logs.push(this.#server.log);
    return this.#server;
  }

  async kill(): Promise<void> {
    const running = this.#server?.process;
    this.#server = undefined;
    if (!running) return;
    const closed = once(running, 'close');
    running.kill('SIGKILL');
    await closed;
  }

  /**
   * Makes each step of a job this long, so that most kills hit the middle of one, and no work is done before the last kill. On
   * a cluster, where steps are slower, a distributed table cannot have such triggers.
   */
  async slowSteps(ms: number): Promise<void> {
    if (inject('citus') !== null) return;
    await this.admin.query(
      `create function slow_step() returns trigger language plpgsql as $$
       begin perform pg_sleep(${ms / 1_000}); return new; end $$;
       create trigger slow_steps before update on jobs for each row execute function slow_step()`,
    );
  }

  async endSlowSteps(): Promise<void> {
    if (inject('citus') === null) await this.admin.query('drop trigger slow_steps on jobs');
  }

  /**
   * Starts and kills one process after another, each after a step of all work or in the middle of the next one. Each of
   * `places` returns where some work has arrived, or undefined when it is done, which must not be before the last kill.
   */
  async killOften(stepMs: number, ...places: (() => Promise<string | undefined>)[]): Promise<void> {
    for (let killed = 0; killed < kills; killed++) {
      const before: (string | undefined)[] = [];
      for (const place of places) before.push(await place());
      await this.start();
      for (const [at, place] of places.entries()) while ((await place()) === before[at]) await sleep(1);
      await sleep(Math.random() * stepMs);
      await this.kill();
      for (const place of places) expect(await place(), `work was done after ${killed} kills`).toBeDefined();
    }
  }

  async end(): Promise<void> {
    await this.#server?.stop();
    await this.admin.end();
  }
}
