import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { exchange } from './exchange.ts';

/**
 * Uploads at a fixed rate whatever the answers are, from one message to the next. In a thread of its own, so that it does
 * not delay who measures beside it.
 */

const { url, key, perSecond } = workerData as { url: string; key: string; perSecond: number };
const agent = new Agent({ keepAlive: true, maxSockets: 50 });
let counts: Record<string, number> = {};
let [sent, answered, began] = [0, 0, 0];
let timer: NodeJS.Timeout | undefined;

function send(): void {
  for (const due = ((performance.now() - began) / 1_000) * perSecond; sent < due; sent++) {
    const body = { records: [{ tag_id: crypto.randomUUID(), name: 'noise' }] };
    const count = (what: string | number) => {
      counts[what] = (counts[what] ?? 0) + 1;
      answered++;
    };
    exchange(url, { agent, key, body }).then(
      ({ status }) => count(status),
      () => count('failed'),
    );
  }
}

parentPort?.on('message', async (message: 'start' | 'stop') => {
  if (message === 'start') {
    [sent, answered, began, counts] = [0, 0, performance.now(), {}];
    timer = setInterval(send, 5);
    return;
  }
  clearInterval(timer);
  const ms = performance.now() - began;
  while (answered < sent) await sleep(5);
  parentPort?.postMessage({ sent, counts, ms });
});
