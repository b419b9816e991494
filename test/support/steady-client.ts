import { setTimeout as sleep } from 'node:timers/promises';
import { apiOf } from './api.ts';
import { newTag } from './new-records.ts';

export interface Served {
  /** How often each status was answered; 0 stands for no answer at all. */
  readonly statuses: Readonly<Record<number, number>>;
  /** How long the slowest took, and how long 99 of 100 took at most. */
  readonly slowestMs: number;
  readonly p99Ms: number;
}

/** An ordinary client that uploads a record after the other, with a pause between them, while others misbehave. */
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
      return { statuses, slowestMs: sorted.at(-1) ?? 0, p99Ms };
    },
  };
}
