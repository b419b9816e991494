import { setTimeout as sleep } from 'node:timers/promises';
import { apiOf } from './api.ts';
import { newTag } from './new-records.ts';

export interface Served {
  /** The number of requests by response status, where 0 means that there was no response. */
  readonly statuses: Readonly<Record<number, number>>;
  /** The duration of the slowest response, and the median and the 99th percentile of the durations. */
  readonly slowestMs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Starts an ordinary client that uploads records one by one, with a pause after each, while other clients misbehave. */
export function startSteadyClient(url: string, key: string, pauseMs = 5): { stop(): Promise<Served> } {
  const api = apiOf(url, key);
  const statuses: Record<number, number> = {};
  const durations: number[] = [];
  let stopped = false;
  const work = (async () => {
    while (!stopped) {
      const started = performance.now();
      const status = await api.upload('tags', [newTag()]).then(
        (answer) => answer.status,
        () => 0,
      );
      durations.push(performance.now() - started);
      statuses[status] = (statuses[status] ?? 0) + 1;
      await sleep(pauseMs);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await work;
      const sorted = durations.toSorted((one, other) => one - other);
      const p99Ms = sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
      const p50Ms = sorted[sorted.length >> 1] ?? 0;
      return { statuses, slowestMs: sorted.at(-1) ?? 0, p50Ms, p99Ms };
    },
  };
}
