// @module-tag full

import { expect, it, onTestFinished } from 'vitest';
import { startBuiltServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake, type Interaction } from '../src/index.ts';

it('batches are split for a service that takes fewer interactions at once or in a second', {
  timeout: 120_000,
}, async () => {
  const server = await startBuiltServer({
    RECORDS_PER_REQUEST_MAX: '60',
    COURSES_PER_REQUEST_MAX: '60',
    INTERACTIONS_PER_SECOND_MAX: '20',
  });
  onTestFinished(() => server.stop());
  const intake = new Intake({ url: server.url, key: await server.createKey('small') });
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const interactions = many(100, (at) => ({
    interaction_type: 'SHARE' as const,
    item_type: 'SHOP' as const,
    item_id: shop.shop_id,
    event_timestamp: at + 1,
  }));
  const recorded = await Promise.all(interactions.map((one) => intake.record(one)));
  const stored: Interaction[] = [];
  for await (const one of intake.interactions.list({ limit: 1000 })) stored.push(one);
  expect(stored.toReversed()).toEqual(recorded);
  const { counts } = await intake.interactions.upload(interactions).finish();
  expect(counts).toMatchObject({ received: 100, created: 100 });
});
