// @module-tag full

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { newShop } from '../../test/support/new-records.ts';
import { Intake, type NewInteraction } from '../src/index.ts';

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
    /** Answers 503 to this many interactions before it lets them through. */
    let refusals = 0;

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
        if (refusals > 0) {
          refusals--;
          return void response.writeHead(503, { 'retry-after': '60' }).end();
        }
        const { authorization = '', 'idempotency-key': idempotencyKey = '' } = request.headers;
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
      // Eight are told to wait for a minute, and twelve wait behind them.
      refusals = 8;
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
  },
);
