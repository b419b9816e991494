// @module-tag full

import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { newShop } from '../../test/support/new-records.ts';
import { Intake, type Interaction, type NewInteraction } from '../src/index.ts';
import { type Fate, startHttpProxy } from './support/http-proxy.ts';

const executablePath = '/usr/bin/chromium-headless-shell';
const dist = fileURLToPath(new URL('../dist/', import.meta.url));

describe.skipIf(!existsSync(executablePath))('the library in a browser (needs headless Chromium)', () => {
  let server: SharedServer;
  let browser: Browser;
  let site: Server;
  let url: string;
  let key: string;
  /** The number of requests that still get a 503 instead of being forwarded. */
  let refusals = 0;
  /** The Idempotency-Key of each received request. */
  const seen: string[] = [];
  /** All requests after the first one wait for this promise. */
  let held = Promise.resolve();

  /** Starts a site that serves the library and forwards its own /user-interactions to the service. */
  beforeAll(async () => {
    server = await sharedServer();
    key = await server.createKey('browser');
    browser = await chromium.launch({
      executablePath,
      args: ['--no-sandbox', '--disable-gpu'],
      timeout: 240_000,
    });
    const files = readdirSync(dist, { recursive: true, encoding: 'utf8' });
    site = createServer(async (request, response) => {
      const path = (request.url ?? '/').slice(1);
      if (path === '')
        return void response
          .setHeader('content-type', 'text/html')
          .end('<script type="module">window.Intake = (await import("/index.js")).Intake</script>');
      if (files.includes(path)) {
        return void response.setHeader('content-type', 'text/javascript').end(readFileSync(dist + path));
      }
      if (request.method !== 'POST') return void response.writeHead(404).end();
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { authorization = '', 'idempotency-key': idempotencyKey = '' } = request.headers;
      seen.push(String(idempotencyKey));
      if (seen.length > 1) await held;
      if (refusals > 0) {
        refusals--;
        return void response.writeHead(503, { 'retry-after': '60' }).end();
      }
      const answer = await fetch(`${server.url}/${path}`, {
        method: 'POST',
        headers: {
          authorization,
          'idempotency-key': String(idempotencyKey),
          'content-type': 'application/json',
        },
        body: Buffer.concat(chunks),
      });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => site.once('listening', resolve));
    url = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  });

  afterAll(async () => {
    await browser?.close();
    site?.close();
  });

  it('records interactions, and sends waiting ones when the page is left', async () => {
    const intake = new Intake({ url: server.url, key });
    const shop = newShop();
    await intake.upload('shops', [shop]).finish();
    const page = await browser.newPage();
    page.setDefaultTimeout(240_000);
    await page.goto(url);
    await page.waitForFunction(() => 'Intake' in window);
    const record = (count: number) =>
      page.evaluate(
        async ({ url, key, count, item_id }) => {
          const page = globalThis as unknown as { Intake: typeof Intake };
          const onRetry = () => {
            document.title = 'waits';
          };
          const client = new page.Intake({ url, key, onRetry });
          const interaction: NewInteraction = {
            interaction_type: 'SHARE',
            item_type: 'SHOP',
            item_id,
            event_timestamp: 1_700_000_000,
          };
          const all = Promise.all(Array.from({ length: count }, () => client.record(interaction)));
          all.catch(() => {});
          return count === 1 ? (await all)[0] : undefined;
        },
        { url, key, count, item_id: shop.shop_id },
      );
    const recorded = await record(1);
    if (!recorded) throw new Error('nothing was recorded');
    expect(await intake.interactions.get(recorded.interaction_id as string)).toEqual(recorded);
    // The 503 asks the page to wait for a minute before it retries.
    refusals = 1;
    await record(20);
    await expect.poll(() => refusals).toBe(0);
    // If the page were left before it has the answer, nobody would send the request again.
    await page.waitForFunction(() => document.title === 'waits');
    await page.goto('about:blank');
    const count = async () => {
      let found = 0;
      for await (const _ of intake.interactions.list({ item_id: shop.shop_id })) found++;
      return found;
    };
    await expect.poll(count).toBe(21);
  });

  /** Returns a service on a different origin from the page, and a browser key for the page. */
  async function elsewhere() {
    const issued = await server.run(
      ...['keys', 'issue', '--organisation', server.slugOf('browser'), '--json'],
      ...['--browser', '--origin', url],
    );
    const proxy = await startHttpProxy(server.url, async ({ method, headers }): Promise<Fate> => {
      if (method !== 'POST') return 'pass';
      seen.push(String(headers['idempotency-key']));
      if (seen.length > 1) await held;
      return 'pass';
    });
    onTestFinished(() => proxy.close());
    const preflights = () => proxy.seen.filter(({ method }) => method === 'OPTIONS').length;
    return { service: proxy.url, pageKey: JSON.parse(issued).key as string, preflights };
  }

  const here = async () => ({ service: url, pageKey: key, preflights: () => 0 });

  it('a page on another origin records with a browser key, even if it is left before the first preflight', async () => {
    const intake = new Intake({ url: server.url, key });
    const shop = newShop();
    await intake.upload('shops', [shop]).finish();
    const { service, pageKey, preflights } = await elsewhere();
    const page = await browser.newPage();
    page.setDefaultTimeout(240_000);
    await page.goto(url);
    await page.waitForFunction(() => 'Intake' in window);
    seen.length = 0;
    const results = await page.evaluate(
      async ({ url, key, item_id, absent }) => {
        const page = globalThis as unknown as { Intake: typeof Intake };
        const client = new page.Intake({ url, key });
        const interaction: NewInteraction = {
          interaction_type: 'SHARE',
          item_type: 'SHOP',
          item_id,
          event_timestamp: 1_700_000_000,
        };
        const outcome = (recorded: Promise<object>) =>
          recorded.then(
            (value) => JSON.stringify(value),
            (error: { code: string }) => error.code,
          );
        const one = await outcome(client.record(interaction));
        const other = await outcome(client.record({ ...interaction, student_id: absent }));
        const wrong = await outcome(client.record({ ...interaction, item_type: 'TREE' as 'SHOP' }));
        const reader = new page.Intake({ url, key, retryForMs: 0 });
        const read = await outcome(reader.data.get('shops', item_id));
        // When the user leaves the page, one request is pending and the other interactions are waiting for it.
        for (let at = 0; at < 20; at++) void client.record(interaction).catch(() => {});
        return [one, other, wrong, read];
      },
      { url: service, key: pageKey, item_id: shop.shop_id, absent: randomUUID() },
    );
    const [one, other, ...refused] = results;
    expect(JSON.parse(one as string)).toMatchObject({ item_id: shop.shop_id, interaction_id: null });
    expect(JSON.parse(other as string)).toMatchObject({ interaction_id: null, created: null });
    // Only operations that record interactions send CORS headers, so the page cannot read other responses.
    expect(refused).toEqual(['invalid_request', 'connection_failed']);
    await page.goto('about:blank');
    const count = async () => {
      let found = 0;
      for await (const _ of intake.interactions.list({ item_id: shop.shop_id })) found++;
      return found;
    };
    await expect.poll(count).toBe(21);
    // The browser keeps the permission of a preflight, but requests that start at the same time may each have one.
    expect(preflights()).toBeLessThanOrEqual(4);
    await page.close();
  });

  it.each([
    ['its own origin', here],
    ['another origin, with a browser key', elsewhere],
  ])(
    'interactions that a closed tab had recorded on %s are stored once when the next page is loaded',
    async (_, to) => {
      const { service, pageKey, preflights } = await to();
      const intake = new Intake({ url: server.url, key });
      const shop = newShop();
      await intake.upload('shops', [shop]).finish();
      const context = await browser.newContext();
      const open = async () => {
        const page = await context.newPage();
        page.setDefaultTimeout(240_000);
        await page.goto(url);
        await page.waitForFunction(() => 'Intake' in window);
        return page;
      };
      const first = await open();
      // The first request is answered. The tab is closed while the second request is pending.
      let release = () => {};
      held = new Promise((resolve) => {
        release = resolve;
      });
      seen.length = 0;
      await first.evaluate(
        ({ url, key, item_id }) => {
          const page = globalThis as unknown as { Intake: typeof Intake; settled: string[] };
          page.settled = [];
          const client = new page.Intake({ url, key });
          for (let at = 0; at < 1_200; at++)
            client
              .record({
                interaction_type: 'SHARE',
                item_type: 'SHOP',
                item_id,
                user_id: `mark ${at}`,
                event_timestamp: 1_700_000_000,
              })
              .then(({ user_id }) => page.settled.push(user_id as string));
        },
        { url: service, key: pageKey, item_id: shop.shop_id },
      );
      // The page keeps the marks. Sending a message for each could delay its last event, for which Chromium waits only half a
      // second when a tab is closed.
      const settledIn = () => first.evaluate(() => (globalThis as unknown as { settled: string[] }).settled);
      await expect.poll(async () => (await settledIn()).length).toBeGreaterThan(0);
      await expect.poll(() => seen.length).toBeGreaterThan(1);
      const settled = await settledIn();
      const [answered, unanswered] = seen;
      await first.close();
      release();
      expect(settled.length).toBeLessThan(1_200);
      const second = await open();
      const isKept = () => second.evaluate(() => Object.keys(localStorage).length);
      expect(await isKept()).toBeGreaterThan(0);
      await second.evaluate(
        ({ url, key }) => void new (globalThis as unknown as { Intake: typeof Intake }).Intake({ url, key }),
        { url: service, key: pageKey },
      );
      await expect.poll(isKept).toBe(0);
      const all: Interaction[] = [];
      for await (const one of intake.interactions.list({ item_id: shop.shop_id, limit: 1_000 }))
        all.push(one);
      expect(all).toHaveLength(1_200);
      const marks = new Set(all.map(({ user_id }) => user_id));
      expect(marks.size).toBe(1_200);
      expect(settled.filter((mark) => !marks.has(mark))).toEqual([]);
      expect(seen.filter((key) => key === answered)).toHaveLength(1);
      expect(seen.filter((key) => key === unanswered).length).toBeGreaterThan(1);
      expect(preflights()).toBeLessThanOrEqual(2);
      await context.close();
    },
  );
});
