import type { Connection } from './connection.ts';
import { IntakeError } from './errors.ts';
import type { components } from './generated/api.ts';
import { limits } from './limits.ts';

export type NewInteraction = components['schemas']['NewInteraction'];
export type Interaction = components['schemas']['Interaction'];

interface Queued {
  readonly body: string;
  readonly key: string;
  readonly signal: AbortSignal | undefined;
  resolve(interaction: Interaction): void;
  reject(error: unknown): void;
}

/** Sends interactions a few at a time. When the page is hidden, which may be its end, everything is sent at once. */
export class InteractionQueue {
  readonly #connection: Connection;
  readonly #waiting: Queued[] = [];
  readonly #underWay = new Set<Queued>();

  constructor(connection: Connection) {
    this.#connection = connection;
    const page = globalThis.document as Document | undefined;
    page?.addEventListener('visibilitychange', () => {
      if (page.visibilityState === 'hidden') this.#flush();
    });
  }

  record(interaction: NewInteraction, signal?: AbortSignal): Promise<Interaction> {
    return new Promise((resolve, reject) => {
      if (this.#waiting.length >= limits.interactionsQueuedMax) {
        const message = `${limits.interactionsQueuedMax} interactions are waiting to be sent. Record fewer, or wait for them.`;
        return reject(new IntakeError('queue_full', message));
      }
      const body = JSON.stringify(interaction);
      this.#waiting.push({ body, key: crypto.randomUUID(), signal, resolve, reject });
      this.#next();
    });
  }

  #next(): void {
    while (this.#underWay.size < limits.interactionsInFlightMax) {
      const queued = this.#waiting.shift();
      if (!queued) return;
      this.#send(queued);
    }
  }

  /**
   * Requests under way may be waiting for a retry that never comes; sending them again with the same key is harmless.
   */
  #flush(): void {
    for (const queued of [...this.#underWay, ...this.#waiting.splice(0)]) this.#send(queued, true);
  }

  async #send(queued: Queued, urgent = false): Promise<void> {
    this.#underWay.add(queued);
    try {
      const answer = await this.#connection.request<Interaction>({
        method: 'POST',
        path: '/user-interactions',
        body: queued.body,
        headers: { 'idempotency-key': queued.key },
        // Lets the request outlive the page.
        keepalive: true,
        urgent,
        signal: queued.signal,
      });
      queued.resolve(answer);
    } catch (error) {
      queued.reject(error);
    }
    this.#underWay.delete(queued);
    this.#next();
  }
}
