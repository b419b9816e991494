import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { startHttpProxy } from './http-proxy.ts';

/**
 * Starts a proxy that lets the first upload pass and holds all others until `end` is called, so that a command cannot finish
 * before the test stops it, however slow the test is.
 */
export async function holdUploads(target: string): Promise<{ readonly url: string; end(): void }> {
  let [uploads, isOver] = [0, false];
  const proxy = await startHttpProxy(target, async ({ method, url }) => {
    const isUpload = method === 'POST' && /^\/(v1\/data\/|user-interactions)/.test(url);
    if (isOver || !isUpload || ++uploads === 1) return 'pass';
    while (!isOver) await sleep(5);
    return 'cut before';
  });
  onTestFinished(proxy.close);
  return {
    url: proxy.url,
    end() {
      isOver = true;
    },
  };
}
