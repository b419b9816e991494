import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Intake, IntakeError, type UploadType } from '../client/src/index.ts';
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
const reportWaitMs = 300_000;
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
await untilReported(Date.now());
await intake.close();

/** Waits until the report has counted everything that was stored before this time, so that `intake report` shows it. */
async function untilReported(storedMs: number): Promise<void> {
  for (const endMs = performance.now() + reportWaitMs; performance.now() < endMs; await sleep(1_000)) {
    const { value } = await intake.reports.recommendations({ limit: 1 }).next().catch(unlessThereIsNone);
    if (value === undefined || Date.parse(value.as_of ?? '') >= storedMs) return;
  }
  console.log('The report has not counted everything yet; intake report shows how far it is.');
}

/** The report may be off, and the key may be unable to read it. */
function unlessThereIsNone(error: unknown): { readonly value: undefined } {
  if (error instanceof IntakeError && ['report_off', 'missing_permission'].includes(error.code))
    return { value: undefined };
  throw error;
}

function show(type: string, { counts }: { readonly counts: { received: number; failed: number } }): void {
  console.log(`${type.padEnd(20)} ${counts.received} sent, ${counts.failed} failed`);
}
