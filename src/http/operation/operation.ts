import type { FastifyBaseLogger } from 'fastify';
import type { ActivityCounts } from '../../activity/activity-counts.ts';
import type { BytesInFlight } from '../../admission/bytes-in-flight.ts';
import type { FailedKeys } from '../../admission/failed-keys.ts';
import type { LimitHeaders, RequestLimits } from '../../admission/request-limits.ts';
import type { ChangeWatch } from '../../changes/change-watch.ts';
import type { Config } from '../../config.ts';
import type { InteractionWriter } from '../../interactions/interaction-writer.ts';
import type { Principal } from '../../keys/authenticate.ts';
import type { ConsoleSessions } from '../../keys/console-sessions.ts';
import type { KnownKeys } from '../../keys/known-keys.ts';
import type { Permission } from '../../keys/permissions.ts';
import type { SignedCursors } from '../../keys/signed-cursors.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { Readiness } from '../../postgres/health/readiness.ts';
import type { StallWatch } from '../../postgres/health/stall-watch.ts';
import type { SharedPool } from '../../postgres/shared-pool.ts';
import type { Field } from '../../registry/fields.ts';
import type { Step } from '../../traces/step.ts';
import type { Traces } from '../../traces/traces.ts';
import type { LoggedCounts } from '../../uploads/answer/answer.ts';
import type { UploadChecker } from '../../uploads/read/upload-checker.ts';
import type { Query } from './query.ts';

/** The dependencies of the operations; made once, by the command that starts the service. */
export interface Parts {
  readonly config: Config;
  readonly pool: SharedPool;
  readonly keys: KnownKeys;
  readonly sessions: ConsoleSessions;
  readonly failedKeys: FailedKeys;
  readonly requestLimits: RequestLimits;
  readonly bytesInFlight: BytesInFlight;
  readonly writer: InteractionWriter;
  readonly checker: UploadChecker;
  readonly cursors: SignedCursors;
  /** For readers that wait for changes. */
  readonly changeWatch: ChangeWatch;
  readonly readiness: Readiness;
  /** Notices when no batch of an upload finishes any more. */
  readonly uploadsStall: StallWatch;
  /** Undefined if metrics are off. */
  readonly metrics: Metrics | undefined;
  readonly traces: Traces | undefined;
  readonly activity: ActivityCounts;
  close(): Promise<void>;
}

/** A request that has passed the gate, with its parameters read. */
export interface Call {
  readonly requestId: string;
  /** Undefined only for operations that need no permission. */
  readonly principal: Principal | undefined;
  /** The client's IP address, and whether it came over HTTPS. */
  readonly client: () => { readonly address: string; readonly isEncrypted: boolean };
  /** The name of the token of a request to the admin API. */
  readonly token?: string | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Query>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer | undefined;
  /** Reserves memory for the answer. Throws if there is none, before anything is stored. */
  readonly reserve: (answerBytes: number) => void;
  /** Adds headers for a limit other than the one on requests. */
  readonly tellLimit: (headers: LimitHeaders) => void;
  /** Sets how much memory the request holds. Throws if there is no room. */
  readonly hold: (bytes: number) => void;
  /** Calls the listener once the client has its answer or has disconnected. */
  readonly onClose: (listener: () => void) => void;
  readonly log: FastifyBaseLogger;
  /** Runs part of the work as its own span. */
  readonly step: Step;
}

export interface Answer {
  readonly status: number;
  /**
   * An object to serialise, JSON text, or a stream of chunks, made while they are read, whose type is in the headers.
   * An empty chunk keeps the connection alive.
   */
  readonly body: object | string | AsyncIterable<Buffer>;
  /** How much memory a stream holds while it is not read, if its content is already in memory. */
  readonly bytes?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the client waits for each chunk: such a stream is neither compressed nor buffered by a proxy. */
  readonly isLive?: true;
  /** The outcome counts of an upload or a replay, for the log. */
  readonly counts?: LoggedCounts;
}

/** JSON Schema in the dialect of OpenAPI 3.1. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface DescribedAnswer {
  /** The component name, if several operations share this answer. */
  readonly sharedAs?: string;
  readonly description: string;
  readonly schema: JsonSchema;
  /** Set if it is not JSON. */
  readonly mediaType?: string;
  /** Whether it can repeat the answer to an earlier request with the same Idempotency-Key. */
  readonly canBeReplayed?: true;
  /** Whether it states what is used of a quota. */
  readonly hasQuota?: true;
  /** Whether it can be an export, which has a cursor of the change feed. */
  readonly hasChangesCursor?: true;
  /** Answers in other media types, for clients that ask for them. */
  readonly otherContent?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

/**
 * One operation of the API. The server's routes and the API description are both made from these, so they cannot
 * disagree.
 */
export interface Operation<P = Parts> {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** In OpenAPI's form: `/user-interactions/{interaction_id}`. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** Null if no key is needed. */
  readonly permission: Permission | null;
  /** Whether a browser key may use it. */
  readonly isForBrowsers?: true;
  /** Whether it stores records, for which an organisation may have a quota. */
  readonly storesRecords?: true;
  readonly pathParameters?: Readonly<Record<string, Field>>;
  readonly query?: Readonly<Record<string, Field>>;
  readonly requestHeaders?: Readonly<Record<string, JsonSchema & { description: string }>>;
  readonly requestBody?: {
    readonly schema: JsonSchema;
    readonly example: unknown;
    /**
     * Whether records may also be sent as NDJSON, one per line. The API description says so only in its text:
     * generators leave out an operation with a media type they do not know.
     */
    readonly takesLines?: true;
    /** False if the body may be omitted. */
    readonly required?: boolean;
    /** Set if the limit is lower than that of uploads. */
    readonly bytesMax?: number;
  };
  readonly answers: Readonly<Record<number, DescribedAnswer>>;
  readonly handle: (call: Call, parts: P) => Promise<Answer>;
}

/** The principal of an operation that needs a permission. */
export function principalOf(call: Call): Principal {
  if (!call.principal) throw new Error('an operation without a permission asked for its principal');
  return call.principal;
}
