import { randomInt } from 'node:crypto';
import { freePortAmong } from '../../scripts/free-port.ts';

/** Each worker has its own range of ports. Otherwise another worker could take a free port before it is used. */
const perWorker = 1_000;
const first = 15_000 + perWorker * (Number(process.env.VITEST_POOL_ID ?? 0) % 17);
let next = randomInt(perWorker);

/** Returns a loopback port that no process listens on, and that is not given to another test in this process. */
export function freePort(): Promise<number> {
  return freePortAmong(() => first + (next++ % perWorker));
}
