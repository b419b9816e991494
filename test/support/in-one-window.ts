import { setTimeout as sleep } from 'node:timers/promises';

/** The length of a limit's window, which starts at the first request. */
export const windowMs = 2_000;

/** Waits until the window of earlier requests has ended. */
export const nextWindow = () => sleep(windowMs + 100);

/**
 * Calls `send` until all of its requests fall into one window, which may take several attempts on a slow machine.
 * Returns the result.
 */
export async function inOneWindow<T>(send: () => Promise<T>): Promise<T> {
  for (;;) {
    const beganMs = performance.now();
    const result = await send();
    if (performance.now() - beganMs < windowMs) return result;
    await nextWindow();
  }
}
