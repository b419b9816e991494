import { setTimeout as sleep } from 'node:timers/promises';

export interface OpenLoad {
  stop(): Promise<void>;
}

const underWayMax = 200;

/** Sends requests at this rate, whether or not earlier ones are answered, as clients on many machines do. */
export function startOpenLoad(perSecond: number, send: () => Promise<unknown>): OpenLoad {
  const underWay = new Set<Promise<void>>();
  const timer = setInterval(() => {
    if (underWay.size >= underWayMax) return;
    const done = () => void underWay.delete(one);
    const one: Promise<void> = send().then(done, done);
    underWay.add(one);
  }, 1_000 / perSecond);
  return {
    async stop() {
      clearInterval(timer);
      // Requests that wait for a database that is gone may never end.
      await Promise.race([Promise.all(underWay), sleep(2_000)]);
    },
  };
}
