// traces/: where the time of a request goes, told to an OpenTelemetry collector. Only traces.ts loads its packages.

/** What may be said of a step: numbers, and ids that the log has as well. */
export type Attributes = Readonly<Record<string, string | number>>;

/** Runs a part of a request's work as a span of its own. */
export type Step = <T>(name: string, work: () => Promise<T>, attributes?: Attributes) => Promise<T>;

/** The same where nobody traces. */
export const untraced: Step = (_name, work) => work();
