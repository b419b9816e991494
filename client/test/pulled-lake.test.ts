// @module-tag full

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { needTool } from '../../scripts/tools.ts';
import { type Api, apiOf } from '../../test/support/api.ts';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { hasTool } from '../../test/support/has-tool.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { startLakeProcess, untilInLake } from '../../test/support/running-lake.ts';
import { startS3 } from '../../test/support/s3-server.ts';
import { Intake } from '../src/index.ts';

/** This file tests that deltalake, Polars and DuckDB read the same data from a pulled folder as the database contains. */

const run = promisify(execFile);
const shop = newShop();
const perUpload = 200;
const isPossible = [hasTool('moto'), hasTool('readers of the lake')].every(Boolean);

describe.skipIf(!isPossible)('a lake in S3', () => {
  const cwd = mkdtempSync(join(tmpdir(), 'intake-pulled-'));
  const folder = join(cwd, 'lake');
  let store: { url: string; remove(): unknown };
  let server: BuiltServer;
  let lake: Awaited<ReturnType<typeof startLakeProcess>>;
  let api: Api;
  let intake: Intake;

  beforeAll(async () => {
    const s3 = await startS3();
    store = { url: s3.lakeUrl, remove: () => s3.stop() };
    server = await startBuiltServer({ LAKE_URL: store.url });
    const key = await server.createKey('acme');
    api = apiOf(server.url, key);
    intake = new Intake({ url: server.url, key });
    await api.upload('shops', [shop]);
    await server.run('organisations', 'set-lake', 'acme', 'on');
    lake = await startLakeProcess(server.databaseUrl, store.url);
  });
  afterAll(async () => {
    await lake?.stop();
    await server?.stop();
    await store?.remove();
    rmSync(cwd, { recursive: true, force: true });
  });

  it('is read from a copy as from the database, when it is new and when it was brought up to date', async () => {
    let files = 0;
    for (let uploads = 1; uploads <= 2; uploads++) {
      const records = many(perUpload, newInteraction);
      expect((await api.post('/user-interactions/batch', { records })).status).toBe(200);
      await untilInLake(api, uploads * perUpload);
      const tables = await intake.lake.pull(folder);
      const table = tables.find((one) => one.table === 'interactions');
      expect(table).toMatchObject({
        rows: uploads * perUpload,
        filesDownloaded: (table?.files ?? 0) - files,
      });
      files = table?.files ?? 0;
    }
    const stored = await storedRows(api);
    expect(stored).toHaveLength(2 * perUpload);
    const { deltalake, polars } = await readInPython(join(folder, 'interactions'));
    expect(deltalake).toEqual(stored);
    expect(polars).toEqual(stored);
    expect(await readInDuckDb(join(folder, 'interactions'))).toEqual(stored);
  });
});

/** Creates an interaction that has either unusual values or no optional fields. */
function newInteraction(at: number): object {
  const odd = { user_id: `visitor "${at}"\\ \u{1f355}`, city: 'Málaga\n', country: 'ES', platform: 'WEB' };
  return {
    interaction_type: 'SHARE',
    item_type: 'SHOP',
    item_id: shop.shop_id,
    event_timestamp: at % 2 === 0 ? 1_700_000_000 + at : '2026-03-14T09:26:53.000007Z',
    ...(at % 3 === 0 && odd),
  };
}

/** Returns every interaction as a lake row, ordered by id. */
async function storedRows(api: Api): Promise<unknown[]> {
  const { body } = await api.get('/user-interactions', { accept: 'application/x-ndjson' });
  const found = (body as string)
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  return found
    .map(({ event_timestamp: _, event_time, created, ...rest }) => ({
      ...rest,
      event_time: inMicroseconds(event_time),
      created: inMicroseconds(created),
      received_on: created.slice(0, 10),
    }))
    .toSorted((one, other) => (one.interaction_id < other.interaction_id ? -1 : 1));
}

function inMicroseconds(time: string): string {
  const [, seconds = '', fraction = ''] = /^([^.Z]+)\.?(\d*)Z$/.exec(time) ?? [];
  return `${seconds}.${fraction.padEnd(6, '0')}Z`;
}

async function readInPython(folder: string): Promise<{ deltalake: unknown[]; polars: unknown[] }> {
  const program = fileURLToPath(new URL('../../test/support/read-lake.py', import.meta.url));
  const python = join(needTool('readers of the lake'), 'python');
  const { stdout } = await run(python, [program, folder, '0'], { maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout)[0];
}

async function readInDuckDb(folder: string): Promise<unknown[]> {
  const instance = await DuckDBInstance.create();
  const connection = await instance.connect();
  const instant = (name: string) =>
    `strftime(${name} at time zone 'UTC', '%Y-%m-%dT%H:%M:%S.%fZ') as ${name}`;
  const reader = await connection.runAndReadAll(
    `select * replace (${instant('event_time')}, ${instant('created')})
     from read_parquet('${folder}/*/*.parquet') order by interaction_id`,
  );
  const rows = reader.getRowObjectsJson();
  connection.closeSync();
  instance.closeSync();
  return rows;
}
