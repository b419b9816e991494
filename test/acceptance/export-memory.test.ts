// @module-tag full

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectInTime } from '../support/in-time.ts';
import { readLines } from '../support/read-lines.ts';

/** Measures the server's memory while a slow client reads a quarter of a million records (300 MB). */

const total = 250_000;
/** This length makes each record larger than 1 kB, so that the total exceeds the limit without a million rows. */
const sourceLength = 900;
/** The memory may grow by two thirds of the JSON's size. */
const growthMaxMb = 200;

let server: BuiltServer;
let key: string;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer();
  key = await server.createKey('acme');
  api = apiOf(server.url, key);
  const database = new pg.Client({ connectionString: server.databaseUrl });
  await database.connect();
  await database.query(
    `insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, source, created, is_deleted)
     select organisation_id, md5('transaction ' || n)::uuid, md5('shop ' || n % 1000)::uuid, 'GB', n % 100 / 10.0, n / 100.0,
       md5('student ' || n)::uuid, repeat('x', $2), timestamptz '2026-03-14T09:26:53.589793Z' + n * interval '1 second', false
     from organisations cross join generate_series(1, $1::integer) n`,
    [total, sourceLength],
  );
  await database.query('vacuum analyze transactions');
  await database.end();
});
afterAll(() => server.stop());

function megabytesOf(name: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
}

it('4c: 250,000 records are exported, each once, in no more memory than a few of them take', async () => {
  await api.get('/v1/data/transactions?limit=1000');
  const before = megabytesOf('VmRSS');
  let read = 0;
  let last = '';
  let outOfOrder = 0;
  let bytes = 0;
  let pieces = 0;
  const started = performance.now();
  const response = await readLines(`${server.url}/v1/data/transactions`, key, {
    headers: { 'accept-encoding': 'identity' },
    onLine(line) {
      bytes += line.length;
      // If the ids ascend, they are also distinct.
      const { transaction_id } = JSON.parse(line);
      if (transaction_id <= last) outOfOrder++;
      last = transaction_id;
      read++;
    },
    async onPiece() {
      pieces++;
      if (pieces === 10)
        await sleep(3_000); // A server without back-pressure would now buffer everything.
      else if (pieces % 20 === 0) await sleep(2);
    },
  });
  const seconds = (performance.now() - started) / 1_000;
  const growth = megabytesOf('VmHWM') - before;
  console.log(
    `${read} records in ${seconds.toFixed(1)} s; resident memory ${before.toFixed(0)} MB before, ${growth.toFixed(0)} MB more at most`,
  );
  expect(response.headers.get('content-type')).toBe('application/x-ndjson');
  expect({ read, outOfOrder }).toEqual({ read: total, outOfOrder: 0 });
  // With less data, the whole export would fit into the allowed memory.
  expect(bytes / 1_000_000).toBeGreaterThan(growthMaxMb * 1.4);
  expect(growth).toBeLessThan(growthMaxMb);
});

it('4b: a search among 250,000 that finds nothing is answered in time, page after page', async () => {
  let cursor: string | null = '';
  let pages = 0;
  while (cursor !== null) {
    const query = new URLSearchParams({ stored_since: '2100-01-01T00:00:00Z', ...(cursor && { cursor }) });
    const ask = async () => {
      const started = performance.now();
      const { status, body } = await api.get(`/v1/data/transactions?${query}`);
      expect({ status, records: body.records }).toEqual({ status: 200, records: [] });
      return { ms: performance.now() - started, next: body.next_cursor };
    };
    await expectInTime(async () => {
      const { ms, next } = await ask();
      cursor = next;
      return [{ what: 'a page', ms, promisedMs: 5_000 }];
    });
    pages++;
  }
  console.log(`a search in vain took ${pages} pages`);
});

it('4b: a thousandth of 250,000 is found completely', async () => {
  const { body } = await api.get('/v1/data/transactions?limit=1');
  const { shop_id } = body.records[0];
  const found = new Set<string>();
  await readLines(`${server.url}/v1/data/transactions?shop_id=${shop_id}`, key, {
    onLine: (line) => {
      const record = JSON.parse(line);
      expect(record.shop_id).toBe(shop_id);
      found.add(record.transaction_id);
    },
  });
  expect(found.size).toBe(total / 1_000);
});
