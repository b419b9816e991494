import { readFileSync } from 'node:fs';
import { writeOrCheck } from '../scripts/write-or-check.ts';
import { type Capacity, cpuRange, type Demand, planCapacity } from './planning/capacity.ts';
import { measuredCosts } from './planning/measured-costs.ts';

/** Writes the table of sizes in docs/operating/scaling.md. */

const sizes: readonly Demand[] = [
  size(10, 10, 1, 365),
  size(500, 200, 50, 365),
  size(20_000, 20_000, 1_000, 3),
  size(500_000, 100_000, 100_000, 2),
  size(500_000, 100_000, 100_000, 30),
];

function size(
  recordsPerSecond: number,
  interactionsPerSecond: number,
  organisations: number,
  retentionDays: number,
): Demand {
  return { recordsPerSecond, recordsPerRequest: 1_000, interactionsPerSecond, organisations, retentionDays };
}

const columns: Readonly<Record<string, (demand: Demand, low: Capacity, high: Capacity) => string>> = {
  'Records/s': ({ recordsPerSecond }) => count(recordsPerSecond),
  'Interactions/s': ({ interactionsPerSecond }) => count(interactionsPerSecond),
  Organisations: ({ organisations }) => count(organisations),
  Days: ({ retentionDays }) => count(retentionDays),
  Stage: (_, low, high) => either(low.stage, high.stage, ' or '),
  Service: (_, low, high) => `${processes(low, high)}, ${cores(low.service.cores, high.service.cores)}`,
  PostgreSQL: (_, low, high) => `${cores(low.postgres.cores, high.postgres.cores)}, ${machines(high)}`,
  Connections: (_, _low, high) => count(high.connections),
  Disk: (_, _low, { disk }) => bytes(sum(disk.filter(({ name }) => name !== 'WAL archive'))),
  'WAL archive': (_, _low, { disk }) => bytes(sum(disk.filter(({ name }) => name === 'WAL archive'))),
  Keys: (_, _low, { postgres }) => bytes(postgres.keyBytes),
};

function row(demand: Demand): string {
  const low = planCapacity(demand, measuredCosts, cpuRange.least);
  const high = planCapacity(demand, measuredCosts, cpuRange.most);
  return line(Object.values(columns).map((cell) => cell(demand, low, high)));
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

function processes({ service: low }: Capacity, { service: high }: Capacity): string {
  if (high.processes === 1) return '1 process';
  return `${either(count(low.processes), count(high.processes), '-')} processes`;
}

function machines({ stage, postgres }: Capacity): string {
  if (stage !== 'Citus') return '1 machine';
  return `a coordinator and ${count(postgres.machines)} workers (${postgres.shards} shards)`;
}

function sum(parts: readonly { readonly kept: number }[]): number {
  return parts.reduce((total, { kept }) => total + kept, 0);
}

function either(low: string, high: string, between: string): string {
  return low === high ? high : `${low}${between}${high}`;
}

/** Formats a range with two significant digits. */
function cores(low: number, high: number): string {
  return low < 0.01 ? `up to ${rounded(high)} cores` : `${either(rounded(low), rounded(high), '-')} cores`;
}

function count(number: number): string {
  return number.toLocaleString('en');
}

function rounded(number: number): string {
  return Number(number.toPrecision(2)).toLocaleString('en');
}

function bytes(number: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  const power = Math.floor(Math.log10(number) / 3);
  return `${rounded(number / 1_000 ** power)} ${units[power]}`;
}

const page = readFileSync(new URL('../docs/operating/scaling.md', import.meta.url), 'utf8');
const head = Object.keys(columns);
const table = [line(head), `|${'---|'.repeat(head.length)}`, ...sizes.map(row)];
const updated = page.replace(/^\| Records\/s \|.*\n(\|.*\n)*/m, `${table.join('\n')}\n`);
writeOrCheck('docs/operating/scaling.md', updated, 'bench/planning/measured-costs.ts says');
