// @module-tag full

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startBuiltServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake, type Interaction } from '../src/index.ts';
import { runIntake } from './support/run-intake.ts';

it('batches are split for a service that accepts fewer interactions at once or per second, which is reported once', async () => {
  const server = await startBuiltServer({
    RECORDS_PER_REQUEST_MAX: '60',
    INTERACTIONS_PER_SECOND_MAX: '20',
  });
  onTestFinished(() => server.stop());
  const key = await server.createKey('small');
  const intake = new Intake({ url: server.url, key });
  const warn = vi.spyOn(console, 'warn').mockReturnValue();
  onTestFinished(() => warn.mockRestore());
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
  expect(warn.mock.calls).toEqual([[expect.stringContaining('ask the operator to raise the limits')]]);

  const cwd = mkdtempSync(join(tmpdir(), 'intake-limits-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  const rows = interactions.slice(0, 60).map((one) => Object.values(one).join());
  writeFileSync(
    join(cwd, 'interactions.csv'),
    `${[Object.keys(interactions[0]!).join(), ...rows].join('\n')}\n`,
  );
  const place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key } };
  const uploaded = await runIntake(place, 'upload', 'interactions.csv');
  expect(uploaded.exitCode, uploaded.stderr).toBe(0);
  expect(uploaded.stderr.match(/\(429\)/g)).toHaveLength(1);
});
