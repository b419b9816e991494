// @module-tag full

import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { LakeWriter } from '../../src/lake/lake-writer.ts';
import { lakeLimits } from '../../src/lake/limits.ts';
import { type LakeStore, openStore } from '../../src/lake/store/lake-store.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { hasTool } from '../support/has-tool.ts';
import { listed, testWriter } from '../support/lake.ts';
import { newLakeOrganisation, tracesOf, writeAll } from '../support/lake-organisation.ts';
import { tracesInStore } from '../support/lake-traces.ts';
import { type S3Server, startS3 } from '../support/s3-server.ts';

/** Tests erasure from a lake in a bucket whose responses get lost. */

let test: TestApp;
let pool: OwnPool;
let server: S3Server;
let store: LakeStore;
const never = new AbortController().signal;

beforeAll(async () => {
  server = await startS3();
  store = openStore(server.lakeUrl);
  test = await createTestApp();
  pool = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await pool?.end();
  await test?.close();
  await server?.stop();
});

it.skipIf(!hasTool('moto'))(
  'erased people, and then all files, leave the bucket, whatever fails on the way',
  async () => {
    const { organisationId, send, newPerson, visit, erase } = await newLakeOrganisation(test);
    const other = await newLakeOrganisation(test);
    const person = await newPerson();
    const parquet = testWriter();
    const suppressions = new Suppressions([erasureKey]);
    const newWriter = () => new LakeWriter({ pool, store, parquet, suppressions, isHeld: () => true });
    await other.send(2);
    await writeAll(newWriter(), pool, other.organisationId);
    for (let round = 0; round < 9; round++) {
      await visit(person, 1);
      await send(2);
      await writeAll(newWriter(), pool, organisationId);
    }
    const traces = () => tracesInStore(store, organisationId, tracesOf(person));
    expect((await traces()).length).toBeGreaterThan(8);
    const erasureId = await erase('anonymise', person);
    let asked = 0;
    const faults = ['lost answer', 'server error', 'cut', 'server error'] as const;
    // The SDK tries four times, so occasionally all attempts fail.
    server.fail(() => {
      asked++;
      return asked % 5 === 0 || asked % 40 < 4 ? faults[asked % faults.length] : undefined;
    });
    const state = async () =>
      (await pool.query('select lake_state from erasures where erasure_id = $1', [erasureId])).rows[0]
        .lake_state;
    let failures = 0;
    for (let attempt = 0; (await state()) !== 'done'; attempt++) {
      await newWriter()
        .erase(organisationId, never)
        .catch(() => failures++);
      expect(attempt).toBeLessThan(100);
    }
    expect(failures).toBeGreaterThan(0);
    server.fail(() => undefined);
    expect(await traces()).toEqual([]);
    await writeAll(newWriter(), pool, organisationId);
    expect(await traces()).toEqual([]);
    await newWriter().remove(organisationId);
    await pool.query('update lake_progress set removing_since = $2 where organisation_id = $1', [
      organisationId,
      new Date(Date.now() - 2 * lakeLimits.removingMs),
    ]);
    await newWriter().remove(organisationId);
    expect(await listed(store, organisationId)).toEqual([]);
    expect((await listed(store, other.organisationId)).length).toBeGreaterThan(0);
    const { rows } = await pool.query('select organisation_id from lake_progress');
    expect(rows).toEqual([{ organisation_id: other.organisationId }]);
  },
);
