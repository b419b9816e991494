import { readFileSync } from 'node:fs';
import type { Result } from './run.ts';

/** Adds up the figures of many runs, as Markdown for docs/reliability.md. */
export function sumFigures(file: string): string {
  const results = readFileSync(file, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Result);
  const sum = (of: (result: Result) => number) => results.reduce((total, result) => total + of(result), 0);
  const counted = (name: string) => sum(({ counts }) => counts[name] ?? 0);
  const faults = new Map<string, number>();
  for (const result of results)
    for (const [kind, count] of Object.entries(result.faults))
      faults.set(kind, (faults.get(kind) ?? 0) + count);
  const failed = results.filter(({ violations }) => violations.length > 0);
  const recoveries = results.flatMap((result) => result.recoveries);
  const rows: readonly (readonly [string, number | string])[] = [
    ['runs', results.length],
    ['hours', (sum(({ seconds }) => seconds) / 3_600).toFixed(1)],
    ['faults', [...faults.values()].reduce((total, one) => total + one, 0)],
    ['kinds of faults', faults.size],
    ['requests', sum(({ requests }) => requests)],
    ['records and interactions acknowledged', sum(({ acknowledged }) => acknowledged)],
    ['comparisons with the database', sum(({ checked }) => checked)],
    ['changes read by followers', counted('changes read')],
    ['people erased', counted('people erased')],
    ['bad requests', counted('bad requests')],
    ['runs that broke a promise', failed.length],
  ];
  const kinds = [...faults].toSorted(([one], [other]) => one.localeCompare(other, 'en'));
  return [
    table(['Figure', 'Sum'], rows),
    table(
      ['Fault', 'Times', 'First success, median', 'longest', 'All ready, median', 'longest'],
      kinds.map(([kind, count]) => [kind, count, ...times(recoveries.filter((one) => one.kind === kind))]),
    ),
    `Seeds: ${results.map(({ plan }) => plan.seed).join(', ')}`,
    ...failed.map(
      ({ plan, violations }) =>
        `Seed ${plan.seed}: ${[...new Set(violations.map(({ kind }) => kind))].join('; ')}`,
    ),
  ].join('\n\n');
}

function times(recoveries: Result['recoveries']): string[] {
  return [recoveries.map(({ successMs }) => successMs), recoveries.map(({ readyMs }) => readyMs)].flatMap(
    (list) => {
      const sorted = list.map((ms) => ms ?? Number.POSITIVE_INFINITY).toSorted((one, other) => one - other);
      const [median = 0, longest = 0] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted.at(-1)];
      return [median, longest].map((ms) => `${(ms / 1_000).toFixed(1)} s`);
    },
  );
}

function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.map(cell).join(' | ')} |`);
  return lines.join('\n');
}

const cell = (value: string | number) => (typeof value === 'number' ? value.toLocaleString('en') : value);
