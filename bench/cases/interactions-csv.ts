import { createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Bench, type Case, interleave, ratiosOf } from '../case.ts';
import { openSessions, secondsOf } from '../copy.ts';
import { uploadFile } from '../intake-command.ts';
import { createBareInteractions, expectStored } from '../interactions.ts';
import {
  copyColumns,
  copyLineOf,
  type PastInteraction,
  pastInteraction,
  pastItems,
} from '../past-interactions.ts';
import { storeReferences } from '../tables.ts';

const tables = ['bare.interactions', 'public.interactions'];

/** Uploads a realistic export of interactions with the command, compared with loading its valid rows with COPY. */
export const interactionsCsv: Case = {
  name: 'interactions-csv',
  what: 'interactions from a dirty CSV with the intake command compared with psql \\copy',
  async run(bench) {
    const { cluster, tenant, rows } = bench;
    for (const type of ['shops', 'customers'] as const)
      await storeReferences(cluster, [tenant.organisationId], type, pastItems);
    await createBareInteractions(bench);
    bench.progress('preparing files');
    const { csv, copy, good } = await writeFiles(bench);
    const sessions = await openSessions(bench, 1);
    let peakMegabytes = 0;
    const { psql: bare, command: intake } = await interleave(bench, {
      psql: async () => {
        await cluster.clean(...tables);
        const seconds = await secondsOf(sessions, [
          `\\copy bare.interactions (${copyColumns}) from '${copy}'`,
        ]);
        return good / seconds;
      },
      command: async () => {
        await cluster.clean(...tables);
        removeFailedFiles(csv);
        const { seconds, megabytes } = await uploadFile(bench, 1, csv, ...options, '--again');
        await expectStored(bench, good);
        peakMegabytes = Math.max(peakMegabytes, megabytes);
        return good / seconds;
      },
    });
    removeFailedFiles(csv);
    for (const file of [csv, copy]) rmSync(file, { force: true });
    const notes = [
      `${rows - good} of ${rows} rows are wrong; the command took ${Math.round(peakMegabytes)} MB at most`,
    ];
    const line = { name: 'interactions-csv', yardstick: 'psql \\copy, 1 connection', unit: 'rows/s' };
    return [{ ...line, bare, intake, ratios: ratiosOf(intake, bare), notes }];
  },
};

function removeFailedFiles(csv: string): void {
  for (const extension of ['csv', 'ndjson']) rmSync(`${csv}.failed.${extension}`, { force: true });
}

/** Two columns are named differently from their fields, and times are written in four ways. */
const options = [
  ...['--type', 'interactions', '--map', 'What=interaction_type', '--map', 'When=event_timestamp'],
  ...['--date-format', 'dd.MM.yyyy'],
];
const names = { interaction_type: 'What', event_timestamp: 'When' } as const;
const fields = Object.keys(pastInteraction(0)) as (keyof PastInteraction)[];

type Row = Record<keyof PastInteraction, string>;

/** Functions that introduce possible mistakes into a row. */
const dirt: readonly ((row: Row) => Row)[] = [
  (row) => ({ ...row, event_timestamp: 'yesterday' }),
  (row) => ({ ...row, interaction_type: 'LOOK' }),
  (row) => ({ ...row, item_id: '' }),
  (row) => ({ ...row, user_id: 'x'.repeat(300) }),
];

function timeOf(row: number, iso: string): string {
  const [year, month, day] = iso.slice(0, 10).split('-');
  const ms = Date.parse(iso);
  return (
    [iso, String(ms), String(ms / 1_000), `${day}.${month}.${year} ${iso.slice(11, 19)}`][row % 4] ?? iso
  );
}

function csvLineOf(row: number, interaction: PastInteraction): string {
  const read: Row = { ...interaction, event_timestamp: timeOf(row, interaction.event_timestamp) };
  const written = isDirty(row) ? (dirt[Math.floor(row / dirtyEvery) % dirt.length]?.(read) ?? read) : read;
  return `${fields.map((field) => (field === 'city' ? `"${written[field]}"` : written[field])).join(',')}\n`;
}

const dirtyEvery = 500;
const isDirty = (row: number) => row % dirtyEvery === 5;

/** Writes the CSV file, and a file for COPY that contains only the valid rows. */
async function writeFiles({ cluster, tenant, rows }: Bench) {
  const csv = join(cluster.folder, 'interactions.csv');
  const copy = join(cluster.folder, 'interactions.copy');
  const numbers = Array.from({ length: rows }, (_, row) => row);
  const good = numbers.filter((row) => !isDirty(row));
  await pipeline(
    function* () {
      yield `${fields.map((field) => names[field as keyof typeof names] ?? field).join(',')}\n`;
      for (const row of numbers) yield csvLineOf(row, pastInteraction(row));
    },
    createWriteStream(csv, { flush: true }),
  );
  await pipeline(
    function* () {
      for (const row of good) yield copyLineOf(tenant, pastInteraction(row));
    },
    createWriteStream(copy, { flush: true }),
  );
  return { csv, copy, good: good.length };
}
