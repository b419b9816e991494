import { parseArgs } from 'node:util';
import { limits } from '../limits.ts';
import { commandError } from './arguments/help.ts';
import {
  assumed,
  type Capacity,
  cpuRange,
  type Demand,
  planCapacity,
  type Stage,
} from './planning/capacity.ts';
import { type Costs, readCosts } from './planning/costs.ts';
import { measuredCosts } from './planning/measured-costs.ts';

/** Estimates the hardware for a load from measured costs, without a database. */
export async function run(args: string[]): Promise<void> {
  console.log(planFor(args));
}

export function planFor(args: string[]): string {
  const options = Object.fromEntries(
    [...Object.keys(questions), 'costs'].map((name) => [name, { type: 'string' as const }]),
  );
  const values = parseArgs({ args, options }).values as Values;
  const demand = readDemand(values);
  const costs = values.costs === undefined ? measuredCosts : readCosts(values.costs, measuredCosts);
  // Costs that were measured on the user's own machine are used unchanged. The built-in costs are only accurate to an
  // order of magnitude.
  const { least, most } = costs === measuredCosts ? cpuRange : { least: 1, most: 1 };
  const range = { low: planCapacity(demand, costs, least), high: planCapacity(demand, costs, most) };
  return planText(demand, range, costs);
}

/** The plans for the lowest and the highest CPU use that the load may need. */
interface Range {
  readonly low: Capacity;
  readonly high: Capacity;
}

type Values = Partial<Record<Question | 'costs', string>>;

function readDemand(values: Values): Demand {
  const read = (name: Question) => readNumber(name, values[name]);
  return {
    recordsPerSecond: read('records-per-second'),
    interactionsPerSecond: read('interactions-per-second'),
    organisations: read('organisations'),
    retentionDays: read('retention'),
    recordsPerRequest:
      values['records-per-request'] === undefined ? limits.recordsPerBatch : read('records-per-request'),
  };
}

/** The options. Each entry has the option's meaning, an example, the minimum and the maximum. */
const questions = {
  'records-per-second': ['how many records are uploaded a second', 2_000, 0, 1e9],
  'interactions-per-second': ['how many interactions are recorded a second', 500, 0, 1e8],
  organisations: ['how many organisations send them', 200, 1, 1e9],
  retention: ['for how many days of new data there must be room', 365, 1, 36_500],
  'records-per-request': ['how many records an upload holds', 1_000, 1, 100_000],
} as const;

type Question = keyof typeof questions;

function readNumber(name: Question, given: string | undefined): number {
  const [meaning, example, least, most] = questions[name];
  const remedy = `give ${meaning}, such as --${name} ${example}`;
  if (given === undefined) throw commandError(`--${name} is missing; ${remedy}`);
  const number = /^\d{1,10}$/.test(given) ? Number(given) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw commandError(`--${name} must be a whole number from ${least} to ${most}, digits alone; ${remedy}`);
}

const sections: Readonly<Record<Stage, string>> = {
  'one process': 'one-process',
  'many processes': 'many-processes',
  pooler: 'pooler',
  Citus: 'citus',
};

function planText(demand: Demand, { low, high }: Range, costs: Costs): string {
  const { service, postgres, stage, disk } = high;
  const tables = disk.filter(({ name }) => name !== 'WAL archive');
  const size = [
    `${count(demand.recordsPerSecond)} records a second in uploads of ${count(demand.recordsPerRequest)}`,
    `${count(demand.interactionsPerSecond)} interactions a second`,
    amount(demand.organisations, 'organisation'),
    amount(demand.retentionDays, 'day'),
  ];
  const needs = [
    ['Stage', `${stageText(low.stage, stage)}: docs/operating/scaling.md#${sections[stage]}`],
    ['Service', `${cores(low.service.cores, service.cores)}; ${processesText(low, high, costs)}`],
    ['PostgreSQL', `${cores(low.postgres.cores, postgres.cores)}; ${machinesText(high)}`],
    ['', readsText(demand, high)],
    ['Connections', connectionsText(high)],
  ];
  const room = [
    ['Disk', 'a day', 'kept', ''],
    ...disk.map(({ name, perDay, kept, days }) => [name, bytes(perDay), bytes(kept), amount(days, 'day')]),
    [
      'all but the WAL',
      bytes(sum(tables.map(({ perDay }) => perDay))),
      bytes(sum(tables.map(({ kept }) => kept))),
      '',
    ],
  ];
  const assumptions = assumptionsOf(high, costs).map((line) => `- ${line}`);
  return [
    `For ${size.join(', ')}:`,
    '',
    ...table(needs),
    '',
    ...table(room),
    '',
    'Assumed',
    ...assumptions,
  ].join('\n');
}

function stageText(low: Stage, high: Stage): string {
  return low === high ? high : `${high} (${low} if the CPU is at its lower end)`;
}

function processesText(
  { service: low }: Capacity,
  { service: high }: Capacity,
  { processBytes }: Costs,
): string {
  const { processes } = high;
  const from = low.processes === processes ? '' : `${count(low.processes)} to `;
  const many =
    processes === 1 ? '1 process (2 to restart without downtime)' : `${from}${count(processes)} processes`;
  return `${many} with ${bytes(processBytes)} of memory each`;
}

function machinesText({ stage, postgres: { machines, machinesFor, shards } }: Capacity): string {
  if (stage !== 'Citus') return '1 machine';
  return `a coordinator and ${count(machines)} workers because of the ${machinesFor}, ${shards} shards`;
}

function connectionsText({ connections, connectionsPerWorker, stage }: Capacity): string {
  const some = count(connections);
  if (stage === 'Citus')
    return `up to ${some} at the coordinator and ${count(connectionsPerWorker)} at each worker; DATABASE_CONNECTIONS_MAX limits them`;
  if (stage === 'pooler') return `${some} to PgBouncer, ${assumed.poolerSessions} from there to PostgreSQL`;
  return connections > 90 ? `${some}; raise max_connections, which is 100 by default` : some;
}

/**
 * Describes the random reads. Record ids are random, so each new record changes a primary key page that may have to be
 * read first.
 */
function readsText({ recordsPerSecond }: Demand, { postgres: { keyBytes, machines } }: Capacity): string {
  const each = machines === 1 ? '' : `, or ${bytes(keyBytes / machines)} on each worker`;
  return `up to ${count(recordsPerSecond)} random reads per second, unless the keys of all records fit into ${bytes(keyBytes)} of memory${each}`;
}

function assumptionsOf({ stage }: Capacity, costs: Costs): string[] {
  const { measuredOn, onCitus } = costs;
  const { reportMsPerRun, reportIntervalMs } = limits;
  const source =
    costs === measuredCosts
      ? `costs of this version, measured on ${measuredOn}. To use the costs of your machine, run npm run bench -- costs --save <file> in a checkout, then plan with --costs <file>`
      : `costs from --costs, measured on ${measuredOn}`;
  return [
    source,
    ...(costs === measuredCosts
      ? [
          `the CPU is from ${cpuRange.least} to ${cpuRange.most} times those costs, depending on the machine and, if it is shared, on the time of day. The numbers of processes, connections and machines are for the upper end`,
        ]
      : []),
    'the rates are the same day and night. Otherwise, plan the CPU for the peak rates and the disk for the average rates',
    'every record is new and has 15 fields. A record that is sent again unchanged takes 0.7 times the CPU and no disk',
    `each core is at most ${assumed.coreShareMax * 100} % busy, and a machine for PostgreSQL has ${assumed.coresPerMachine} cores and a disk of ${bytes(assumed.diskBytesPerMachine)}`,
    'the WAL has no full-page images. On a large table, they can add up to 8 kB for each record after a checkpoint',
    `receipts are deleted after ${limits.receiptsKeptDays} days, a week at a time, and the change log after ${limits.changesKeptDays} days (CHANGES_KEPT_DAYS), a day at a time. No organisation has a retention for interactions, and records are never deleted`,
    'not counted: a standby (which needs as much as PostgreSQL), base backups, readers of the change feed, exports and other reads',
    `not counted: maintenance, which numbers changes and counts for the report on recommendations, each on its own connection. The report takes at most about ${reportMsPerRun / 1_000} s of every ${(reportIntervalMs + reportMsPerRun) / 1_000} s, and needs disk and WAL for its tables`,
    ...(stage === 'Citus'
      ? [
          `on Citus PostgreSQL takes ${onCitus.record} times the CPU for a record and ${onCitus.interaction} times for an interaction, ${onCitus.interactionOfOne} times if all are of one organisation`,
          'all organisations are of about the same size, and the largest fits on one worker',
        ]
      : []),
  ];
}

/** Pads cells so that columns align. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => (row[at] ?? '').length))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function amount(number: number, unit: string): string {
  return `${count(number)} ${unit}${number === 1 ? '' : 's'}`;
}

function count(number: number): string {
  return number.toLocaleString('en');
}

/** Formats a range with two significant digits. Values below a hundredth are not given exactly. */
function cores(low: number, high: number): string {
  const text = (number: number) => (number < 0.01 ? 'under 0.01' : rounded(number));
  return text(low) === text(high) ? `${text(high)} cores` : `${text(low)} to ${text(high)} cores`;
}

function rounded(number: number): string {
  return Number(number.toPrecision(2)).toLocaleString('en');
}

function bytes(number: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'];
  const power = Math.min(units.length - 1, number < 1 ? 0 : Math.floor(Math.log10(number) / 3));
  return `${rounded(number / 1_000 ** power)} ${units[power]}`;
}
