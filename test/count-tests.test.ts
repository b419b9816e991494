import { expect, it } from 'vitest';
import { addCounts, countTests } from '../scripts/count-tests.ts';

const file = (name: string, status: string, ...tests: string[]) => ({
  name: `/repository/${name}`,
  status,
  assertionResults: tests.map((status) => ({ status })),
});
const report = (...testResults: ReturnType<typeof file>[]) => ({ testResults });
const files = ['test/a.test.ts'];

it('counts every test of every stage', () => {
  const first = { passed: true, files, report: report(file('test/a.test.ts', 'passed', 'passed', 'passed')) };
  const second = {
    passed: false,
    files: ['test/a.test.ts', 'test/b.test.ts'],
    report: report(
      file('test/a.test.ts', 'passed', 'passed', 'skipped', 'todo'),
      file('test/b.test.ts', 'failed', 'failed', 'passed'),
    ),
  };
  const linter = { passed: true };
  expect(addCounts([first, second, linter].map(countTests))).toEqual({ passed: 4, failed: 1, skipped: 2 });
});

it.each([
  ['a test that did not end', report(file('test/a.test.ts', 'passed', 'passed', 'pending')), true],
  ['a hook that failed', report(file('test/a.test.ts', 'failed', 'passed', 'skipped')), false],
  ['a file without tests', report(file('test/a.test.ts', 'passed')), true],
  ['a file that could not be loaded', report(file('test/a.test.ts', 'failed')), false],
  ['a file that did not run', report(file('test/b.test.ts', 'passed', 'passed')), true],
  ['a stage in which every test was skipped', report(file('test/a.test.ts', 'passed', 'skipped')), true],
  ['an error outside the tests', report(file('test/a.test.ts', 'passed', 'passed')), false],
  ['a stage without a report', undefined, true],
])('%s is a failure', (_, report, passed) => {
  expect(countTests({ passed, files, ...(report && { report }) }).failed).toBe(1);
});

it('a linter that failed is a failure', () => {
  expect(countTests({ passed: false })).toEqual({ passed: 0, failed: 1, skipped: 0 });
});
