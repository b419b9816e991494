import { setTimeout as sleep } from 'node:timers/promises';

export interface OpenLoad {
  stop(): Promise<void>;
}

const underWayMax = 200;

/** Sends requests at this rate without waiting for earlier responses, like clients on many machines. */
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
      // Requests that wait for a lost database may never end.
      await Promise.race([Promise.all(underWay), sleep(2_000)]);
    },
  };
}
