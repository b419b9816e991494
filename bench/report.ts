import { cpus } from 'node:os';
import { type Bench, type Comparison, type Goal, isMet, median } from './case.ts';
import { settings } from './cluster.ts';

/** Returns a human-readable table, followed by the notes for each line. */
export function tableOf(comparisons: readonly Comparison[]): string {
  const head = ['case', 'yardstick', 'reaches', 'through Intake', 'ratio (min-max)', 'goal', ''];
  const lines = comparisons.map((comparison) => {
    const { name, yardstick, unit, bare, intake, ratios } = comparison;
    return [
      name,
      yardstick,
      `${spread(bare, quantity)} ${unit}`,
      `${spread(intake, quantity)} ${unit}`,
      spread(ratios, (ratio) => ratio.toFixed(2)),
      aimOf(comparison),
      verdict(comparison),
    ];
  });
  const rows = [head, ...lines];
  const widths = head.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const text = rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  const notes = comparisons.flatMap(({ name, notes = [] }) => notes.map((note) => `${name}: ${note}`));
  return [text[0], rule, ...text.slice(1), ...(notes.length > 0 ? ['', ...notes] : [])].join('\n');
}

function spread(values: readonly number[], format: (value: number) => string): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return low === high ? format(low) : `${format(median(values))} (${format(low)}-${format(high)})`;
}

/** Formats a number with three significant digits. */
function quantity(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return value.toPrecision(3);
}

function aimOf({ goal, within }: Comparison): string {
  if (within !== undefined) return `${(1 / within).toFixed(2)} to ${within}`;
  return goal ? goalText(goal) : '';
}

export function goalText(goal: Goal): string {
  return 'atLeast' in goal ? `at least ${goal.atLeast}` : `at most ${goal.atMost}`;
}

function verdict(comparison: Comparison): string {
  const met = isMet(comparison);
  if (met === undefined) return '';
  return met ? 'met' : 'NOT MET';
}

/** Returns all measurements, with the context that is needed to interpret them later. */
export async function reportOf(bench: Bench, comparisons: readonly Comparison[]): Promise<object> {
  const [row] = await bench.cluster.query<{ version: string }>('select version()');
  return {
    measured: new Date().toISOString(),
    versions: { node: process.version, postgresql: row?.version },
    processor: { model: cpus()[0]?.model, cores: cpus().length },
    settings,
    serviceSettings: serviceSettings(),
    rounds: bench.rounds,
    rows: bench.rows,
    connections: bench.connections,
    seconds: bench.seconds,
    results: comparisons.map((comparison) => ({
      ...comparison,
      median: {
        bare: median(comparison.bare),
        intake: median(comparison.intake),
        ratio: median(comparison.ratios),
      },
      met: isMet(comparison) ?? null,
    })),
  };
}

/** Returns the service settings that are set in the environment. The result is empty if all settings have their defaults. */
function serviceSettings(): Record<string, string | undefined> {
  const names = ['DATABASE_CONNECTIONS_MAX', 'LOG_LEVEL', 'NODE_OPTIONS', 'UV_THREADPOOL_SIZE'];
  return Object.fromEntries(
    names.filter((name) => process.env[name]).map((name) => [name, process.env[name]]),
  );
}
