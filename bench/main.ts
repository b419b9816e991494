import { writeFileSync } from 'node:fs';
import { type Bench, type Comparison, isMet, median } from './case.ts';
import { cases } from './cases.ts';
import { startCluster } from './cluster.ts';
import { helpText, type Options, readOptions, UsageError } from './options.ts';
import { plotOf } from './plot.ts';
import { reportOf, tableOf } from './report.ts';
import { isBuilt, migrateWithService, startService } from './service.ts';
import { createBareTables, createTenants } from './tables.ts';

/** Everything that has been started. It is stopped in reverse order, no matter how the run ends. */
const running = new AsyncDisposableStack();
let currentCase = 'starting';
let brokenOff = false;

function progress(what: string): void {
  process.stderr.write(`[${currentCase}] ${what}\n`);
}

async function startParts(options: Options): Promise<Bench> {
  progress('PostgreSQL and the service');
  const cluster = await startCluster();
  running.defer(() => cluster.stop());
  await migrateWithService(cluster);
  await createBareTables(cluster);
  const [tenant] = await createTenants(cluster, 1);
  if (!tenant) throw new Error('no organisation was created');
  const service = await startService(cluster);
  running.defer(() => service.stop());
  const defer = (end: () => Promise<void>) => running.defer(end);
  return { ...options, cluster, service, tenant, progress, defer };
}

async function run(options: Options): Promise<void> {
  const starting = startParts(options);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void breakOff(starting));
  const bench = await starting;
  const comparisons: Comparison[] = [];
  for (const { name, run: measure } of options.cases) {
    currentCase = name;
    let measured = await measure(bench);
    // Measure again, because other load on this machine may have slowed down only one side. A real defect will show up
    // in every measurement.
    for (let again = 0; options.quick && again < 4 && measured.some(isBelowFloor); again++) {
      console.log(tableOf(measured));
      progress('below its floor; again');
      measured = await measure(bench);
    }
    comparisons.push(...measured);
  }
  console.log(tableOf(comparisons));
  if (options.json) {
    writeFileSync(options.json, `${JSON.stringify(await reportOf(bench, comparisons), null, 2)}\n`);
  }
  if (options.plot) writeFileSync(options.plot, plotOf(comparisons));
  if (options.quick) failBelowFloor(comparisons);
  else failOutside(comparisons);
}

/**
 * Stops everything after an interruption. Waits for anything that is still starting, because it cannot be stopped earlier.
 */
async function breakOff(starting: Promise<Bench>): Promise<void> {
  brokenOff = true;
  process.stderr.write('stopping\n');
  await Promise.allSettled([starting]);
  await running.disposeAsync();
  process.exit(130);
}

function isBelowFloor({ ratios, floor }: Comparison): boolean {
  return floor !== undefined && median(ratios) < floor;
}

function failBelowFloor(comparisons: readonly Comparison[]): void {
  for (const { name, ratios, floor } of comparisons.filter(isBelowFloor)) {
    console.error(`${name}: ${median(ratios).toFixed(2)} is below the floor of ${floor}; something broke`);
    process.exitCode = 1;
  }
}

/**
 * Fails the run if a ratio is outside its range. The quick run skips this check, because its small sizes are too noisy on a
 * busy machine.
 */
function failOutside(comparisons: readonly Comparison[]): void {
  for (const comparison of comparisons) {
    const { name, ratios, within } = comparison;
    if (within === undefined || isMet(comparison)) continue;
    console.error(`${name}: ${median(ratios).toFixed(2)} of the yardstick is not within ${within}`);
    process.exitCode = 1;
  }
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), cases);
  if (!options) return console.log(helpText(cases));
  if (!isBuilt()) throw new UsageError('there is no dist/main.js; run npm run build');
  try {
    await run(options);
  } finally {
    if (!brokenOff) await running.disposeAsync();
  }
}

main().catch((error: unknown) => {
  if (brokenOff) return; // The interruption caused the failure.
  console.error(error instanceof UsageError ? error.message : error);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
