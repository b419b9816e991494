import { parseArgs } from 'node:util';
import { Intake, type UploadType } from '../client/src/index.ts';
import { Chance } from './chance.ts';
import { makePlatform, withMistakes } from './platform.ts';

/**
 * `npm run demo`: fills a service with a year of data from a student-discount platform, including mistakes. The same seed
 * produces the same records, so a second run only adds interactions.
 */

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: process.env.INTAKE_URL ?? 'http://127.0.0.1:8080' },
    seed: { type: 'string', default: '1' },
    customers: { type: 'string', default: '2000' },
  },
});
const key = process.env.INTAKE_KEY;
if (key === undefined) {
  console.error('set INTAKE_KEY to a key of the organisation to fill; npm run dev prints one');
  process.exit(1);
}
const customers = Number(values.customers);
if (!Number.isInteger(customers) || customers < 1) {
  console.error(`--customers takes a whole number, not "${values.customers}"`);
  process.exit(1);
}

const { interactions = [], ...types } = makePlatform(new Chance(Number(values.seed), Date.now()), {
  shops: Math.ceil(customers / 20),
  customers,
  transactions: 10 * customers,
  interactions: 10 * customers,
});
const mistaken = new Set(['customers', 'transactions']);
const intake = new Intake({ url: values.url, key });
for (const [type, records] of Object.entries(types)) {
  const sent = mistaken.has(type) ? withMistakes(type, records) : records;
  // Sends a few thousand per upload, like a nightly export.
  for (let at = 0; at < sent.length; at += 4_000) {
    const part = sent.slice(at, at + 4_000) as never[];
    show(type, await intake.upload(type as Exclude<UploadType, 'interactions'>, part).finish());
  }
}
show('interactions', await intake.interactions.upload(interactions as never[]).finish());
await intake.close();

function show(type: string, { counts }: { readonly counts: { received: number; failed: number } }): void {
  console.log(`${type.padEnd(20)} ${counts.received} sent, ${counts.failed} failed`);
}
