// traces/: sends to an OpenTelemetry collector where the time of a request goes. Only traces.ts loads its packages.

/** Numbers, and ids that the log has as well. */
export type Attributes = Readonly<Record<string, string | number>>;

/** Runs part of a request's work as its own span. */
export type Step = <T>(name: string, work: () => Promise<T>, attributes?: Attributes) => Promise<T>;

/** For use when tracing is off. */
export const untraced: Step = (_name, work) => work();
