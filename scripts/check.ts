import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

/**
 * Runs `npm run check` or, with --all, `npm run check:all`. It runs one row of stages after another until a stage fails, and
 * prints the duration of each stage and the slowest test files.
 */

interface Stage {
  readonly name: string;
  readonly command: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const all = process.argv.includes('--all');
const reports = mkdtempSync(join(tmpdir(), 'intake-check-'));

/**
 * Selects test files by tag. Vitest can filter by tag too, but it loads every file to do so, which takes 0.2 seconds per
 * file.
 */
function filesTagged(isWanted: (tags: ReadonlySet<string>) => boolean): string[] {
  const files = globSync(
    ['src', 'test', 'client/test', 'console/test'].map((folder) => `${folder}/**/*.test.ts`),
  );
  return files.filter((file) => {
    const tags = readFileSync(file, 'utf8').matchAll(/^\/\/ @module-tag (\S+)$/gm);
    return isWanted(new Set([...tags].map(([, tag]) => tag as string)));
  });
}

const npm = (script: string): Stage => ({ name: script, command: ['npm', 'run', '--silent', script] });

function tests(name: string, files: readonly string[], env: Record<string, string> = {}): Stage {
  const TEST_RESULTS = join(reports, `${name}.json`);
  return { name, command: ['npx', 'vitest', 'run', ...files], env: { ...env, TEST_RESULTS } };
}

const full = filesTagged((tags) => tags.has('full'));
/** Returns whether a test file has a time limit. Such files run after everything else. */
const isTimed = (file: string) => file.startsWith('test/load/');

const waiting = filesTagged((tags) => tags.has('waiting'));

/** Stages that run one after another. */
type Lane = readonly Stage[];

/** The rows run one after another, and the lanes in a row run in parallel. */
const quick: readonly Lane[][] = [
  ['check:types', 'check:lint', 'check:generated', 'check:api', 'build'].map((script) => [npm(script)]),
  [
    [
      tests(
        'tests',
        filesTagged((tags) => !tags.has('full')),
        // Test files wait more than they compute, so four workers keep two cores busy.
        { TEST_WORKERS: '4', PROPERTY_SHARE: '0.2' },
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
        { TEST_WORKERS: '6' },
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

async function passes({ name, command, env }: Stage): Promise<boolean> {
  console.log(`\n== ${name}`);
  const beganMs = performance.now();
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...env } });
  const [code] = await once(child, 'exit');
  took.push([(performance.now() - beganMs) / 1_000, name]);
  return code === 0;
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
    const results: FileResult[] = JSON.parse(readFileSync(join(reports, report), 'utf8')).testResults;
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
        console.error(`\n${file}: ${fullName}\n${failureMessages.join('\n').slice(0, 600)}`);
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
