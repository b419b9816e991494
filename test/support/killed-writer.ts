import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { openStore } from '../../src/lake/store/lake-store.ts';
import { DeltaTable } from '../../src/lake/table/delta-table.ts';
import { lakeSchema } from '../../src/lake/table/lake-schema.ts';
import { ParquetWriter } from '../../src/lake/table/parquet-writer.ts';

/** A program that stores a data file, reports it, and is killed before it commits. */
const [root = '', folder = ''] = process.argv.slice(2);
const parquet = new ParquetWriter({ folder, memoryMb: 256, threads: 1 });
const schema = lakeSchema('interactions');
const table = await DeltaTable.open(
  openStore(pathToFileURL(root).href),
  'acme/interactions',
  schema,
  parquet,
);
const lines = parquet.newFile('ndjson');
const created = '2026-03-14T00:00:00.000Z';
writeFileSync(lines, `${JSON.stringify({ interaction_id: 'killed', event_time: created, created })}\n`);
const written = await parquet.write(lines, schema, { day: '2026-03-14' });
if (!written) throw new Error('nothing was written');
process.send?.(await table.put(written, '2026-03-14'));
setInterval(() => {}, 60_000);
