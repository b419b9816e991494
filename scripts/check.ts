import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { slowness } from '../test/support/slowness.ts';
import { addCounts, type Counts, countTests } from './count-tests.ts';

/**
 * Runs `npm run check` or, with --all, `npm run check:all`. It runs one row of stages after another until a stage fails, and
 * prints the duration and the CPU time of each stage, the slowest test files, and how many tests passed.
 */

interface Stage {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The test files that the stage runs, if it runs any. */
  readonly files?: readonly string[];
}

const all = process.argv.includes('--all');
const reports = mkdtempSync(join(tmpdir(), 'intake-check-'));

/**
 * Selects test files by tag. Vitest can filter by tag too, but it loads every file to do so, which takes 0.2 seconds per
 * file.
 */
function filesTagged(isWanted: (tags: ReadonlySet<string>) => boolean): string[] {
  const files = globSync(
    ['src', 'test', 'faults', 'bench', 'client/test', 'console/test'].map(
      (folder) => `${folder}/**/*.test.ts`,
    ),
  );
  return files.filter((file) => {
    const tags = readFileSync(file, 'utf8').matchAll(/^\/\/ @module-tag (\S+)$/gm);
    return isWanted(new Set([...tags].map(([, tag]) => tag as string)));
  });
}

const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8'));

const npm = (script: string): Stage => ({ name: script, command: ['npm', 'run', '--silent', script] });

const reportOf = (stage: string) => join(reports, `${stage}.json`);

function tests(name: string, files: readonly string[], env: Record<string, string> = {}): Stage {
  const command = ['npx', 'vitest', 'run', ...files];
  return { name, command, files, env: { ...env, TEST_RESULTS: reportOf(name) } };
}

const full = filesTagged((tags) => tags.has('full'));
/** Returns whether a test file has a time limit. Such files run after everything else. */
const isTimed = (file: string) => file.startsWith('test/load/');

const waiting = filesTagged((tags) => tags.has('waiting'));

/** Stages that run one after another. */
type Lane = readonly Stage[];

const timesSlower = slowness();
console.log(
  `This machine computes ${timesSlower.toFixed(1)} times slower than the one that the limits are for`,
);
/**
 * Test files wait more than they compute, so more of them than cores run at the same time. On a slow machine, they compute for
 * a larger share of their time, and requests of too many at once would wait longer than the service allows.
 */
const workers = (count: number) => ({ TEST_WORKERS: String(Math.round(count / Math.sqrt(timesSlower))) });

/** The rows run one after another, and the lanes in a row run in parallel. */
const quick: readonly Lane[][] = [
  ['check:types', 'check:lint', 'check:generated', 'check:api', 'build'].map((script) => [npm(script)]),
  [
    [
      tests(
        'tests',
        filesTagged((tags) => !tags.has('full')),
        { ...workers(4), PROPERTY_SHARE: '0.2' },
      ),
    ],
  ],
];
const others: readonly Lane[][] = [
  [
    [
      tests(
        'full tests',
        full.filter((file) => !isTimed(file)),
        // Many of these tests wait for seconds. With six workers, two cores are busy 98 % of the time.
        workers(6),
      ),
    ],
  ],
  // These stages do not run in parallel with the full tests, because on two busy cores new connections would wait
  // longer than the service allows.
  [
    [npm('check:clients'), { name: 'fuzz', command: ['node', 'fuzz/main.ts', '--quick'] }],
    [
      tests(
        'tests on PostgreSQL 15',
        filesTagged((tags) => tags.has('postgres-15')).filter((file) => !isTimed(file)),
        { TEST_POSTGRES: '15', TEST_WORKERS: '2', PROPERTY_SHARE: '0.2' },
      ),
      tests(
        'tests through PgBouncer',
        filesTagged((tags) => tags.has('pooler')),
        { TEST_POOLER: '1', TEST_WORKERS: '2' },
      ),
    ],
  ],
  [[{ name: 'faults', command: ['node', 'faults/main.ts', '--ci'] }]],
  // Load tests that mostly wait run next to those that keep a core busy.
  [
    [
      tests(
        'load tests',
        full.filter((file) => isTimed(file) && !waiting.includes(file)),
      ),
    ],
    [tests('load tests that wait', waiting)],
  ],
  // The sizes are small and the floors are far below the goals. The check therefore fails if performance collapses, but not
  // if the machine is slow for a minute.
  [[{ name: 'bench', command: ['node', 'bench/main.ts', '--quick'] }]],
];

const failed: string[] = [];
const took: (readonly [seconds: number, what: string])[] = [];
const counted: Counts[] = [];

/** Bash knows the CPU time of the processes that it waited for, and of those that they waited for. Node does not. */
const measured = '"$@"; code=$?; times > "$CPU_TIMES"; exit $code';

async function passes({ name, command, env, files }: Stage): Promise<boolean> {
  console.log(`\n== ${name}`);
  const beganMs = performance.now();
  const CPU_TIMES = join(reports, `${name.replace(':', '-')}.times`);
  const child = spawn('bash', ['-c', measured, 'bash', ...command], {
    stdio: 'inherit',
    env: { ...process.env, ...env, CPU_TIMES },
  });
  const [code] = await once(child, 'exit');
  const seconds = (performance.now() - beganMs) / 1_000;
  took.push([seconds, `${name} (${cpuSeconds(CPU_TIMES).toFixed(0)} s of CPU)`]);
  const report = files && existsSync(reportOf(name)) ? readJson(reportOf(name)) : undefined;
  const counts = countTests({ passed: code === 0, ...(files && { files }), ...(report && { report }) });
  counted.push(counts);
  return counts.failed === 0;
}

/** Reads what `times` in Bash prints: user and system time of the shell, and below of its children. */
function cpuSeconds(file: string): number {
  const times = existsSync(file) ? readFileSync(file, 'utf8').matchAll(/(\d+)m([\d.]+)s/g) : [];
  return [...times].reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0);
}

async function runLane(lane: Lane): Promise<void> {
  for (const stage of lane) {
    if (failed.length > 0) return;
    if (!(await passes(stage))) failed.push(stage.name);
  }
}

interface FileResult {
  readonly name: string;
  readonly startTime: number;
  readonly endTime: number;
  /** An error outside the tests, in a hook or while the file was being loaded. */
  readonly message: string;
  readonly assertionResults: readonly {
    status: string;
    fullName: string;
    failureMessages: readonly string[];
  }[];
}

/** Returns the test files that ran, each with its stage. */
function testedFiles(): (FileResult & { readonly file: string })[] {
  return globSync('*.json', { cwd: reports }).flatMap((report) => {
    const results: FileResult[] = readJson(join(reports, report)).testResults;
    const stage = report.replace('.json', '');
    return results.map((result) => ({ ...result, file: `${relative('', result.name)} (${stage})` }));
  });
}

const slowest = (files: ReturnType<typeof testedFiles>) =>
  files
    .map(({ startTime, endTime, file }) => [(endTime - startTime) / 1_000, file] as const)
    .toSorted(([one], [other]) => other - one)
    .slice(0, 20);

/** Prints the failed tests again at the end, because readers look at the end of a log first. */
function printFailures(files: ReturnType<typeof testedFiles>): void {
  for (const { file, message, assertionResults } of files) {
    if (message !== '') console.error(`\n${file}: ${message}`);
    for (const { status, fullName, failureMessages } of assertionResults) {
      if (status === 'failed')
        console.error(`\n${file}: ${fullName}\n${failureMessages.join('\n').slice(0, 2_000)}`);
    }
  }
}

function print(title: string, lines: readonly (readonly [seconds: number, what: string])[]): void {
  console.log(`\n${title}`);
  for (const [seconds, what] of lines) console.log(`${seconds.toFixed(0).padStart(6)} s  ${what}`);
}

for (const row of all ? [...quick, ...others] : quick) await Promise.all(row.map(runLane));
print('Stages', [...took, [performance.now() / 1_000, 'from beginning to end']]);
const files = testedFiles();
rmSync(reports, { recursive: true });
print('Slowest test files', slowest(files));
printFailures(files);
if (failed.length > 0) {
  console.error(`\nFAILED: ${failed.join(', ')}`);
  process.exitCode = 1;
}
// This must be the last line, because those who start the checks read the counts there.
const { passed, failed: failures, skipped } = addCounts(counted);
console.log(`\n${passed} passed, ${failures} failed, ${skipped} skipped`);
