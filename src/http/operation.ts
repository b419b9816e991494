import type { FastifyBaseLogger } from 'fastify';
import type { Config } from '../config.ts';
import { UploadChecker } from '../ingest/upload-checker.ts';
import { InteractionWriter } from '../interactions/interaction-writer.ts';
import type { Principal } from '../keys/authenticate.ts';
import { BytesInFlight } from '../keys/bytes-in-flight.ts';
import { FailedKeys } from '../keys/failed-keys.ts';
import { KnownKeys } from '../keys/known-keys.ts';
import type { Permission } from '../keys/permissions.ts';
import { type LimitHeaders, RequestLimits } from '../keys/request-limits.ts';
import type { SharedCounts } from '../keys/shared-counts.ts';
import { limits } from '../limits.ts';
import type { Field } from '../registry/fields.ts';
import { createPool, type Pool } from '../store/pool.ts';
import type { Query } from './query.ts';

/** What the operations work with; made once, by the command that starts the service. */
export interface Parts {
  readonly config: Config;
  readonly pool: Pool;
  readonly keys: KnownKeys;
  readonly failedKeys: FailedKeys;
  readonly requestLimits: RequestLimits;
  readonly bytesInFlight: BytesInFlight;
  readonly writer: InteractionWriter;
  readonly checker: UploadChecker;
  close(): Promise<void>;
}

export function createParts(config: Config, pool: Pool, shared?: SharedCounts): Parts {
  const keyPool = createPool(
    {
      ...config,
      databaseConnectionsMax: limits.keyConnectionsMax,
      databaseTimeoutMs: Math.min(config.databaseTimeoutMs, limits.keyChangesIntervalMs),
    },
    () => {},
  );
  const writer = new InteractionWriter(
    createPool({ ...config, databaseConnectionsMax: limits.interactionWritersMax }, () => {}),
  );
  const checker = new UploadChecker();
  return {
    config,
    pool,
    keys: new KnownKeys(keyPool),
    failedKeys: new FailedKeys(config.failedKeysPerMinuteMax),
    requestLimits: new RequestLimits(config, shared),
    bytesInFlight: new BytesInFlight(config),
    writer,
    checker,
    async close() {
      await Promise.all([checker.close(), writer.close(), keyPool.end()]);
    },
  };
}

/** A request, once it is known who asks, that they may, and that its parameters are sound. */
export interface Call {
  readonly requestId: string;
  /** Absent only for operations that need no permission. */
  readonly principal: Principal | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Query>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer | undefined;
  /** Tells the client of another limit than that on requests, and what is left of it. */
  readonly tellLimit: (headers: LimitHeaders) => void;
  readonly log: FastifyBaseLogger;
}

export interface Answer {
  readonly status: number;
  /**
   * What becomes JSON, or is JSON already; or pieces of something else, made while they are read, whose type is among the
   * headers. An empty piece is a sign of life.
   */
  readonly body: object | string | AsyncIterable<Buffer>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** JSON Schema, as OpenAPI 3.1 takes it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface DescribedAnswer {
  readonly description: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
  /** What is answered in its place to those who ask for another media type. */
  readonly otherContent?: Readonly<
    Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>
  >;
}

/**
 * One thing the API can do. The server's routes and the API description are both made from these, so that neither can
 * know something the other does not.
 */
export interface Operation<P = Parts> {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** As OpenAPI writes it: `/user-interactions/{interaction_id}`. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** Null where no key is asked for. */
  readonly permission: Permission | null;
  readonly pathParameters?: Readonly<Record<string, Field>>;
  readonly query?: Readonly<Record<string, Field>>;
  readonly requestHeaders?: Readonly<Record<string, JsonSchema & { description: string }>>;
  readonly requestBody?: { readonly schema: JsonSchema; readonly example: unknown };
  readonly answers: Readonly<Record<number, DescribedAnswer>>;
  readonly handle: (call: Call, parts: P) => Promise<Answer>;
}

/** The principal of an operation that asks for a permission. */
export function principalOf(call: Call): Principal {
  if (!call.principal) throw new Error('an operation without a permission asked for its principal');
  return call.principal;
}
