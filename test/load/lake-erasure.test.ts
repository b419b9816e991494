// @module-tag full

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { openStore } from '../../src/lake/store/lake-store.ts';
import { DeltaTable } from '../../src/lake/table/delta-table.ts';
import { lakeSchema } from '../../src/lake/table/lake-schema.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { newLakeOrganisation } from '../support/lake-organisation.ts';
import { WrittenLake } from '../support/written-lake.ts';

/**
 * Measures how long it takes to erase people from every file in a large lake. The lake has LAKE_ERASE_ROWS interactions
 * over 30 days (20 million in the measurement) and one person for every ten rows. A hundred of these people are erased.
 * The target is 15 minutes. The rows are written directly to files, because storing 20 million rows would dominate the
 * run time.
 */
const count = Number(process.env.LAKE_ERASE_ROWS ?? 0);
const days = 30;
const peopleErased = 100;

let test: TestApp;
let pool: OwnPool;
const lake = new WrittenLake();
const schema = lakeSchema('interactions');

beforeAll(async () => {
  test = await createTestApp();
  pool = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await pool.end();
  await test.close();
  await lake.close();
});

/** Returns a DuckDB expression that turns a number into a person's id. */
const personOf = (number: string) => `'00000000-0000-4000-8000-' || lpad(format('{:x}', ${number}), 12, '0')`;

/** Returns a DuckDB query that generates one day's rows. */
function rowsOfDay(startMs: number, rows: number, from: number): string {
  const ms = `(${startMs} + (i * 86399999) // ${rows})`;
  const value: Record<string, string> = {
    interaction_id: `substr(lpad(format('{:x}', ${ms}), 12, '0'), 1, 8) || '-' || substr(lpad(format('{:x}', ${ms}), 12, '0'), 9)
      || '-7' || substr(md5(i::varchar), 1, 3) || '-8' || substr(md5(i::varchar), 4, 3) || '-' || substr(md5(i::varchar), 7, 12)`,
    interaction_type: `['PAGE_VIEW', 'SHARE', 'FILTER_CLICK'][1 + i % 3]`,
    user_id: `case when i % 4 = 0 then ${personOf(`hash(i + ${from}) % ${Math.ceil(count / 10)} + 1000000000`)} end`,
    student_id: personOf(`hash(i + ${from}) % ${Math.ceil(count / 10)}`),
    item_type: `'SHOP'`,
    item_id: personOf('hash(i) % 5000'),
    city: `['Leeds', 'York', null][1 + i % 3]`,
    country: `'GB'`,
    platform: `'WEB'`,
    event_time: `to_timestamp(${ms} / 1000)`,
    created: `make_timestamptz((${ms} * 1000)::bigint)`,
  };
  const columns = schema.columns.map(({ name }) => `${value[name] ?? 'null::varchar'} as "${name}"`);
  return `select ${columns.join(', ')} from range(${rows}) as r(i)`;
}

it.skipIf(count === 0)(
  'people are in no file 15 minutes after they were swept from the database',
  {
    timeout: 7_200_000,
  },
  async () => {
    const { organisationId, request, erase } = await newLakeOrganisation(test);
    const never = new AbortController().signal;
    const writer = lake.writer(pool);
    await writer.step(organisationId, never);
    const table = await DeltaTable.open(
      openStore(lake.url),
      `${organisationId}/interactions`,
      schema,
      lake.parquet,
    );
    const perDay = Math.ceil(count / days);
    for (let day = 0; day < days; day++) {
      const startMs = Date.UTC(2026, 0, 1 + day);
      const of = new Date(startMs).toISOString().slice(0, 10);
      const written = await lake.parquet.copy(rowsOfDay(startMs, perDay, day * perDay), schema, of);
      await table.commit({ add: [await table.put(written!, of)] });
    }
    const bytes = table.files.reduce((sum, file) => sum + file.bytes, 0);
    const rows = table.files.reduce((sum, file) => sum + file.rows, 0);
    const people = Array.from({ length: peopleErased }, (_, at) => ({
      customer_id: `00000000-0000-4000-8000-${(at * 7).toString(16).padStart(12, '0')}`,
      user_id: randomUUID(),
    }));
    await request('POST', '/v1/data/customers', {
      records: people.map((person) => ({ ...person, region: 'GB' })),
    });
    const rowsOf = async () => {
      const ids = people.map(({ customer_id }) => `'${customer_id}'`).join(', ');
      let found = 0;
      await table.refresh();
      for (const file of table.files) {
        const [counted] = await lake.parquet.run([
          `select count(*)::varchar as rows from read_parquet('${await table.get(file)}') where student_id in (${ids}) or user_id in (${ids})`,
        ]);
        found += Number(counted?.rows);
      }
      return found;
    };
    const before = await rowsOf();
    expect(before).toBeGreaterThan(peopleErased / 2);
    /** Returns the CPU time of this process and its DuckDB child. */
    const cpuSeconds = () => {
      const { user, system } = process.cpuUsage();
      const asked = ['--no-headers', '-o', 'cputimes', '--ppid', String(process.pid)];
      const children = execFileSync('ps', asked, { encoding: 'utf8' }).trim().split('\n');
      return children.reduce((sum, seconds) => sum + Number(seconds), (user + system) / 1e6);
    };
    /** Returns how long it took to rewrite the files after the sweep. */
    const measure = async (...erased: typeof people) => {
      const erasureId = await erase('anonymise', ...erased);
      const [startedMs, startedCpu] = [performance.now(), cpuSeconds()];
      for (let state = ''; state !== 'done'; ) {
        await writer.erase(organisationId, never);
        state = (await request('GET', `/v1/erasures/${erasureId}`)).body.lake;
      }
      return { seconds: (performance.now() - startedMs) / 1_000, cpu: cpuSeconds() - startedCpu };
    };
    const stranger = { customer_id: randomUUID(), user_id: randomUUID() };
    const looking = await measure(stranger);
    const erasing = await measure(...people);
    const took = ({ seconds, cpu }: typeof looking) => `${seconds.toFixed(1)} s (${cpu.toFixed(1)} s of CPU)`;
    console.log(
      `${rows} rows in ${bytes} bytes and ${table.files.length} files: ${took(looking)} to look through, ` +
        `${took(erasing)} to erase ${before} rows`,
    );
    expect(await rowsOf()).toBe(0);
    expect(erasing.seconds).toBeLessThan(900);
    // The rows exist only in the files and not in the database, so the erasure keeps none of these people's rows.
    const left = table.files.reduce((sum, file) => sum + file.rows, 0);
    expect(left).toBe(rows - before);
  },
);
