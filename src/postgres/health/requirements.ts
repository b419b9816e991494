import type { RequestError } from '../../errors.ts';

/** Something without which a process must not serve. */
export interface Requirement {
  /** Rejects if the database does not answer. */
  look(): Promise<void>;
  /** As of the last look. */
  unmet(): RequestError | undefined;
}

const intervalMs = 5_000;

/** Looks at a process's requirements every few seconds, whether or not there are requests. */
export class Requirements {
  readonly #all: readonly Requirement[];
  readonly #looked = new Set<Requirement>();

  constructor(all: readonly Requirement[]) {
    this.#all = all;
  }

  /** As of a few seconds ago. Rejects if it is still unknown. */
  async unmet(): Promise<RequestError | undefined> {
    for (const one of this.#all) {
      if (!this.#looked.has(one)) await this.#look(one);
      const error = one.unmet();
      if (error) return error;
    }
    return undefined;
  }

  /** Logs once what is wrong and when it is right again. Returns a function that stops watching. */
  watch(log: { error(text: string): void; info(text: string): void }): () => void {
    const logged = new Map<Requirement, string>();
    const look = async (one: Requirement) => {
      // The poll for changed API keys reports that the database is away.
      await this.#look(one).catch(() => {});
      const { code, message } = one.unmet() ?? { code: '', message: '' };
      const before = logged.get(one) ?? '';
      if (code !== before && code !== '') log.error(message);
      if (code !== before && before !== '') log.info(`No longer: ${before}`);
      logged.set(one, code);
    };
    const lookAtAll = () => void Promise.all(this.#all.map(look));
    lookAtAll();
    const timer = setInterval(lookAtAll, intervalMs).unref();
    return () => clearInterval(timer);
  }

  async #look(one: Requirement): Promise<void> {
    await one.look();
    this.#looked.add(one);
  }
}
