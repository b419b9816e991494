import { setTimeout as sleep } from 'node:timers/promises';

/** Of a limit, from the first request on. */
export const windowMs = 2_000;

/** Until the window of whatever was sent before has ended. */
export const nextWindow = () => sleep(windowMs + 100);

/** What `send` gives when all of it falls into one window. Where the machine was too slow for that, it is sent anew. */
export async function inOneWindow<T>(send: () => Promise<T>): Promise<T> {
  for (;;) {
    const beganMs = performance.now();
    const result = await send();
    if (performance.now() - beganMs < windowMs) return result;
    await nextWindow();
  }
}
