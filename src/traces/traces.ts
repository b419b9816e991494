import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { statementLabel } from '../metrics/statement-label.ts';
import type { Attributes, Step } from './step.ts';

interface TracesOptions {
  readonly version: string;
  /** Whether OTEL_TRACES_SAMPLER is set. If not, we trace a small share of requests, and all that their callers trace. */
  readonly hasSampler: boolean;
  readonly onExport: (succeeded: boolean, error: Error | undefined) => void;
}

/** The same time by the wall clock and by the monotonic clock. */
export interface Began {
  readonly epochMs: number;
  readonly monotonicMs: number;
}

/** For the end of a span. The library would use the wall clock for a span that has an explicit start. */
function nowSince({ epochMs, monotonicMs }: Began): number {
  return epochMs + performance.now() - monotonicMs;
}

/** The fields of a request's log line that a span records. */
interface Answered {
  readonly status: number;
  readonly code: string | undefined;
  readonly organisation_id: string | undefined;
}

/**
 * Spans are created manually at the few points that take time, and contain only durations, counts and ids.
 * Auto-instrumentation would create more spans, cost more, and record statements with their values.
 */
export class Traces {
  readonly #current = new AsyncLocalStorage<Context | undefined>();
  readonly #provider: BasicTracerProvider;
  readonly #tracer: Tracer;
  readonly #hasSampler: boolean;

  constructor({ version, hasSampler, onExport }: TracesOptions) {
    const own = resourceFromAttributes({ 'service.name': 'intake-server', 'service.version': version });
    this.#hasSampler = hasSampler;
    this.#provider = new BasicTracerProvider({
      resource: own.merge(detectResources({ detectors: [envDetector] })),
      ...(!hasSampler && { sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }) }),
      spanProcessors: [new BatchSpanProcessor(telling(new OTLPTraceExporter(), onExport))],
    });
    this.#tracer = this.#provider.getTracer('intake-server');
  }

  /**
   * The span is a child of the caller's span if there is one. Pass `traceparent` only if the key was valid, because its
   * sampled flag, and with some samplers its trace id, determine whether the span is exported. The share of the other
   * requests is chosen here, because the library would have to create a span for every request, which is most of the cost
   * of tracing an interaction.
   */
  beginRequest(
    name: string,
    traceparent: string | string[] | undefined,
    attributes: Attributes,
    began: Began,
  ): RequestTrace | undefined {
    const caller = callerOf(traceparent);
    if (!caller && !this.#hasSampler && Math.random() >= limits.tracedRatio) return undefined;
    const parent = caller ? trace.setSpanContext(ROOT_CONTEXT, caller) : ROOT_CONTEXT;
    const options = { kind: SpanKind.SERVER, attributes, startTime: began.epochMs };
    const span = this.#tracer.startSpan(name, options, parent);
    const context = span.isRecording() ? trace.setSpan(ROOT_CONTEXT, span) : undefined;
    if (context) this.#tracer.startSpan('admit', { startTime: began.epochMs }, context).end(nowSince(began));
    const traceId = context || caller ? span.spanContext().traceId : undefined;
    return new RequestTrace(this, span, context, traceId, began);
  }

  step: Step = async (name, work, attributes) => {
    const parent = this.#current.getStore();
    if (!parent) return work();
    const span = this.#tracer.startSpan(name, attributes && { attributes }, parent);
    return this.#run(span, parent, work);
  };

  /** The span has no values of the statement. Returns a function that ends it. */
  beginStatement(name: string): ((error?: unknown) => void) | undefined {
    const parent = this.#current.getStore();
    if (!parent) return undefined;
    const options = { kind: SpanKind.CLIENT, attributes: { 'db.system.name': 'postgresql' } };
    const span = this.#tracer.startSpan(statementLabel(name), options, parent);
    return (error) => {
      if (error) fail(span, error);
      span.end();
    };
  }

  get current(): Context | undefined {
    return this.#current.getStore();
  }

  /** If the context is undefined, `work` runs outside any trace. */
  within<T>(context: Context | undefined, work: () => T): T {
    return this.#current.run(context, work);
  }

  /** The span of a write for several requests belongs to the first traced one and is linked to the others. */
  flush(callers: readonly (Context | undefined)[], work: () => Promise<void>): Promise<void> {
    const [first, ...others] = callers
      .filter((caller) => caller !== undefined)
      .slice(0, limits.tracedLinksMax);
    if (!first) return this.within(undefined, work);
    const spans = others.flatMap((caller) => trace.getSpan(caller) ?? []);
    const links = spans.map((span) => ({ context: span.spanContext() }));
    const attributes = { 'intake.interactions': callers.length };
    const span = this.#tracer.startSpan('flush interactions', { attributes, links }, first);
    for (const other of spans) other.addLink({ context: span.spanContext() });
    return this.#run(span, first, work);
  }

  async #run<T>(span: Span, parent: Context, work: () => Promise<T>): Promise<T> {
    try {
      return await this.within(trace.setSpan(parent, span), work);
    } catch (error) {
      fail(span, error);
      throw error;
    } finally {
      span.end();
    }
  }

  /** Has a timeout, because an unreachable collector must not delay the shutdown. */
  async close(): Promise<void> {
    const sent = this.#provider.shutdown().catch(() => {});
    await Promise.race([sent, sleep(limits.tracesStopMs, undefined, { ref: false })]);
  }
}

export class RequestTrace {
  readonly #traces: Traces;
  readonly #span: Span;
  readonly #context: Context | undefined;
  /** Undefined if the request is not traced. */
  readonly traceId: string | undefined;

  readonly #began: Began;

  constructor(
    traces: Traces,
    span: Span,
    context: Context | undefined,
    traceId: string | undefined,
    began: Began,
  ) {
    this.#traces = traces;
    this.#span = span;
    this.#context = context;
    this.traceId = traceId;
    this.#began = began;
  }

  within<T>(work: () => T): T {
    return this.#traces.within(this.#context, work);
  }

  step: Step = (name, work, attributes) => this.within(() => this.#traces.step(name, work, attributes));

  end({ status, code, organisation_id }: Answered): void {
    if (!this.#context) return;
    this.#span.setAttribute('http.response.status_code', status);
    if (organisation_id !== undefined) this.#span.setAttribute('intake.organisation_id', organisation_id);
    if (code !== undefined) this.#span.setAttribute('error.type', code);
    if (status >= 500) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end(nowSince(this.#began));
  }
}

/** Records the code but not the message, because PostgreSQL's messages quote values. */
function fail(span: Span, error: unknown): void {
  const { code, name } = error as { code?: unknown; name?: string };
  span.setAttribute('error.type', typeof code === 'string' ? code : (name ?? 'Error'));
  // A bad request is the client's error, not the service's.
  if (!(error instanceof RequestError && error.status < 500)) span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The format is W3C Trace Context. */
function callerOf(traceparent: string | string[] | undefined): SpanContext | undefined {
  const read =
    typeof traceparent === 'string'
      ? /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-|$)/.exec(traceparent)
      : null;
  if (!read) return undefined;
  const [, traceId = '', spanId = '', flags = ''] = read;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, isRemote: true };
}

function telling(exporter: OTLPTraceExporter, tell: TracesOptions['onExport']): SpanExporter {
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        tell(result.code === 0, result.error);
        done(result);
      });
    },
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
  };
}
