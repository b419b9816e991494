import { slowness } from './slowness.ts';

/**
 * Loaded into a server with `node --import`. Prints how long the event loop was blocked each time that it was blocked for more
 * than 50 ms, or longer on a slow machine. It counts CPU time, because other programs take time from the process too.
 */

const everyMs = 5;
const blockedMsMin = 50 * slowness();

let last = process.threadCpuUsage();
setInterval(() => {
  const used = process.threadCpuUsage(last);
  last = process.threadCpuUsage();
  const ms = (used.user + used.system) / 1_000;
  if (ms > blockedMsMin + everyMs) console.log(`blocked for ${ms.toFixed(0)} ms`);
}, everyMs).unref();
