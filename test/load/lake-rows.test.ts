// @module-tag full

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { needTool } from '../../scripts/tools.ts';
import { type LakeStore, openStore } from '../../src/lake/store/lake-store.ts';
import { lakeSchema } from '../../src/lake/table/lake-schema.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { disposable } from '../support/disposable.ts';
import { exchange } from '../support/exchange.ts';
import { freePort } from '../support/free-port.ts';
import { type OwnPostgres, startLakeProcess, startOwnPostgres } from '../support/lake-process.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { type Fault, type S3Server, startS3 } from '../support/s3-server.ts';
import { newInteractions } from '../support/written-lake.ts';

/**
 * Writes LAKE_ROWS interactions and a tenth as many transactions, some of which are updates, to a lake in S3. In the
 * meantime, the lake process is killed LAKE_KILLS times, PostgreSQL is killed a fifth as often, and some requests to S3
 * fail. At ten versions, spread over the run, DuckDB, deltalake and Polars must read exactly the rows in the
 * database, without losses or duplicates.
 *
 * This test is not part of the checks. With LAKE_ROWS=20000 LAKE_KILLS=5, it takes a minute. The full run is:
 * LAKE_ROWS=20000000 LAKE_KILLS=50 npx vitest run test/load/lake-rows.test.ts
 */
const total = Number(process.env.LAKE_ROWS ?? 0);
const kills = Number(process.env.LAKE_KILLS ?? 5);
const versionsRead = 10;
/** The number of rows stored before the lake is switched on. */
const stored = Math.floor(total / 2);
const perUpload = Math.min(1_000, Math.ceil(total / 100));

const run = promisify(execFile);
const shop = newShop();
const agent = new Agent({ keepAlive: true });
const folder = mkdtempSync(join(tmpdir(), 'intake-lake-rows-'));
let postgres: OwnPostgres;
let server: BuiltServer;
let s3: S3Server;
let store: LakeStore;
let key: string;
let organisationId: string;
let isOver = false;
const allSent = Promise.withResolvers<void>();
const failures: unknown[] = [];

const ask = <Row extends object>(text: string, values: readonly unknown[] = []) =>
  queryDatabase<Row & Record<string, unknown>>(postgres.url, text, values);

beforeAll(async () => {
  if (total === 0) return;
  s3 = await startS3();
  store = openStore(s3.lakeUrl);
  postgres = await startOwnPostgres({ ...disposable, max_wal_size: '4GB' });
  server = await startBuiltServer({ DATABASE_URL: postgres.url, PORT: String(await freePort()) });
  key = await server.createKey('acme');
  await upload('/v1/data/shops', [shop]);
  const [found] = await ask<{ id: string }>(`select organisation_id as id from organisations`);
  organisationId = found?.id ?? '';
  await fill();
  await server.run('organisations', 'set-lake', 'acme', 'on');
}, 7_200_000);
afterAll(async () => {
  agent.destroy();
  await server?.stop();
  await s3?.stop();
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Uploads records and returns whether they were stored. Uploads fail while PostgreSQL is down. */
async function upload(path: string, records: object[]): Promise<boolean> {
  const { status } = await exchange(`${server.url}${path}`, { agent, key, body: { records } }).catch(() => ({
    status: 0,
  }));
  return status === 200;
}

/** Stores half of the interactions as if they had been received today, including their entries in the change log. */
async function fill(): Promise<void> {
  const perStatement = 100_000;
  for (let left = stored; left > 0; left -= perStatement)
    await ask(
      `with ids as materialized (
         select overlay(uuid_floor(now() - random() * least(interval '6 hours', now() - date_trunc('day', now(), 'UTC')))::text
           placing '7' || substr(gen_random_uuid()::text, 16) from 15)::uuid as id
         from generate_series(1, $2::integer)
       ), stored as (
         insert into interactions (organisation_id, interaction_id, interaction_type, user_id, item_type, item_id, city, country,
           platform, event_timestamp, event_time)
         select $1, id, (array['PAGE_VIEW', 'SHARE', 'DISCOUNT_CODE'])[1 + ascii(right(id::text, 1)) % 3],
           'visitor ' || left(md5(id::text), 6), 'SHOP', $3, 'Leeds', 'GB', 'WEB', '1767225600',
           to_timestamp(1767225600 + ascii(right(id::text, 1)))
         from ids
       )
       insert into changes (organisation_id, change_id, type, size, ids)
       select $1, overlay(uuid_floor(now())::text placing '7' || substr(gen_random_uuid()::text, 16) from 15)::uuid,
         'interactions', count(*), array_agg(id) from ids`,
      [organisationId, Math.min(left, perStatement), shop.shop_id],
    );
  await ask('vacuum analyze interactions');
}

/** Sends the other half while the lake is being written, and then a few more, so that each restart has something to do. */
async function sendInteractions(): Promise<void> {
  for (let left = total - stored; !isOver; ) {
    const records = newInteractions(left > 0 ? perUpload : 10, shop.shop_id);
    if (await upload('/user-interactions/batch', records)) left -= records.length;
    else await sleep(200);
    if (left > 0) continue;
    allSent.resolve();
    await sleep(100);
  }
}

/** Sends transactions. A quarter of the records are new versions of transactions that were sent before. */
async function sendTransactions(): Promise<void> {
  const sent: { transaction_id: string }[] = [];
  for (let left = total / 10; left > 0; ) {
    const old = many(Math.min(sent.length, perUpload / 4), (at) => ({
      ...newTransaction(shop.shop_id, { amount: 1 + Math.floor(Math.random() * 1_000) }),
      transaction_id: sent[(at * 7_919) % sent.length]?.transaction_id,
    }));
    const added = many(perUpload - old.length, () => newTransaction(shop.shop_id));
    if (!(await upload('/v1/data/transactions', [...added, ...old]))) {
      await sleep(200);
      continue;
    }
    left -= perUpload;
    if (sent.length < 100_000) sent.push(...added);
  }
}

/** Returns a fault for about one request in thirty. 30 s timeouts are rare. */
function randomFault(): Fault {
  const chance = Math.random();
  if (chance < 0.0005) return 'timeout';
  if (chance < 0.01) return 'server error';
  if (chance < 0.02) return 'cut';
  return chance < 0.035 ? 'lost answer' : undefined;
}

async function killOften(): Promise<void> {
  for (let killed = 1; killed <= kills; killed++) {
    const running = await startLakeProcess(postgres, s3.lakeUrl, { LAKE_DELAY_SECONDS: '1' });
    // Spread the kills over the run, which takes longer with more rows.
    await sleep(1_000 + Math.random() * (8_000 + total / 700));
    if (killed % 5 === 0 && postgres.postmaster) {
      await postgres.postmaster.kill();
      await sleep(Math.random() * 2_000);
      await postgres.postmaster.start();
      await sleep(Math.random() * 3_000);
    }
    const ended = once(running, 'exit');
    running.kill('SIGKILL');
    await ended;
  }
}

/** Runs the lake until it has caught up with the database, which no longer changes. */
async function catchUp(): Promise<void> {
  const running = await startLakeProcess(postgres, s3.lakeUrl, { LAKE_DELAY_SECONDS: '1' });
  const waiting = () =>
    ask(
      `select from lake_progress p join change_counters c using (organisation_id)
       where p.organisation_id = $1 and p.copied_after is null and p.number >= c.last_number
         and not exists (select from changes u where u.organisation_id = $1 and u.number is null)`,
      [organisationId],
    ).then((rows) => rows.length);
  await expect.poll(waiting, { timeout: 7_200_000, interval: 1_000 }).toBe(1);
  const ended = once(running, 'exit');
  running.kill('SIGTERM');
  await ended;
}

/** Copies the lake to a local folder for programs without an S3 client. */
async function download(): Promise<void> {
  for await (const { path } of store.list(organisationId)) {
    const local = join(folder, 'lake', path);
    mkdirSync(dirname(local), { recursive: true });
    await store.getFile(path, local);
  }
}

interface Version {
  readonly files: readonly string[];
  /** The number of the last committed change. */
  readonly position: number;
}

function versionOf(table: string, version: number): Version {
  const base = join(folder, 'lake', organisationId, table);
  const log = readdirSync(join(base, '_delta_log')).filter((name) => name.endsWith('.json'));
  const files = new Set<string>();
  let position = 0;
  for (const name of log.sort().filter((one) => Number(one.slice(0, 20)) <= version))
    for (const line of readFileSync(join(base, '_delta_log', name), 'utf8')
      .trim()
      .split('\n')) {
      const { add, remove, txn } = JSON.parse(line);
      if (remove) files.delete(remove.path);
      if (add) files.add(add.path);
      if (txn) position = Math.max(position, txn.version);
    }
  return { files: [...files].map((path) => join(base, decodeURIComponent(path))), position };
}

const times = ['event_time', 'created'];
const texts = lakeSchema('interactions')
  .columns.map(({ name }) => name)
  .filter((name) => !times.includes(name));
/** Rows are compared by their id and a hash of all their values, because twenty million whole rows would take hours. */
const rowsOf = (source: string, time: (name: string) => string) =>
  `select interaction_id::uuid as interaction_id,
     hash(${[...texts.map((name) => `${name}::varchar`), ...times.map(time)].join(', ')}) as row_hash from ${source}`;
const rowsIn = (parquet: string) =>
  rowsOf(`read_parquet(${parquet}, union_by_name = true)`, (name) => `epoch_us(${name})`);

/**
 * Exports the database to files that DuckDB can read. Interactions never change, so one export is enough for every version.
 */
async function exportDatabase(duckDb: DuckDBConnection): Promise<void> {
  chmodSync(folder, 0o777);
  const received = `('x' || replace(left(interaction_id::text, 13), '-', ''))::bit(48)::bigint * 1000`;
  await ask(
    `copy (select ${texts.map((name) => `${name}::text`).join(', ')},
       (extract(epoch from event_time) * 1000000)::bigint as event_time, ${received} as created
     from interactions where organisation_id = '${organisationId}') to '${folder}/stored.csv' (format csv, header, force_quote *)`,
  );
  await ask(
    `copy (select number, type, unnest(ids)::text as id from changes where organisation_id = '${organisationId}')
     to '${folder}/changes.csv' (format csv, header)`,
  );
  const types = [
    ...texts.map((name) => `'${name}': 'varchar'`),
    ...times.map((name) => `'${name}': 'bigint'`),
  ];
  const csv = `read_csv('${folder}/stored.csv', header = true, quote = '"', escape = '"', allow_quoted_nulls = false,
    columns = {${types.join(', ')}})`;
  await duckDb.run(`create table stored as ${rowsOf(csv, (name) => name)}`);
  await duckDb.run(`create table changes as select * from read_csv('${folder}/changes.csv', header = true,
      columns = {'number': 'bigint', 'type': 'varchar', 'id': 'uuid'})`);
}

async function numberOf(duckDb: DuckDBConnection, query: string): Promise<number> {
  const [[found] = []] = (await duckDb.runAndReadAll(query)).getRowsJson();
  return Number(found);
}

it.runIf(total > 0)(
  'the lake has every row once, at every version that anybody may read',
  { timeout: 86_400_000 },
  async () => {
    s3.fail(randomFault);
    const sending = Promise.all([sendInteractions(), sendTransactions()]).catch((error) =>
      failures.push(error),
    );
    await killOften();
    await Promise.race([allSent.promise, sending]);
    isOver = true;
    await sending;
    expect(failures).toEqual([]);
    await catchUp();
    s3.fail(() => undefined);
    await download();
    const instance = await DuckDBInstance.create(join(folder, 'compare.duckdb'), { memory_limit: '4GB' });
    const duckDb = await instance.connect();
    await exportDatabase(duckDb);
    const rows = await numberOf(duckDb, 'select count(*) from stored');
    expect(rows).toBeGreaterThanOrEqual(total);
    const python = join(needTool('readers of the lake'), 'python');
    const program = fileURLToPath(new URL('../support/save-lake.py', import.meta.url));
    const table = join(folder, 'lake', organisationId, 'interactions');
    const last = readdirSync(join(table, '_delta_log')).filter((name) => name.endsWith('.json')).length - 1;
    const { position: copiedFrom } = versionOf('interactions', 1);
    // Files never change, so each version still is what readers saw during the run. The first version has no files.
    for (const version of new Set(
      Array.from({ length: versionsRead }, (_, at) => Math.ceil(((at + 1) * last) / versionsRead)),
    )) {
      const { files, position } = versionOf('interactions', version);
      // Until the stored rows are copied, the position stays the same.
      const isCopied = position > copiedFrom;
      const list = files.map((file) => `'${file}'`).join(', ');
      await duckDb.run(`create or replace table lake as ${rowsIn(`[${list}]`)}`);
      const twice = await numberOf(duckDb, 'select count(*) - count(distinct interaction_id) from lake');
      const wrong = await numberOf(
        duckDb,
        'select count(*) from (select * from lake except select * from stored)',
      );
      const lost = await numberOf(
        duckDb,
        `select count(*) from changes c anti join lake l on l.interaction_id = c.id
         where c.type = 'interactions' and c.number <= ${isCopied ? position : 0}`,
      );
      const found = await numberOf(duckDb, 'select count(*) from lake');
      console.log(
        `version ${version}, change ${position}: ${found} of ${rows} interactions in ${files.length} files`,
      );
      expect({ version, twice, wrong, lost }).toEqual({ version, twice: 0, wrong: 0, lost: 0 });
      await run(python, [program, table, String(version), folder]);
      for (const reader of ['deltalake', 'polars']) {
        const read = `(${rowsIn(`'${folder}/${reader}.parquet'`)})`;
        const differing = await numberOf(
          duckDb,
          `select (select count(*) from (from lake except all from ${read})) + (select count(*) from (from ${read} except all from lake))`,
        );
        expect({ version, reader, differing }).toEqual({ version, reader, differing: 0 });
      }
    }
    // The last version contains every stored row.
    expect(await numberOf(duckDb, 'select count(*) from (from stored except all from lake)')).toBe(0);
    await compareTransactions(duckDb);
    duckDb.closeSync();
    instance.closeSync();
  },
);

/** Checks that the newest version of each transaction matches the database. Skipped if lakes have no transactions table. */
async function compareTransactions(duckDb: DuckDBConnection): Promise<void> {
  const base = join(folder, 'lake', organisationId);
  if (!readdirSync(base).includes('transactions'))
    return console.log('the lake has no table of transactions');
  const list = versionOf('transactions', Number.POSITIVE_INFINITY).files.map((file) => `'${file}'`);
  await duckDb.run(
    `create view newest as select transaction_id, shop_id, amount::varchar::double as amount, savings::varchar::double as savings
     from read_parquet([${list.join(', ')}], union_by_name = true)
     qualify row_number() over (partition by transaction_id order by _change desc) = 1 and not _deleted`,
  );
  await ask(
    `copy (select transaction_id, shop_id, amount, savings from transactions where organisation_id = '${organisationId}')
     to '${folder}/transactions.csv' (format csv, header)`,
  );
  await duckDb.run(`create table transactions as select * from read_csv('${folder}/transactions.csv', header = true,
    columns = {'transaction_id': 'varchar', 'shop_id': 'varchar', 'amount': 'double', 'savings': 'double'})`);
  const differing = await numberOf(
    duckDb,
    `select (select count(*) from (from newest except all from transactions))
       + (select count(*) from (from transactions except all from newest))`,
  );
  console.log(`${await numberOf(duckDb, 'select count(*) from newest')} transactions`);
  expect(differing).toBe(0);
}
