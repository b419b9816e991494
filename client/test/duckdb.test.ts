// @module-tag full

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { needTool } from '../../scripts/tools.ts';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { hasTool } from '../../test/support/has-tool.ts';
import { newShop, newTransaction } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { startIntake } from './support/run-intake.ts';

/** This file tests that DuckDB recognises the types in an export, because exports are used for analysis. */

const run = promisify(execFile);
const it = test.skipIf(!hasTool('DuckDB for Python'));
let server: SharedServer;

beforeAll(async () => {
  server = await sharedServer();
});

/** Runs the queries in one DuckDB process and returns their rows, with all values as text. */
async function query(...queries: string[]): Promise<(string | null)[][][]> {
  const program = `import duckdb, json, sys
duckdb.sql("set timezone = 'UTC'")
text = lambda rows: [[None if v is None else str(v) for v in row] for row in rows]
print(json.dumps([text(duckdb.sql(query).fetchall()) for query in sys.argv[1:]]))`;
  const { stdout } = await run(join(needTool('DuckDB for Python'), 'python'), ['-c', program, ...queries]);
  return JSON.parse(stdout);
}

it('DuckDB finds timestamps, days and decimals in exports', async () => {
  const key = await server.createKey('duckdb');
  const intake = new Intake({ url: server.url, key });
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const created = '2026-03-14T09:26:53.589793Z';
  const sale = { ...newTransaction(shop.shop_id), amount: 22.49, savings: 0.1, created };
  await intake.upload('transactions', [sale, newTransaction(shop.shop_id)]).finish();
  const customer = {
    customer_id: shop.shop_id,
    user_id: shop.shop_id,
    region: 'GB',
    birthdate: '1999-02-28',
  };
  await intake.upload('customers', [customer]).finish();
  const item = { interaction_type: 'PAGE_VIEW', item_type: 'SHOP', item_id: shop.shop_id } as const;
  for (const event_timestamp of [981_173_106, '2001-02-03T05:05:06.000007+01:00'])
    await intake.record({ ...item, event_timestamp });

  const cwd = mkdtempSync(join(tmpdir(), 'intake-duckdb-'));
  const place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key } };
  const exported = async (type: string, format: string) => {
    const running = startIntake(place, 'export', type, '--format', format);
    const path = join(cwd, `${type}.${format}`);
    const file = createWriteStream(path);
    running.stdout?.pipe(file);
    await once(file, 'close');
    return path;
  };
  const [parquet, customers, interactions, lines, received] = await Promise.all([
    exported('transactions', 'parquet'),
    exported('customers', 'parquet'),
    exported('interactions', 'parquet'),
    exported('transactions', 'ndjson'),
    exported('interactions', 'ndjson'),
  ]);
  const results = await query(
    `select typeof(amount), amount::text, typeof(created), (created at time zone 'utc')::text
     from '${parquet}' where created is not null`,
    `select sum(savings + amount)::text from '${parquet}' where created is not null`,
    `select typeof(birthdate), birthdate::text from '${customers}'`,
    `select typeof(event_timestamp), (event_timestamp at time zone 'utc')::text, typeof(created)
     from '${interactions}' order by 2`,
    `select typeof(created), created::text from read_json('${lines}') where created is not null`,
    `select distinct typeof(created) from read_json('${received}')`,
  );
  expect(results).toEqual([
    [['DECIMAL(38,9)', '22.490000000', 'TIMESTAMP WITH TIME ZONE', '2026-03-14 09:26:53.589793']],
    [['22.590000000']],
    [['DATE', '1999-02-28']],
    [
      ['TIMESTAMP WITH TIME ZONE', '2001-02-03 04:05:06', 'TIMESTAMP WITH TIME ZONE'],
      ['TIMESTAMP WITH TIME ZONE', '2001-02-03 04:05:06.000007', 'TIMESTAMP WITH TIME ZONE'],
    ],
    [['TIMESTAMP WITH TIME ZONE', '2026-03-14 09:26:53.589793+00']],
    [['TIMESTAMP WITH TIME ZONE']],
  ]);
  rmSync(cwd, { recursive: true });
});
