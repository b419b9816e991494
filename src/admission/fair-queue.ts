import { RequestError } from '../errors.ts';

interface FairQueueOptions {
  readonly atOnce: number;
  /** Unlimited by default. */
  readonly perOrganisationMax?: number;
  readonly waitingMax: number;
  /** If unset, tasks may wait forever. */
  readonly waitMs?: number;
}

interface Waiting {
  readonly max: number;
  readonly begin: () => void;
}

/**
 * Runs a few tasks concurrently and lets organisations take turns: however many tasks one of them has queued, another
 * waits only for the tasks that are already running.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  readonly #perOrganisationMax: number;
  /** The organisation whose turn is next comes first. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  #waitingCount = 0;
  readonly #workingFor = new Map<string, number>();
  #working = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
    this.#perOrganisationMax = options.perOrganisationMax ?? options.atOnce;
  }

  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** The organisation's next task waits for as long as this one took, up to `restMsMax`. Other organisations' do not. */
  async take<T>(organisationId: string, work: () => Promise<T>, restMsMax = 0): Promise<T> {
    const end = await this.begin(organisationId);
    const beganMs = performance.now();
    try {
      return await work();
    } finally {
      end(Math.min(performance.now() - beganMs, restMsMax));
    }
  }

  /** Resolves to a function that ends the task. At most `max` of the organisation's tasks run at the same time. */
  async begin(organisationId: string, max = this.#perOrganisationMax): Promise<(restMs?: number) => void> {
    if (this.#isFreeFor(organisationId, max)) this.#start(organisationId);
    else await this.#wait(organisationId, max);
    let hasEnded = false;
    return (restMs = 0) => {
      if (hasEnded) return;
      hasEnded = true;
      this.#end(organisationId, restMs);
    };
  }

  #isFreeFor(organisationId: string, max: number): boolean {
    const working = this.#workingFor.get(organisationId) ?? 0;
    return this.#working < this.#options.atOnce && working < max;
  }

  #wait(organisationId: string, max: number): Promise<void> {
    const { waitingMax, waitMs } = this.#options;
    if (this.#waitingCount >= waitingMax) return Promise.reject(new RequestError('overloaded'));
    return new Promise<void>((resolve, reject) => {
      const refuse = () => {
        this.#forget(organisationId, waiting);
        reject(new RequestError('overloaded'));
      };
      const timer = waitMs === undefined ? undefined : setTimeout(refuse, waitMs);
      const waiting: Waiting = {
        max,
        begin: () => {
          clearTimeout(timer);
          this.#forget(organisationId, waiting);
          this.#start(organisationId);
          resolve();
        },
      };
      const others = this.#waiting.get(organisationId);
      if (others) others.add(waiting);
      else this.#waiting.set(organisationId, new Set([waiting]));
      this.#waitingCount++;
    });
  }

  #forget(organisationId: string, waiting: Waiting): void {
    const others = this.#waiting.get(organisationId);
    if (!others?.delete(waiting)) return;
    this.#waitingCount--;
    if (others.size === 0) this.#waiting.delete(organisationId);
  }

  #start(organisationId: string): void {
    this.#working++;
    this.#workingFor.set(organisationId, (this.#workingFor.get(organisationId) ?? 0) + 1);
  }

  #end(organisationId: string, restMs: number): void {
    this.#working--;
    if (restMs === 0) this.#rested(organisationId);
    else {
      setTimeout(() => this.#rested(organisationId), restMs);
      this.#startNext();
    }
  }

  #rested(organisationId: string): void {
    const working = (this.#workingFor.get(organisationId) ?? 0) - 1;
    if (working > 0) this.#workingFor.set(organisationId, working);
    else this.#workingFor.delete(organisationId);
    this.#startNext();
  }

  #startNext(): void {
    for (const [next, waiting] of this.#waiting) {
      const [first] = waiting;
      if (!first || !this.#isFreeFor(next, first.max)) continue;
      first.begin();
      // Move the organisation to the end of the queue.
      if (this.#waiting.delete(next) && waiting.size > 0) this.#waiting.set(next, waiting);
      return;
    }
  }
}
