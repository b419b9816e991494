import { helpText, type Options, type Run, readOptions, UsageError } from './options.ts';
import { findSchemathesis, runSchemathesis, writeSettings } from './schemathesis.ts';
import { seed } from './seed.ts';
import { isBuilt, startTarget, type Target } from './target.ts';

const brokenOff = new AbortController();

/** Runs one round against its own service and returns the problems found. */
async function fuzz(program: string, options: Options, seedOfRound: number): Promise<string[]> {
  const target = await startTarget();
  try {
    const settings = writeSettings(target, await seed(target));
    const failures: string[] = [];
    for (const run of options.runs) {
      console.log(`\n${run.name}: ${run.what}, with seed ${seedOfRound}\n`);
      const args = argsOf(run, options, target, seedOfRound);
      const passed = await runSchemathesis(program, args, { target, settings, signal: brokenOff.signal });
      if (!passed) failures.push(`${run.name}, seed ${seedOfRound}: Schemathesis found the problems above`);
    }
    if (target.hasEnded()) failures.push(`seed ${seedOfRound}: the service has ended`);
    const { answers, faults } = await target.readLog();
    console.log(`\n${[...answers].map(([status, count]) => `${count} times ${status}`).join(', ')}`);
    return [...failures, ...faults.map((line) => `seed ${seedOfRound}, in the log of the service: ${line}`)];
  } finally {
    await target.stop();
  }
}

function argsOf(
  run: Run,
  { quick, examples, operation }: Options,
  target: Target,
  seedOfRound: number,
): string[] {
  const url = run.api === 'admin' ? target.adminUrl : target.url;
  const operations = operation === undefined ? run.operations : `^${operation}$`;
  return [
    `${url}/openapi.json`,
    ...['--seed', String(seedOfRound), '--max-examples', String(examples)],
    ...(operations === undefined ? [] : ['--include-operation-id-regex', operations]),
    ...(run.header === undefined ? [] : ['--header', run.header]),
    ...(quick && run.quickPhases !== undefined ? ['--phases', run.quickPhases] : []),
  ];
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (!options) return console.log(helpText());
  if (!isBuilt()) throw new UsageError('there is no dist/main.js; run npm run build');
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => brokenOff.abort());
  const program = findSchemathesis();
  const failures: string[] = [];
  for (let round = 0; round < options.rounds; round++)
    failures.push(...(await fuzz(program, options, options.seed + round)));
  for (const failure of failures) console.error(failure);
  if (failures.length > 0) process.exitCode = 1;
}

main().catch((error: unknown) => {
  if (brokenOff.signal.aborted) process.exit(130);
  console.error(error instanceof UsageError ? error.message : error);
  process.exitCode = error instanceof UsageError ? 2 : 1;
});
