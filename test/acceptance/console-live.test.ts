// @module-tag full

import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, CDPSession } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { chromiumPath, launchChromium, signInAt } from '../support/console-browser.ts';
import { many, newShop } from '../support/new-records.ts';

/**
 * The live view keeps only the newest 500 interactions, so a page that stays open does not use more and more memory.
 * The test watches the page for 30 seconds, or for LIVE_SECONDS seconds.
 */

const seconds = Number(process.env.LIVE_SECONDS ?? 30);
const everySeconds = seconds / 20;
/** After this time the view is full and its scripts are compiled. */
const warmSeconds = Math.max(20, seconds / 5);
const perSecond = 50;
const growthMax = 1.1;
const timeout = (seconds + 1_200) * 1_000;

const isHere = existsSync(chromiumPath);
describe.skipIf(!isHere)('the live view of the console (needs headless Chromium)', { timeout }, () => {
  let server: BuiltServer;
  let browser: Browser;
  let key: string;
  let api: Api;
  const shop = newShop();

  beforeAll(async () => {
    server = await startBuiltServer();
    key = await server.createKey('live');
    api = apiOf(server.url, key);
    await api.upload('shops', [shop]);
    browser = await launchChromium();
  }, timeout);
  afterAll(async () => {
    await browser?.close();
    await server?.stop();
  });

  /** Sends interactions until aborted, and returns how many were stored. */
  async function send(signal: AbortSignal): Promise<number> {
    const beganMs = performance.now();
    let sent = 0;
    while (!signal.aborted) {
      const due = Math.floor(((performance.now() - beganMs) / 1_000) * perSecond) - sent;
      const answers = await Promise.all(
        many(due, () =>
          api.post('/user-interactions', {
            interaction_type: 'PAGE_VIEW',
            item_type: 'SHOP',
            item_id: shop.shop_id,
            event_timestamp: Math.floor(Date.now() / 1_000),
          }),
        ),
      );
      expect(answers.every(({ status }) => status < 300)).toBe(true);
      sent += due;
      await sleep(100);
    }
    return sent;
  }

  async function heapBytes(cdp: CDPSession): Promise<number> {
    await cdp.send('HeapProfiler.collectGarbage');
    return (await cdp.send('Runtime.getHeapUsage')).usedSize;
  }

  it('does not take more memory the longer it is open', async () => {
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(240_000);
    await signInAt(page, `${server.url}/console/interactions?live=on`, key, 'Interactions');
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('HeapProfiler.enable');
    const stop = new AbortController();
    const sending = send(stop.signal);
    const measured: { second: number; bytes: number }[] = [];
    const beganMs = performance.now();
    let growth = Number.POSITIVE_INFINITY;
    // On a slow machine, scripts are still compiled for some time. A page that keeps what it has shown never stops growing.
    for (let period = 0; period < 3 && growth >= growthMax; period++) {
      const until = seconds + period * (seconds - warmSeconds);
      for (let second = 0; second < until; ) {
        await sleep(everySeconds * 1_000);
        second = (performance.now() - beganMs) / 1_000;
        measured.push({ second, bytes: await heapBytes(cdp) });
      }
      const warm = measured.find(({ second }) => second >= until - (seconds - warmSeconds));
      growth = (measured.at(-1)?.bytes ?? Number.POSITIVE_INFINITY) / (warm?.bytes ?? 0);
    }
    stop.abort();
    const sent = await sending;
    const megabytes = measured.map(
      ({ second, bytes }) => `${second.toFixed(0)} s ${(bytes / 1e6).toFixed(1)} MB`,
    );
    console.log(`${sent} interactions; ${megabytes.join(', ')}`);
    expect(sent).toBeGreaterThan(seconds * perSecond * 0.8);
    await page.getByText('500 interactions').waitFor();
    expect(growth).toBeLessThan(growthMax);
  });
});
