import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { costsOf, rounded, sourceOf } from '../costs-of.ts';
import type { Usage } from '../usage.ts';
import { recordCost } from './capacity.ts';
import { measuredCosts } from './measured-costs.ts';

const source = readFileSync(new URL('measured-costs.ts', import.meta.url), 'utf8');

it('the bench prints costs in the form of the source', () => {
  expect(source).toContain(`= {\n${sourceOf(measuredCosts)}\n\n`);
  expect(rounded(measuredCosts)).toEqual(measuredCosts);
});

it('the costs of an upload and of a record reproduce the measured costs of uploads of both sizes', () => {
  const usage: Usage = {
    service: 300e-6,
    postgres: 200e-6,
    wal: 700,
    changes: 60,
    records: 250,
    recordKeys: 60,
    interactions: 260,
    receipts: 100,
  };
  const whole: Usage = { ...usage, service: 10e-6, postgres: 12e-6, wal: 460, changes: 18 };
  const measured = {
    small: usage,
    whole,
    interactions: [{ perSecond: 100, one: usage, many: usage }],
    indexing: { postgres: 7e-6, wal: 280, bytes: 277 },
  };
  const costs = costsOf(measured, 'a machine of ours');
  const inSmall = recordCost(10, costs);
  const inWhole = recordCost(1_000, costs);
  expect(inSmall.service).toBeCloseTo(300);
  expect(inSmall.changes).toBeCloseTo(60);
  expect(inWhole.postgres).toBeCloseTo(12);
  expect(inWhole.wal).toBeCloseTo(460);
  expect(costs.stored.receipt).toBe(1_000);
});
