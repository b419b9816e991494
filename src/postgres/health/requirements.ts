import type { RequestError } from '../../errors.ts';

/** Something without which a process must not serve. */
export interface Requirement {
  /** Looks at it. Rejects if the database does not answer. */
  look(): Promise<void>;
  /** Returns what is wrong, as of the last look. */
  unmet(): RequestError | undefined;
}

const intervalMs = 5_000;

interface RequirementLog {
  error(text: string): void;
  info(text: string): void;
}

/** Looks at a process's requirements every few seconds, whether or not there are requests. */
export class Requirements {
  readonly #all: readonly Requirement[];
  readonly #looked = new Set<Requirement>();

  constructor(all: readonly Requirement[]) {
    this.#all = all;
  }

  /** Returns what is wrong, as of a few seconds ago. Rejects if that is still unknown. */
  async unmet(): Promise<RequestError | undefined> {
    for (const one of this.#all) {
      if (!this.#looked.has(one)) await this.#look(one);
      const error = one.unmet();
      if (error) return error;
    }
    return undefined;
  }

  /** Starts looking, and logs once what is wrong and when it is right again. Returns a function that stops it. */
  watch(log: RequirementLog): () => void {
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
