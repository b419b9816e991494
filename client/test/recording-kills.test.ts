// @module-tag full

import { once } from 'node:events';
import { expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { createTestDatabase } from '../../test/support/database.ts';
import { freePort } from '../../test/support/free-port.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';

const interactions = Number(process.env.INTERACTIONS ?? 20_000);
const kills = 5;

it(`${interactions} interactions, recorded at once, are each stored once although the service is killed ${kills} times`, async () => {
  const env = { DATABASE_URL: await createTestDatabase(), PORT: String(await freePort()) };
  let server: BuiltServer = await startBuiltServer(env);
  const intake = new Intake({ url: server.url, key: await server.createKey('recorder') });
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();

  let settled = 0;
  const recorded = many(interactions, (at) =>
    intake
      .record({
        interaction_type: 'SHARE',
        item_type: 'SHOP',
        item_id: shop.shop_id,
        user_id: `mark ${at}`,
        event_timestamp: 1_700_000_000_000 + at,
      })
      .finally(() => settled++),
  );
  const results = Promise.allSettled(recorded);
  for (let kill = 1; kill <= kills; kill++) {
    await expect.poll(() => settled, { interval: 1 }).toBeGreaterThan((interactions * (kill - 1)) / kills);
    // Some promises are not settled yet, so a request is pending.
    expect(settled).toBeLessThan(interactions);
    const ended = once(server.process, 'exit');
    server.process.kill('SIGKILL');
    await ended;
    server = await startBuiltServer(env);
  }
  const ids = (await results).map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value.interaction_id;
  });
  const stored = new Map<string, string | null | undefined>();
  let count = 0;
  for await (const one of intake.interactions.list({ limit: 1_000 })) {
    stored.set(one.interaction_id, one.user_id);
    count++;
  }
  expect(count).toBe(interactions);
  expect(ids.filter((id, at) => stored.get(id as string) !== `mark ${at}`)).toEqual([]);
  await intake.close();
  await server.stop();
});
