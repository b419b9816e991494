import { appendFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Defect, defects } from './defects/defects.ts';
import { findDefects } from './defects/find-defects.ts';
import type { FaultKind } from './faults/fault.ts';
import { faultKinds } from './faults/kinds.ts';
import { drawPlan } from './plan.ts';
import { plotOf } from './plot.ts';
import { type Result, runPlan, type Violation } from './run.ts';
import { shorten } from './shorten.ts';
import { sumFigures } from './sum-figures.ts';

/** `npm run faults`: breaks a whole installation on purpose, again and again, and checks what the service promises. */

const usage = `npm run faults -- [options]

  --minutes <n>    how long the clients work (default 3); the start and the checks at the end come on top
  --seed <n>       repeats a run; default: a new one, which is printed
  --runs <n>       plays this many runs with consecutive seeds (default 1)
  --fault <text>   only kinds of faults whose names contain the text; may be repeated
  --small          two organisations, a lake in a folder, no Redis and no standby
  --no-shorten     does not look for a shorter plan after a violation
  --defects        runs copies of the program with deliberate defects, each of which must be found
  --defect <text>  only the defects whose names contain the text; may be repeated
  --ci             a small run with a fixed seed, and two of the defects
  --old <main.js>  the entry point of an older version, which runs next to the current one now and then
  --figures <file> appends each run's figures to a file, one JSON object per line
  --plot <file>    draws the throughput of the last run as SVG
  --sum <file>     prints the sums of such a file as Markdown`;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    runs: { type: 'string', default: '1' },
    fault: { type: 'string', multiple: true },
    small: { type: 'boolean', default: false },
    'no-shorten': { type: 'boolean', default: false },
    defects: { type: 'boolean', default: false },
    defect: { type: 'string', multiple: true },
    ci: { type: 'boolean', default: false },
    old: { type: 'string' },
    figures: { type: 'string' },
    plot: { type: 'string' },
    sum: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const log = (line: string) => console.log(line);
const options = {
  main: fileURLToPath(new URL('../dist/main.js', import.meta.url)),
  oldMain: values.old,
  log,
};
const ciSeed = 1;
const ciSeconds = 30;
/** How much sooner than usual copies and lakes have to be complete, so that defects in them are found soon. */
const haste = 3;
const ciDefects = ['no check of references', 'a lost claim of an Idempotency-Key'];

if (values.help) log(usage);
else if (values.sum) log(sumFigures(values.sum));
else if (values.ci) process.exit(await checkForCi());
else if (values.defects || values.defect)
  process.exit(await findThem(chosenDefects(), chosenSeed(), secondsOr(60), haste));
else process.exit(await playRuns());

function number(name: string, text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value;
  console.error(`--${name} takes a number, not "${text}"\n\n${usage}`);
  process.exit(2);
}

function chosenSeed(): number {
  return values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : number('seed', values.seed);
}

function secondsOr(byDefault: number): number {
  if (values.minutes === undefined) return byDefault;
  return Math.max(5, Math.round(number('minutes', values.minutes) * 60));
}

function chosenFaults(): FaultKind[] {
  const faults = faultKinds.filter(({ name }) => values.fault?.some((text) => name.includes(text)) ?? true);
  if (faults.length > 0) return faults;
  console.error('no kind of fault has such a name; the kinds are:');
  for (const { name } of faultKinds) console.error(`  ${name}`);
  process.exit(2);
}

function chosenDefects(): Defect[] {
  return defects.filter(({ name }) => values.defect?.some((text) => name.includes(text)) ?? true);
}

async function playRuns(): Promise<number> {
  const faults = chosenFaults();
  const seconds = secondsOr(180);
  const first = chosenSeed();
  let failures = 0;
  for (let seed = first; seed < first + number('runs', values.runs); seed++) {
    log(`seed ${seed}, ${seconds} s`);
    const result = await runPlan(drawPlan({ seed, seconds, faults, isSmall: values.small }), options);
    show(result);
    if (values.plot) writeFileSync(values.plot, plotOf(result));
    if (values.figures) appendFileSync(values.figures, `${JSON.stringify(result)}\n`);
    if (result.violations.length === 0) continue;
    failures++;
    log(`FAILED: repeat it with: ${repeatCommand(seed, seconds)}`);
    if (!values['no-shorten'] && !result.violations.every(isOfHarness)) await shorten(result, options);
  }
  return failures > 0 ? 1 : 0;
}

function isOfHarness({ kind }: Violation): boolean {
  return kind.startsWith('harness:');
}

function repeatCommand(seed: number, seconds: number): string {
  const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const more = [
    ...(values.small ? ['--small'] : []),
    ...(values.fault ?? []).map((text) => `--fault ${quoted(text)}`),
    ...(values.old ? [`--old ${quoted(values.old)}`] : []),
  ];
  return [`npm run faults -- --minutes ${seconds / 60} --seed ${seed}`, ...more].join(' ');
}

async function findThem(
  chosen: readonly Defect[],
  seed: number,
  seconds: number,
  haste: number,
): Promise<number> {
  log(`seed ${seed}`);
  const { main } = options;
  const wrong = await findDefects(chosen, { seed, seconds, haste, main, log, show });
  if (chosen.length === 0) wrong.push('no defect has such a name');
  for (const line of wrong) log(`FAILED: ${line}`);
  if (wrong.length === 0) log(`all ${chosen.length} defects were found`);
  return wrong.length > 0 ? 1 : 0;
}

function checkForCi(): Promise<number> {
  const chosen = defects.filter(({ name }) => ciDefects.includes(name));
  return findThem(chosen, values.seed === undefined ? ciSeed : chosenSeed(), ciSeconds, 1);
}

function show({ violations, faults: played, unavailable, counts, statuses, ...rest }: Result): void {
  const count = Object.values(played).reduce((sum, one) => sum + one, 0);
  const { acknowledged, checked, requests, recoveries } = rest;
  log(
    `${violations.length} violations; ${count} faults of ${Object.keys(played).length} kinds, ${requests} requests, ` +
      `${acknowledged} records and interactions acknowledged, ${checked} comparisons, ${rest.seconds} s`,
  );
  const sorted = (list: readonly (number | null)[]) =>
    list.map((ms) => ms ?? Number.POSITIVE_INFINITY).toSorted((one, other) => one - other);
  const success = sorted(recoveries.map(({ successMs }) => successMs));
  const ready = sorted(recoveries.map(({ readyMs }) => readyMs));
  const at = (list: readonly number[], share: number) => list[Math.floor((list.length - 1) * share)];
  log(
    `after a fault, first success: median ${at(success, 0.5)} ms, longest ${at(success, 1)} ms; ` +
      `all ready: median ${at(ready, 0.5)} ms, longest ${at(ready, 1)} ms`,
  );
  log(`faults: ${JSON.stringify(played)}`);
  if (unavailable.length > 0) log(`left out, because this run cannot have them: ${unavailable.join(', ')}`);
  log(`clients: ${JSON.stringify(counts)}`);
  log(`answers: ${JSON.stringify(statuses)}`);
  const kinds = Map.groupBy(violations, ({ kind }) => kind);
  for (const [kind, all] of kinds) log(`  ${all.length} × ${kind}, first at ${all[0]?.second} s`);
}
