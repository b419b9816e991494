// @module-tag full

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { newShop } from '../../test/support/new-records.ts';
import { Intake, type Interaction, type NewInteraction } from '../src/index.ts';

const executablePath = '/usr/bin/chromium';
const dist = fileURLToPath(new URL('../dist/', import.meta.url));

describe.skipIf(!existsSync(executablePath))(
  'the library in a browser (needs Debian’s chromium)',
  { timeout: 240_000 },
  () => {
    let server: SharedServer;
    let browser: Browser;
    let site: Server;
    let url: string;
    let key: string;
    /** Answers 503 to this many requests before it lets them through. */
    let refusals = 0;
    /** The Idempotency-Key of each request that it was sent. */
    const seen: string[] = [];
    /** Requests from the second on wait for this. */
    let held = Promise.resolve();

    /** A site with the library on it, which hands its own /user-interactions on to the service. */
    beforeAll(async () => {
      server = await sharedServer();
      key = await server.createKey('browser');
      browser = await chromium.launch({
        executablePath,
        args: ['--no-sandbox', '--disable-gpu'],
        timeout: 100_000,
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

    it('records interactions, and sends those that wait when the page is left', async () => {
      const intake = new Intake({ url: server.url, key });
      const shop = newShop();
      await intake.upload('shops', [shop]).finish();
      const page = await browser.newPage();
      page.setDefaultTimeout(100_000);
      await page.goto(url);
      await page.waitForFunction(() => 'Intake' in window);
      const record = (count: number) =>
        page.evaluate(
          async ({ url, key, count, item_id }) => {
            const client = new (globalThis as unknown as { Intake: typeof Intake }).Intake({ url, key });
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
      expect(await intake.interactions.get(recorded.interaction_id)).toEqual(recorded);
      // The server asks them to wait for a minute.
      refusals = 1;
      await record(20);
      await expect.poll(() => refusals, { timeout: 60_000 }).toBe(0);
      await page.goto('about:blank');
      const count = async () => {
        let found = 0;
        for await (const _ of intake.interactions.list({ item_id: shop.shop_id })) found++;
        return found;
      };
      await expect.poll(count, { timeout: 60_000 }).toBe(21);
    });

    it('what a closed tab had recorded is stored once when the next page is loaded', async () => {
      const intake = new Intake({ url: server.url, key });
      const shop = newShop();
      await intake.upload('shops', [shop]).finish();
      const context = await browser.newContext();
      const open = async () => {
        const page = await context.newPage();
        page.setDefaultTimeout(100_000);
        await page.goto(url);
        await page.waitForFunction(() => 'Intake' in window);
        return page;
      };
      const first = await open();
      const settled: string[] = [];
      await first.exposeFunction('onSettled', (id: string) => void settled.push(id));
      // The first request is answered; the tab is closed while the second waits for its answer.
      let release = () => {};
      held = new Promise((resolve) => {
        release = resolve;
      });
      seen.length = 0;
      await first.evaluate(
        ({ url, key, item_id }) => {
          const page = globalThis as unknown as { Intake: typeof Intake; onSettled(id: string): void };
          const client = new page.Intake({ url, key });
          for (let at = 0; at < 2_000; at++)
            client
              .record({
                interaction_type: 'SHARE',
                item_type: 'SHOP',
                item_id,
                user_id: `mark ${at}`,
                event_timestamp: 1_700_000_000,
              })
              .then(({ interaction_id }) => page.onSettled(interaction_id));
        },
        { url, key, item_id: shop.shop_id },
      );
      await expect.poll(() => settled.length, { timeout: 60_000 }).toBeGreaterThan(0);
      await expect.poll(() => seen.length, { timeout: 60_000 }).toBeGreaterThan(1);
      const [answered, unanswered] = seen;
      await first.close();
      release();
      expect(settled.length).toBeLessThan(2_000);
      const second = await open();
      const isKept = () => second.evaluate(() => Object.keys(localStorage).length);
      expect(await isKept()).toBeGreaterThan(0);
      await second.evaluate(
        ({ url, key }) => void new (globalThis as unknown as { Intake: typeof Intake }).Intake({ url, key }),
        { url, key },
      );
      await expect.poll(isKept, { timeout: 60_000 }).toBe(0);
      const all: Interaction[] = [];
      for await (const one of intake.interactions.list({ item_id: shop.shop_id, limit: 1_000 }))
        all.push(one);
      expect(all).toHaveLength(2_000);
      expect(new Set(all.map(({ user_id }) => user_id)).size).toBe(2_000);
      const ids = new Set(all.map(({ interaction_id }) => interaction_id));
      expect(settled.filter((id) => !ids.has(id))).toEqual([]);
      expect(seen.filter((key) => key === answered)).toHaveLength(1);
      expect(seen.filter((key) => key === unanswered).length).toBeGreaterThan(1);
      await context.close();
    });
  },
);
