import { setTimeout as sleep } from 'node:timers/promises';
import type { Write } from './oracle.ts';
import type { World } from './people.ts';
import type { Processes } from './processes.ts';
import type { Random } from './random.ts';

/** An HTTP response, or null if there was none. */
export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the checker reads many shapes and treats unexpected ones as failures.
  readonly body: any;
}

export interface Keys {
  readonly own: string;
  readonly browser: string;
}

export const browserOrigin = 'https://shop.example';

/** Something that must never happen, and what shows it. */
export interface Violation {
  readonly kind: string;
  readonly detail: string;
}

/** One round on its own organisation: what is known about it, and how requests reach it. */
export class Round {
  readonly organisationId: string;
  readonly world: World;
  readonly keys: Keys;
  readonly processes: Processes;
  /** Whether the organisation has a lake, which each erasure has to clear too. */
  readonly hasLake: boolean;
  readonly writes: Write[] = [];
  readonly violations: Violation[] = [];
  isOver = false;
  areShopsComplete = false;
  #version = 0;

  constructor(organisationId: string, world: World, keys: Keys, processes: Processes, hasLake: boolean) {
    this.organisationId = organisationId;
    this.world = world;
    this.keys = keys;
    this.processes = processes;
    this.hasLake = hasLake;
  }

  nextVersion(): number {
    return ++this.#version;
  }

  violate(kind: string, detail: unknown): void {
    this.violations.push({ kind, detail: JSON.stringify(detail) });
  }

  /** Sends one request to one of the processes. Returns null if the outcome is unknown. */
  async ask(
    random: Random,
    method: string,
    path: string,
    sent: { body?: object; key?: string; headers?: Record<string, string> } = {},
  ): Promise<Reply | null> {
    try {
      const response = await fetch(this.processes.url(random) + path, {
        method,
        headers: {
          authorization: `Bearer ${sent.key ?? this.keys.own}`,
          ...(sent.body && { 'content-type': 'application/json' }),
          ...sent.headers,
        },
        ...(sent.body && { body: JSON.stringify(sent.body) }),
        signal: AbortSignal.timeout(30_000),
      });
      const text = await response.text();
      if (response.status === 500) this.violate('an internal error', { method, path, text });
      if (response.status >= 500 || response.status === 429) return null;
      const isJson = response.headers.get('content-type')?.startsWith('application/json');
      return { status: response.status, body: isJson ? JSON.parse(text) : text };
    } catch {
      // The process was killed, is starting, or is frozen.
      return null;
    }
  }

  /** Sends a repeatable request until it is answered. */
  async askUntilAnswered(random: Random, method: string, path: string, body?: object): Promise<Reply> {
    for (let attempt = 0; attempt < 100; attempt++) {
      const reply = await this.ask(random, method, path, body ? { body } : {});
      if (reply) return reply;
      await sleep(200);
    }
    throw new Error(`no process answers ${method} ${path.replace(/\/[0-9a-f-]{36}/, '/…')}`);
  }
}
