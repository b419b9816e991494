import { limits } from './limits.ts';

/** Resolves after `ms` or when `early` is aborted. Rejects with the reason of `signal` as soon as `signal` is aborted. */
export function wait(ms: number, signal?: AbortSignal, early?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const end = (settle: () => void) => () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      early?.removeEventListener('abort', pass);
      settle();
    };
    const abort = end(() => reject(signal?.reason));
    const pass = end(resolve);
    const timer = setTimeout(pass, Math.min(ms, limits.waitMaxMs));
    signal?.addEventListener('abort', abort, { once: true });
    early?.addEventListener('abort', pass, { once: true });
  });
}
