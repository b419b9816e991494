import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../test/fault/erasure-mixture/random.ts';
import { checkEnd, checkShared } from './checker/check-end.ts';
import { checkReferences, checkTouched } from './checker/check-records.ts';
import type { RunningClient, Stage } from './clients/client.ts';
import { uploadBase } from './clients/exports.ts';
import { clientKinds } from './clients/kinds.ts';
import type { FaultKind, Scene } from './faults/fault.ts';
import { faultKinds } from './faults/kinds.ts';
import type { Plan } from './plan.ts';
import { Organisation } from './world/organisation.ts';
import { Traffic } from './world/traffic.ts';
import { World } from './world/world.ts';

export interface Violation {
  readonly kind: string;
  readonly detail: string;
  readonly second: number;
}

export interface Result {
  readonly plan: Plan;
  readonly violations: readonly Violation[];
  readonly faults: Readonly<Record<string, number>>;
  /** The kinds of faults that were drawn, but that this world cannot have. */
  readonly unavailable: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly statuses: Readonly<Record<string, number>>;
  readonly requests: number;
  readonly acknowledged: number;
  readonly checked: number;
  /** For each fault: its kind, and how long after its end a request succeeded and every process was ready. */
  readonly recoveries: readonly Recovery[];
  readonly succeededPerSecond: readonly number[];
  readonly seconds: number;
}

export interface Recovery {
  readonly kind: string;
  readonly second: number;
  readonly lastedMs: number;
  readonly successMs: number | null;
  readonly readyMs: number | null;
}

export interface RunOptions {
  readonly main: string;
  /** The entry point of a defective copy, which replaces the program once the first records are stored. */
  readonly defective?: string;
  readonly oldMain?: string | undefined;
  /** Stops as soon as one of these promises is broken. */
  readonly stopsAt?: (kind: string) => boolean;
  readonly log: (line: string) => void;
  readonly haste?: number;
  readonly settings?: Readonly<Record<string, string>>;
}

/** How long a run waits for the service after a fault. */
const recoveryMsMax = 300_000;
/** How long clients may take to finish after the end. The library repeats requests for five minutes. */
const finishMsMax = 600_000;

/** Plays a plan in a world of its own, and checks every promise. */
export async function runPlan(plan: Plan, options: RunOptions): Promise<Result> {
  const run = new Run(plan, options);
  // An interrupted run must not leave processes behind.
  const interrupt = (signal: NodeJS.Signals) => {
    options.log(`interrupted by ${signal}`);
    void run.end().finally(() => process.exit(130));
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt);
  try {
    return await run.play().catch((error) => run.fail(error));
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
    await run.end();
  }
}

class Run {
  readonly #plan: Plan;
  readonly #options: RunOptions;
  readonly #violations: Violation[] = [];
  readonly #counts: Record<string, number> = {};
  readonly #faults: Record<string, number> = {};
  readonly #unavailable = new Set<string>();
  readonly #recoveries: Recovery[] = [];
  readonly #over = new AbortController();
  readonly #ended = new AbortController();
  readonly #beganMs = performance.now();
  readonly #organisations: Organisation[] = [];
  readonly #traffic = new Traffic((kind, detail) => this.#violate(kind, detail));
  readonly #clients: { readonly name: string; readonly client: RunningClient }[] = [];
  #world: World | undefined;
  #checked = 0;

  constructor(plan: Plan, options: RunOptions) {
    this.#plan = plan;
    this.#options = options;
  }

  get #second(): number {
    return Math.round((performance.now() - this.#beganMs) / 1_000);
  }

  #violate(kind: string, detail: unknown): void {
    // Clients of a run that stopped early may still be waiting for answers.
    if (this.#ended.signal.aborted) return;
    const text = JSON.stringify(detail);
    this.#violations.push({ kind, detail: text.slice(0, 4_000), second: this.#second });
    const { length } = this.#violations.filter((one) => one.kind === kind);
    if (length <= 2) this.#options.log(`VIOLATION at ${this.#second} s: ${kind}: ${text.slice(0, 1_500)}`);
  }

  #stageOf(organisation: Organisation, seed: number): Stage {
    const over = this.#over.signal;
    return {
      world: this.#world as World,
      organisation,
      random: new Random(seed),
      get isOver() {
        return over.aborted;
      },
      over,
      ended: this.#ended.signal,
      violate: (kind, detail) => this.#violate(kind, detail),
      count: (name, by = 1) => {
        this.#counts[name] = (this.#counts[name] ?? 0) + by;
      },
    };
  }

  async play(): Promise<Result> {
    const { organisations, seconds, lake, hasRedis, disk, isSmall } = this.#plan;
    const { main, oldMain, log, haste = 1, settings = {} } = this.#options;
    this.#world = await World.start({
      main,
      oldMain,
      lake,
      hasRedis,
      disk,
      isSmall,
      haste,
      settings,
    });
    this.#traffic.install();
    try {
      await Promise.all(Array.from({ length: organisations }, (_, at) => this.#createOrganisation(at)));
    } catch (error) {
      // Nothing is disturbed yet, so everything must succeed.
      this.#violate('harness: the beginning failed', String((error as Error).stack));
      this.#organisations.splice(0);
      return this.#result();
    }
    await this.#plant();
    log(`ready after ${this.#second} s`);
    const working = this.#startClients();
    const faulting = this.#playFaults().catch((error) => {
      // A run that stops early ends its database below the checks.
      if (!this.#mayStop) this.#violate('harness: faults', String(error.stack));
    });
    const endMs = performance.now() + seconds * 1_000;
    while (performance.now() < endMs && !this.#mayStop) await sleep(100);
    this.#over.abort();
    if (this.#mayStop) return this.#result();
    await faulting;
    await this.#world.heal();
    await this.#finish(working);
    await this.#checkEnd();
    return this.#result();
  }

  async #plant(): Promise<void> {
    const { defective } = this.#options;
    if (!defective) return;
    const world = this.#world as World;
    for (const program of [...world.serve, world.lake]) {
      program.main = defective;
      await program.stop();
      program.start();
    }
    if (!(await world.untilReady())) throw new Error('the defective copy does not get ready');
  }

  async #createOrganisation(at: number): Promise<void> {
    const { seed } = this.#plan;
    const world = this.#world as World;
    const organisation = await Organisation.create(world, `org-${at}`, seed);
    this.#organisations[at] = organisation;
    await organisation.switchOn(world, { lake: at % 3 !== 1, report: at % 3 !== 0 });
    await uploadBase(this.#stageOf(organisation, seed + at));
  }

  get #mayStop(): boolean {
    const { stopsAt } = this.#options;
    return stopsAt !== undefined && this.#violations.some(({ kind }) => stopsAt(kind));
  }

  #startClients(): Promise<unknown> {
    return Promise.all(
      this.#plan.clients.map(async ({ kind, organisation, seed }) => {
        const found = clientKinds.find(({ name }) => name === kind);
        if (!found) throw new Error(`there is no kind of client ${kind}`);
        const client = found.start(this.#stageOf(this.#organisations[organisation] as Organisation, seed));
        this.#clients.push({ name: kind, client });
        await client.run().catch((error) => this.#violate(`harness: ${kind}`, String(error.stack)));
      }),
    );
  }

  async #playFaults(): Promise<void> {
    for (const { kind, pauseMs, seed } of this.#plan.faults) {
      await sleep(pauseMs, undefined, { signal: this.#over.signal }).catch(() => {});
      if (this.#over.signal.aborted) return;
      const fault = faultKinds.find(({ name }) => name === kind);
      const world = this.#world as World;
      if (!fault || fault.suits?.(world) === false) {
        this.#unavailable.add(kind);
        continue;
      }
      await this.#playFault(fault, new Random(seed));
      await this.#checkNow();
    }
  }

  async #playFault(fault: FaultKind, random: Random): Promise<void> {
    const world = this.#world as World;
    const scene: Scene = {
      world,
      organisations: this.#organisations,
      random,
      violate: (kind, detail) => this.#violate(kind, detail),
    };
    this.#faults[fault.name] = (this.#faults[fault.name] ?? 0) + 1;
    const [second, beganMs] = [this.#second, performance.now()];
    try {
      await fault.play(scene);
    } catch (error) {
      this.#violate(`harness: fault ${fault.name}`, String((error as Error).stack));
    }
    const endedMs = performance.now();
    // When the clients end, there may be no more writes.
    const over = sleep(recoveryMsMax, null, { ref: false, signal: this.#over.signal }).catch(() => null);
    const success = Promise.race([this.#traffic.nextSuccess(), over]);
    const isReady = await world.untilReady(recoveryMsMax);
    const readyMs = performance.now() - endedMs;
    const successAt = await success;
    if (!isReady) this.#violate(`I7: not ready after ${fault.name}`, { log: logsOf(world) });
    if (successAt === null && this.#over.signal.aborted) return;
    if (successAt === null) this.#violate(`I7: no success after ${fault.name}`, { log: logsOf(world) });
    this.#recoveries.push({
      kind: fault.name,
      second,
      lastedMs: Math.round(endedMs - beganMs),
      successMs: successAt === null ? null : Math.max(0, Math.round(successAt - endedMs)),
      readyMs: isReady ? Math.round(readyMs) : null,
    });
  }

  /** Checks what changed since the last check, while clients go on. */
  async #checkNow(): Promise<void> {
    const violate = (kind: string, detail: unknown) => this.#violate(kind, detail);
    for (const organisation of this.#organisations)
      await (this.#world as World).database.connected(async (client) => {
        this.#checked += await checkTouched(client, organisation, violate);
        await checkReferences(client, organisation, violate);
      });
  }

  async #finish(working: Promise<unknown>): Promise<void> {
    const late = sleep(finishMsMax, 'late', { ref: false });
    if ((await Promise.race([working, late])) === 'late')
      this.#violate('I7: clients do not finish', { log: logsOf(this.#world as World) });
    // A killed process may have left a transaction, which ends when PostgreSQL notices.
    const old = `select from pg_stat_activity where xact_start < now() - interval '1 s'
      and usename like 'intake_faults%' and backend_type = 'client backend'`;
    for (let time = 0; time < 100; time++) {
      if ((await (this.#world as World).database.query(old)).length === 0) break;
      await sleep(200);
    }
  }

  async #checkEnd(): Promise<void> {
    const world = this.#world as World;
    const violate = (kind: string, detail: unknown) => this.#violate(kind, detail);
    this.#options.log(`checking after ${this.#second} s`);
    for (const { name, client } of this.#clients)
      if (!this.#mayStop)
        await client.check?.().catch((error) => this.#violate(`harness: ${name}`, String(error.stack)));
    for (const organisation of this.#organisations)
      if (!this.#mayStop) this.#checked += await checkEnd(world, organisation, violate);
    if (!this.#mayStop) await checkShared(world, this.#organisations, violate);
  }

  /** Ends a run that could not be played, so that a campaign continues with the next. */
  fail(error: Error): Result {
    this.#violate('harness: the run', String(error.stack));
    return this.#result();
  }

  #result(): Result {
    const acknowledged = this.#organisations.reduce((sum, { ledger }) => sum + ledger.acknowledged, 0);
    return {
      plan: this.#plan,
      violations: this.#violations,
      faults: this.#faults,
      unavailable: [...this.#unavailable],
      counts: this.#counts,
      statuses: Object.fromEntries(this.#traffic.statuses),
      requests: this.#traffic.requests,
      acknowledged,
      checked: this.#checked,
      recoveries: this.#recoveries,
      succeededPerSecond: Array.from(this.#traffic.succeeded, (count) => count ?? 0),
      seconds: this.#second,
    };
  }

  async end(): Promise<void> {
    this.#ended.abort();
    this.#over.abort();
    this.#traffic.remove();
    await this.#world?.stop();
  }
}

const logsOf = ({ serve, lake }: World) =>
  Object.fromEntries([...serve, lake].map(({ name, log }) => [name, log.slice(-8)]));
