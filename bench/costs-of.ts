import { cpus } from 'node:os';
import type { Bench } from './case.ts';
import type { Cost, Costs } from './planning/costs.ts';
import { measuredCosts } from './planning/measured-costs.ts';
import type { Usage } from './usage.ts';

/** The two upload sizes from which the fixed cost of an upload is derived. */
export const smallUpload = 10;
export const wholeBatch = 1_000;

/** The measured usage, per record or interaction. */
export interface Measured {
  readonly small: Usage;
  readonly whole: Usage;
  readonly interactions: readonly { readonly perSecond: number; readonly one: Usage; readonly many: Usage }[];
  readonly indexing: { readonly postgres: number; readonly wal: number; readonly bytes: number };
}

/** Returns the costs for `planCapacity`. Costs that this run does not measure are taken from the source code. */
export function costsOf({ small, whole, interactions, indexing }: Measured, measuredOn: string): Costs {
  const upload = costBy(
    (part) => (costIn(small)[part] - costIn(whole)[part]) / (1 / smallUpload - 1 / wholeBatch),
  );
  const fastest = interactions.at(-1)?.one as Usage;
  return {
    measuredOn,
    upload,
    record: costBy((part) => costIn(whole)[part] - upload[part] / wholeBatch),
    interactions: interactions.map(({ perSecond, one, many }) => ({
      perSecond,
      one: costIn(one),
      many: costIn(many),
    })),
    indexing: { postgres: indexing.postgres * 1e6, wal: indexing.wal },
    stored: {
      record: { table: whole.records, key: whole.recordKeys },
      interaction: { written: fastest.interactions, indexes: indexing.bytes },
      receipt: small.receipts * smallUpload,
    },
    processBytes: measuredCosts.processBytes,
    throughPooler: measuredCosts.throughPooler,
    onCitus: measuredCosts.onCitus,
  };
}

function costIn({ service, postgres, wal, changes }: Usage): Cost {
  return { service: service * 1e6, postgres: postgres * 1e6, wal, changes };
}

function costBy(of: (part: keyof Cost) => number): Cost {
  return { service: of('service'), postgres: of('postgres'), wal: of('wal'), changes: of('changes') };
}

/** Describes the machine and the software versions. */
export async function machineOf({ cluster }: Bench): Promise<string> {
  const [row] = await cluster.query<{ server_version: string }>('show server_version');
  const postgres = row?.server_version.split(' ')[0];
  const day = new Date().toISOString().slice(0, 10);
  return `${cpus().length} cores of ${cpus()[0]?.model.trim()}, PostgreSQL ${postgres}, Node ${process.versions.node}, ${day}`;
}

/** Rounds numbers to three significant digits, because the rest is noise. */
export function rounded<T>(value: T): T {
  if (typeof value === 'number') return Number(value.toPrecision(3)) as T;
  if (Array.isArray(value)) return value.map(rounded) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, rounded(part)])) as T;
}

/** Returns the measured costs as source code for bench/planning/measured-costs.ts. */
export function sourceOf(costs: Costs): string {
  const { measuredOn, upload, record, interactions, indexing, stored } = costs;
  const rows = interactions.flatMap(({ perSecond, one, many }) => [
    '    {',
    `      perSecond: ${figure(perSecond)},`,
    `      one: ${line(one)},`,
    `      many: ${line(many)},`,
    '    },',
  ]);
  return [
    `  measuredOn: '${measuredOn}',`,
    `  upload: ${line(upload)},`,
    `  record: ${line(record)},`,
    '  interactions: [',
    ...rows,
    '  ],',
    `  indexing: ${line(indexing)},`,
    '  stored: {',
    `    record: ${line(stored.record)},`,
    `    interaction: ${line(stored.interaction)},`,
    `    receipt: ${figure(stored.receipt)},`,
    '  },',
  ].join('\n');
}

function line(figures: object): string {
  const parts = Object.entries(figures).map(([name, value]) => `${name}: ${figure(value as number)}`);
  return `{ ${parts.join(', ')} }`;
}

function figure(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 10 }).replaceAll(',', '_');
}
