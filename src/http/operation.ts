import type { FastifyBaseLogger } from 'fastify';
import type { Config } from '../config.ts';
import type { InteractionWriter } from '../interactions/interaction-writer.ts';
import type { Principal } from '../keys/authenticate.ts';
import type { BytesInFlight } from '../keys/bytes-in-flight.ts';
import type { FailedKeys } from '../keys/failed-keys.ts';
import type { KnownKeys } from '../keys/known-keys.ts';
import type { Permission } from '../keys/permissions.ts';
import type { LimitHeaders, RequestLimits } from '../keys/request-limits.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Readiness } from '../postgres/readiness.ts';
import type { SharedPool } from '../postgres/shared-pool.ts';
import type { StallWatch } from '../postgres/stall-watch.ts';
import type { Field } from '../registry/fields.ts';
import type { Step } from '../traces/step.ts';
import type { Traces } from '../traces/traces.ts';
import type { LoggedCounts } from '../uploads/answer.ts';
import type { UploadChecker } from '../uploads/read/upload-checker.ts';
import type { Query } from './query.ts';

/** What the operations work with; made once, by the command that starts the service. */
export interface Parts {
  readonly config: Config;
  readonly pool: SharedPool;
  readonly keys: KnownKeys;
  readonly failedKeys: FailedKeys;
  readonly requestLimits: RequestLimits;
  readonly bytesInFlight: BytesInFlight;
  readonly writer: InteractionWriter;
  readonly checker: UploadChecker;
  readonly readiness: Readiness;
  /** Whether the batches of uploads end. */
  readonly uploadsStall: StallWatch;
  /** Undefined where nobody asks for them. */
  readonly metrics: Metrics | undefined;
  readonly traces: Traces | undefined;
  close(): Promise<void>;
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
  /** Holds memory for the answer; refused, before anything is stored, where there is none. */
  readonly reserve: (answerBytes: number) => void;
  /** Tells the client of another limit than that on requests, and what is left of it. */
  readonly tellLimit: (headers: LimitHeaders) => void;
  readonly log: FastifyBaseLogger;
  /** Runs a part of the work as a span of its own. */
  readonly step: Step;
}

export interface Answer {
  readonly status: number;
  /**
   * What becomes JSON, or is JSON already; or pieces of something else, made while they are read, whose type is among the
   * headers. An empty piece is a sign of life.
   */
  readonly body: object | string | AsyncIterable<Buffer>;
  /** What such pieces take while they are not read, where they are in memory already. */
  readonly bytes?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** What became of the records of an upload or a replay, for the log. */
  readonly counts?: LoggedCounts;
}

/** JSON Schema, as OpenAPI 3.1 takes it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface DescribedAnswer {
  /** The name under which the description has it once, for all operations that answer the same. */
  readonly sharedAs?: string;
  readonly description: string;
  readonly schema: JsonSchema;
  readonly example?: unknown;
  /** Whether it can be the answer to an earlier request with the same Idempotency-Key. */
  readonly canBeReplayed?: true;
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
  readonly requestBody?: {
    readonly schema: JsonSchema;
    readonly example: unknown;
    /**
     * Whether the records may also come one a line (NDJSON), without an object around them. Only its text says so in the API
     * description: generators leave out an operation that takes a media type they do not know.
     */
    readonly takesLines?: true;
    /** False where it may be left out. */
    readonly required?: boolean;
    /** Where it may not be as large as an upload's. */
    readonly bytesMax?: number;
  };
  readonly answers: Readonly<Record<number, DescribedAnswer>>;
  readonly handle: (call: Call, parts: P) => Promise<Answer>;
}

/** The principal of an operation that asks for a permission. */
export function principalOf(call: Call): Principal {
  if (!call.principal) throw new Error('an operation without a permission asked for its principal');
  return call.principal;
}
