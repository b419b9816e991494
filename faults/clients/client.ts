import { Intake } from '../../client/src/index.ts';
import type { Random } from '../../test/fault/erasure-mixture/random.ts';
import type { Organisation } from '../world/organisation.ts';
import type { World } from '../world/world.ts';

/** What a client of a run can use. */
export interface Stage {
  readonly world: World;
  readonly organisation: Organisation;
  readonly random: Random;
  /** Turns true when the clients should finish what they are doing and return. */
  readonly isOver: boolean;
  /** Aborted when `isOver` turns true, for clients that wait. */
  readonly over: AbortSignal;
  /** Aborted when the run ends, also if nothing was checked. */
  readonly ended: AbortSignal;
  /** Reports that a promise was broken. `kind` begins with the promise, such as `I4: …`. */
  violate(kind: string, detail: unknown): void;
  /** Counts something for the figures. */
  count(name: string, by?: number): void;
}

/** A kind of client: what it does, what it was promised, and how that is checked. To add one, list it in `kinds.ts`. */
export interface ClientKind {
  readonly name: string;
  /** The promises that the client relies on, as in docs/reliability.md. */
  readonly promises: string;
  /** How many of these clients each organisation has. A number below one is the probability of a single client. */
  readonly perOrganisation: number;
  start(stage: Stage): RunningClient;
}

export interface RunningClient {
  /** Works until the stage is over. */
  run(): Promise<void>;
  /** Checks at the end, when nothing is disturbed, what the client knows alone. */
  check?(): Promise<void>;
}

/** How long clients repeat a request. It is longer than any fault lasts. */
const retryForMs = 300_000;

/** Returns the library as a client would use it. It counts the waits for retries. */
export function libraryOf({ world, organisation, random, count }: Stage): Intake {
  return new Intake({
    url: world.url,
    key: random.pick(organisation.keys).key,
    retryForMs,
    onRetry: () => count('retries of the library'),
  });
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: clients read many shapes and treat unexpected ones as failures.
  readonly body: any;
}

interface Request {
  readonly body?: object | string;
  readonly key?: string;
  readonly headers?: Record<string, string>;
}

/** Sends one request without the library. Returns null if there was no answer or an error, which `Traffic` judges. */
export async function ask(
  { world, organisation }: Pick<Stage, 'world' | 'organisation'>,
  method: string,
  path: string,
  { body, key = organisation.key, headers = {} }: Request = {},
): Promise<Reply | null> {
  try {
    const response = await fetch(world.url + path, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    if (response.status >= 500 || response.status === 429) return null;
    const isJson = response.headers.get('content-type')?.startsWith('application/json');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  } catch {
    return null;
  }
}
