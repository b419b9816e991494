// traces/: sends request timings to an OpenTelemetry collector. Only traces.ts loads OpenTelemetry's packages.

/** A span's attributes, which are numbers and ids that also occur in the log. */
export type Attributes = Readonly<Record<string, string | number>>;

export type Step = <T>(name: string, work: () => Promise<T>, attributes?: Attributes) => Promise<T>;

/** Runs the work without a span. Used when tracing is off. */
export const untraced: Step = (_name, work) => work();
