// @module-tag full

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectInTime } from '../support/in-time.ts';
import { many, newShop } from '../support/new-records.ts';

const promisedMs = 60_000;
const perSecond = 200;
const seconds = 4;

let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer();
  api = apiOf(server.url, await server.createKey('acme'));
  await server.run('organisations', 'set-report', 'acme', 'on');
});
afterAll(() => server.stop());

async function touches(): Promise<number> {
  const day = (ahead: number) => new Date(Date.now() + ahead * 86_400_000).toISOString().slice(0, 10);
  const { status, body } = await api.get(`/v1/reports/recommendations?from=${day(-2)}&to=${day(2)}`);
  expect(status).toBe(200);
  return body.total.recommendations.touches as number;
}

it('the report on recommendations is counted within a minute, while interactions arrive', async () => {
  const shop = newShop();
  expect((await api.upload('shops', [shop])).status).toBe(200);
  const touch = () => ({
    interaction_type: 'PAGE_VIEW',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    source: 'SERVICE',
    recommendation_id: randomUUID(),
    event_timestamp: Date.now(),
  });
  await expectInTime(async () => {
    const before = await touches();
    const sent: Promise<{ readonly status: number }>[] = [];
    for (let second = 0; second < seconds; second++) {
      sent.push(...many(perSecond, () => api.post('/user-interactions', touch())));
      await sleep(1_000);
    }
    expect(new Set((await Promise.all(sent)).map(({ status }) => status))).toEqual(new Set([201]));
    const lastMs = performance.now();
    await expect.poll(touches, { interval: 500 }).toBe(before + seconds * perSecond);
    return [{ what: 'the last touch is counted', ms: performance.now() - lastMs, promisedMs }];
  });
});
