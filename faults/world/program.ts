import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const linesKept = 400;

/** Tells whether a text contains the id of a person. */
export type NamesPerson = (text: string) => boolean;

/** A process of the service with its supervisor, which starts it again whenever it ends, as systemd does. */
export class Program {
  readonly name: string;
  /** The entry point of the next start. */
  main: string;
  readonly #command: string;
  readonly #namesPerson: NamesPerson;
  /** The environment of the next start. */
  env: Record<string, string>;
  /** The last lines of the log. */
  readonly log: string[] = [];
  /** Lines that report a bug, as opposed to something that a fault explains. */
  readonly bugs: string[] = [];
  /** Lines that contain the id of a person. */
  readonly leaks: string[] = [];
  starts = 0;
  /** How long the supervisor waits before it starts the program again. */
  pauseMs = 200;
  #child: ChildProcess | undefined;
  #isWanted = false;
  #isFrozen = false;
  #supervised: Promise<void> = Promise.resolve();

  constructor(
    name: string,
    main: string,
    command: string,
    env: Record<string, string>,
    namesPerson: NamesPerson,
  ) {
    this.name = name;
    this.#namesPerson = namesPerson;
    this.main = main;
    this.#command = command;
    this.env = env;
  }

  get pid(): number | undefined {
    return this.isRunning ? this.#child?.pid : undefined;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  start(): void {
    if (this.#isWanted) return;
    this.#isWanted = true;
    this.#supervised = this.#supervise();
  }

  async #supervise(): Promise<void> {
    while (this.#isWanted) {
      const args = ['--max-old-space-size=700', this.main, this.#command];
      const child = spawn(process.execPath, args, { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
      this.#child = child;
      this.starts++;
      for (const stream of [child.stdout, child.stderr])
        createInterface({ input: stream }).on('line', (line) => this.#note(line));
      await once(child, 'close');
      this.#isFrozen = false;
      if (this.#isWanted) await sleep(this.pauseMs);
    }
  }

  #note(line: string): void {
    if (this.#namesPerson(line)) this.leaks.push(line);
    // Most lines report an answer.
    if (!line.startsWith('{"level":30')) this.log.push(line);
    if (this.log.length > linesKept) this.log.shift();
    // Errors of the language are bugs, whatever the fault. All other errors may follow from one.
    if (
      /\b(TypeError|RangeError|ReferenceError|ERR_ASSERTION|heap out of memory|UnhandledPromise)/.test(line)
    )
      this.bugs.push(line);
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.isRunning) return;
    if (signal === 'SIGSTOP') this.#isFrozen = true;
    if (signal === 'SIGCONT') this.#isFrozen = false;
    this.#child?.kill(signal);
  }

  /** Stops the program for good, or until `start` is called. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#isWanted = false;
    this.signal('SIGCONT');
    if (this.isRunning) this.#child?.kill(signal);
    const killed = setTimeout(() => this.#child?.kill('SIGKILL'), 40_000);
    await this.#supervised;
    clearTimeout(killed);
  }
}
