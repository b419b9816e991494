import type { FastifyBaseLogger } from 'fastify';
import type { ActivityCounts } from '../../activity/activity-counts.ts';
import type { BytesInFlight } from '../../admission/bytes-in-flight.ts';
import type { FailedKeys } from '../../admission/failed-keys.ts';
import type { FairQueue } from '../../admission/fair-queue.ts';
import type { LimitHeaders, RequestLimits } from '../../admission/request-limits.ts';
import type { ChangeWatch } from '../../changes/change-watch.ts';
import type { Config } from '../../config.ts';
import { type Detail, invalidRequest, type RequestError } from '../../errors.ts';
import type { InteractionWriter } from '../../interactions/interaction-writer.ts';
import type { KnownReferences } from '../../interactions/known-ids.ts';
import type { KnownKeys, Principal } from '../../keys/authenticate.ts';
import type { ConsoleSessions } from '../../keys/console-sessions.ts';
import type { Permission } from '../../keys/permissions.ts';
import type { SignedCursors } from '../../keys/signed-cursors.ts';
import type { LakeReader } from '../../lake/lake-reader.ts';
import { limits } from '../../limits.ts';
import type { Metrics } from '../../metrics/metrics.ts';
import type { SharedPool } from '../../postgres/cluster/node-pools.ts';
import type { Readiness } from '../../postgres/health/readiness.ts';
import type { ServerState, StallWatch } from '../../postgres/health/server-state.ts';
import type { Pool } from '../../postgres/pool.ts';
import { type Field, isProblem, type Scalar } from '../../registry/fields.ts';
import { shownName } from '../../registry/warnings.ts';
import type { Step } from '../../traces/step.ts';
import type { Traces } from '../../traces/traces.ts';
import type { LoggedCounts } from '../../uploads/answer/answer.ts';
import type { UploadChecker } from '../../uploads/read/upload-checker.ts';

export interface Parts {
  readonly config: Config;
  readonly pool: SharedPool;
  readonly keys: KnownKeys;
  readonly sessions: ConsoleSessions;
  readonly failedKeys: FailedKeys;
  readonly requestLimits: RequestLimits;
  readonly bytesInFlight: BytesInFlight;
  readonly writer: InteractionWriter;
  readonly references: KnownReferences;
  /** Organisations take turns to read long pages. */
  readonly longReads: FairQueue;
  readonly checker: UploadChecker;
  readonly cursors: SignedCursors;
  readonly changeWatch: ChangeWatch;
  readonly lake: LakeReader | undefined;
  readonly readiness: Readiness;
  readonly server: ServerState;
  readonly uploadsStall: StallWatch;
  readonly metrics: Metrics | undefined;
  readonly traces: Traces | undefined;
  readonly activity: ActivityCounts;
  close(): Promise<void>;
}

export interface Call {
  readonly requestId: string;
  /** Undefined only for operations that need no permission. */
  readonly principal: Principal | undefined;
  readonly client: () => { readonly address: string; readonly isEncrypted: boolean };
  /** The name of the admin token. */
  readonly token?: string | undefined;
  /** Set if only a request that repeats a stored one may pass, because the organisation may not store more. */
  readonly overQuota: RequestError | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Query>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer | undefined;
  /** Reserves memory for the response before anything is stored. Throws if not enough is available. */
  readonly reserve: (answerBytes: number) => void;
  /** Adds the headers of a limit other than the request limit. */
  readonly tellLimit: (headers: LimitHeaders) => void;
  /** Sets how much memory the request occupies. Throws if not enough is available. */
  readonly hold: (bytes: number) => void;
  /** Calls the listener once the client has received its response or has disconnected. */
  readonly onClose: (listener: () => void) => void;
  readonly log: FastifyBaseLogger;
  readonly step: Step;
}

export interface Answer {
  readonly status: number;
  /**
   * A string is JSON. The type of a stream is in the headers. Its chunks are produced as the client reads them, and an
   * empty chunk keeps the connection alive.
   */
  readonly body: object | string | AsyncIterable<Buffer>;
  /** For a stream whose content is in memory: how much it occupies until the client has read it. */
  readonly bytes?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** The client waits for each chunk: the stream is not compressed, and proxies must not buffer it. */
  readonly isLive?: true;
  readonly counts?: LoggedCounts;
}

/** JSON Schema in the OpenAPI 3.1 dialect. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface DescribedAnswer {
  /** The name of the shared component, if several operations give this response. */
  readonly sharedAs?: string;
  readonly description: string;
  readonly schema: JsonSchema;
  /** Set if the response is not JSON. */
  readonly mediaType?: string;
  /** Whether this can be a replay of the response to an earlier request with the same Idempotency-Key. */
  readonly canBeReplayed?: true;
  readonly hasQuota?: true;
  /** The response can be an export, which includes a change feed cursor. */
  readonly hasChangesCursor?: true;
  readonly otherContent?: Readonly<Record<string, { readonly schema: JsonSchema }>>;
}

/** Both the routes and the API description are built from these objects, so they cannot disagree. */
export interface Operation<P = Parts> {
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** The path in OpenAPI syntax, such as `/user-interactions/{interaction_id}`. */
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  /** Null if no key is needed. */
  readonly permission: Permission | null;
  /** Whether the permission to upload anything is enough to get to the handler, which checks the types. */
  readonly isForUploaders?: true;
  readonly isForBrowsers?: true;
  /** Whether the operation stores records, which may count against a quota. */
  readonly storesRecords?: true;
  readonly pathParameters?: Readonly<Record<string, Field>>;
  readonly query?: Readonly<Record<string, Field>>;
  readonly requestHeaders?: Readonly<Record<string, JsonSchema & { description: string }>>;
  readonly requestBody?: {
    readonly schema: JsonSchema;
    readonly example: unknown;
    /** As NDJSON. The API description says so only in prose: generators skip operations with unknown media types. */
    readonly takesLines?: true;
    /** False if the body may be omitted. */
    readonly required?: boolean;
    /** Set if the maximum size is lower than the upload limit. */
    readonly bytesMax?: number;
  };
  readonly answers: Readonly<Record<number, DescribedAnswer>>;
  readonly handle: (call: Call, parts: P) => Promise<Answer>;
}

export function principalOf(call: Call): Principal {
  if (!call.principal) throw new Error('an operation without a permission asked for its principal');
  return call.principal;
}

/** Every query on an organisation's own data starts with these arguments. */
export function ownOf(call: Call, { pool }: Pick<Parts, 'pool'>): [pool: Pool, organisationId: string] {
  const { organisationId } = principalOf(call);
  return [pool.for(organisationId), organisationId];
}

/** Parsed query parameters. Instants become numbers of microseconds, and limits become numbers. */
export type Query = Record<string, Scalar>;

/** Reads an operation's query parameters. Unknown and malformed parameters get a 400, so that a typo is never ignored. */
export function readQuery(fields: Readonly<Record<string, Field>>, url: string): Query {
  const query: Query = {};
  const details: Detail[] = [];
  for (const [name, value] of parametersOf(url)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const problem = field ? readParameter(field, name, value, query) : unknownParameter(fields);
    if (problem) details.push({ field: shownName(name), ...problem });
  }
  if (details.length > 0) throw invalidRequest(...details.slice(0, limits.parameterProblemsMax));
  return query;
}

/** A value that cannot be decoded becomes undefined. Fastify's own parser would return it unchanged. */
function parametersOf(url: string): [name: string, value: string | undefined][] {
  const start = url.indexOf('?');
  const pairs = start < 0 ? [] : url.slice(start + 1).split('&');
  return pairs
    .filter((pair) => pair !== '')
    .map((pair) => {
      const [name = '', ...value] = pair.split('=');
      return [decode(name) ?? name, decode(value.join('='))];
    });
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

type ParameterProblem = Pick<Detail, 'code' | 'message'>;

function readParameter(
  field: Field,
  name: string,
  value: string | undefined,
  query: Query,
): ParameterProblem | undefined {
  if (value === undefined) return { code: 'invalid_format', message: 'is not percent-encoded UTF-8' };
  if (Object.hasOwn(query, name)) return { code: 'repeated_parameter', message: 'must be given only once' };
  if (value === '') return { code: 'required', message: 'is empty; leave it out or give it a value' };
  const read = field.read(value);
  if (isProblem(read)) return read;
  query[name] = read;
  return undefined;
}

function unknownParameter(fields: Readonly<Record<string, Field>>): ParameterProblem {
  const names = Object.keys(fields);
  const known = names.length > 0 ? `this address accepts ${names.join(', ')}` : 'this address accepts none';
  return { code: 'unknown_parameter', message: `is not a known parameter; ${known}` };
}
