import { setImmediate as nextTurn } from 'node:timers/promises';

const turnMs = 2;

/** Every few milliseconds, other requests get their turn. */
export async function mapInTurns<T, R>(items: readonly T[], map: (item: T) => R): Promise<R[]> {
  const mapped: R[] = [];
  let beganMs = performance.now();
  for (const item of items) {
    if (performance.now() - beganMs > turnMs) {
      await nextTurn();
      beganMs = performance.now();
    }
    mapped.push(map(item));
  }
  return mapped;
}
