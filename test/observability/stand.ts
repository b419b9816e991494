import { readFileSync } from 'node:fs';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { freePort } from '../support/free-port.ts';
import { many } from '../support/new-records.ts';
import { type Exporter, type Prometheus, startPrometheus } from '../support/prometheus.ts';
import { shortenedRules } from './shortened-rules.ts';

/** Several processes on one database, with their own Prometheus and our alert rules. */
export interface Stand {
  /** A replacement has the same index as the process that it replaces. */
  readonly servers: BuiltServer[];
  readonly ports: readonly number[];
  readonly prometheus: Prometheus;
  readonly key: string;
  /** Starts a process that replaces a killed one. */
  replace(at: number): Promise<void>;
  stop(): Promise<void>;
}

export type Pace = 'shipped' | 'shortened';

/** Returns the shipped rules, evaluated every 15 seconds, or a version with seconds instead of minutes. */
export function rulesAt(pace: Pace): { readonly rules: string; readonly everySeconds: number } {
  if (pace === 'shortened') return { rules: shortenedRules(), everySeconds: 1 };
  const shipped = new URL('../../deploy/observability/alerts.yml', import.meta.url);
  return { rules: readFileSync(shipped, 'utf8'), everySeconds: 15 };
}

export async function startStand(
  databaseUrl: string,
  pace: Pace,
  {
    settings = [{}, {}],
    exporters = {},
  }: {
    /** Each process's settings. */
    readonly settings?: readonly Record<string, string>[];
    readonly exporters?: Readonly<Record<string, Exporter>>;
  } = {},
): Promise<Stand> {
  const ports = await Promise.all(many(settings.length, freePort));
  const start = (at: number) =>
    startBuiltServer({ ...settings[at], DATABASE_URL: databaseUrl, METRICS_PORT: String(ports[at]) });
  // The first process becomes the leader.
  const first = await start(0);
  const servers = [first, ...(await Promise.all(settings.slice(1).map((_, at) => start(at + 1))))];
  const { rules, everySeconds } = rulesAt(pace);
  const jobs = {
    intake: ports.map((port) => `127.0.0.1:${port}`),
    ...Object.fromEntries(Object.entries(exporters).map(([job, { target }]) => [job, [target]])),
  };
  const prometheus = await startPrometheus(jobs, rules, everySeconds);
  return {
    servers,
    ports,
    prometheus,
    key: await first.createKey('acme'),
    async replace(at) {
      servers[at] = await start(at);
    },
    async stop() {
      await Promise.all([...servers, prometheus, ...Object.values(exporters)].map((each) => each.stop()));
    },
  };
}
