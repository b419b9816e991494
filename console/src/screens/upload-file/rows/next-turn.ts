const turnMs = 30;
const { port1, port2 } = new MessageChannel();
const waiting: (() => void)[] = [];
port1.onmessage = () => waiting.shift()?.();
let startedMs = performance.now();

/**
 * Lets the browser draw and react, if it had no chance to for some time: chunks of a file arrive without one. Not a timer,
 * because browsers let timers of hidden pages fire only once a second.
 */
export async function nextTurn(): Promise<void> {
  if (performance.now() - startedMs < turnMs) return;
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
    port2.postMessage(null);
  });
  startedMs = performance.now();
}
