import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { collectPart } from '../../src/access/collect.ts';
import { readConfig } from '../../src/config.ts';
import { sweepStep } from '../../src/erasure/sweep/sweep.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import {
  countByType,
  everything,
  newAccessOrganisation,
  newPerson,
  suppressions,
} from '../support/access-organisation.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { tablesWith } from '../support/tables-with.ts';

let test: TestApp;
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

const newOrganisation = () => newAccessOrganisation(test, serving);

describe('when the person is erased', () => {
  it('collected records cannot be downloaded once it is answered, and are gone after the sweep', async () => {
    const acme = await newOrganisation();
    const [person, stranger] = [await newPerson(acme), await newPerson(acme)];
    const id = await acme.access({ customer_ids: [person.student_id, stranger.student_id] });
    await acme.collect();
    expect(await acme.download(id)).toHaveLength(28);
    await acme.erase(person.student_id);
    const hidden = await acme.download(id);
    // Check only the student's id, because the visitor's records are not recognised before the sweep.
    expect(JSON.stringify(hidden)).not.toContain(person.student_id);
    await acme.sweep();
    const { changes, ...others } = await tablesWith(test.pool, [...person.ids, person.mark]);
    // The remaining match is a discount name, which is not personal data.
    expect(others).toEqual({ transactions: 1 });
    expect(changes).toBe(1);
    expect(countByType(await acme.download(id))).toEqual(everything);
    expect(await acme.get(id)).toMatchObject({ records: everything });
  });

  it('during the collection, it stops, and nothing is left', async () => {
    const acme = await newOrganisation();
    // In each iteration, erase the person after more parts have been collected.
    for (let parts = 0, isRunning = true; isRunning; parts += 3) {
      const { student_id, ids, mark } = await newPerson(acme);
      const id = await acme.access({ customer_ids: [student_id] });
      for (let part = 0; part < parts; part++) await collectPart(serving, acme.organisationId, suppressions);
      isRunning = (await acme.get(id)).state !== 'done';
      await acme.erase(student_id);
      await collectPart(serving, acme.organisationId, suppressions);
      await acme.sweep();
      expect(await tablesWith(test.pool, ids)).toEqual({ changes: 1 });
      await acme.collect();
      const { changes, ...others } = await tablesWith(test.pool, [...ids, mark]);
      expect([parts, others]).toEqual([parts, { transactions: 1 }]);
      expect(await acme.download(id)).toEqual([]);
      expect(await acme.get(id)).toMatchObject({ state: 'done', records: {} });
    }
  });

  it('nothing with the person’s id is collected, before any sweep', async () => {
    const acme = await newOrganisation();
    const { student_id } = await newPerson(acme);
    const id = await acme.access({ customer_ids: [student_id] });
    const rows = async (query: string) => (await test.pool.query(query, [id])).rows;
    const step = async () => (await rows('select step from access_requests where access_request_id = $1'))[0];
    while ((await step()).step !== 'rejections')
      await collectPart(serving, acme.organisationId, suppressions);
    await acme.erase(student_id);
    await acme.collect();
    expect(
      await rows(
        `select distinct type from access_request_records where access_request_id = $1 and people ? '${student_id}' order by type`,
      ),
    ).toEqual([{ type: 'customers' }, { type: 'interactions' }, { type: 'transactions' }]);
  });

  it('a part that has read something and stores it later is waited for', async () => {
    const acme = await newOrganisation();
    const { student_id, ids, mark } = await newPerson(acme);
    await acme.access({ customer_ids: [student_id] });
    const blocking = new pg.Client({ connectionString: test.databaseUrl });
    await blocking.connect();
    await blocking.query('begin');
    // The part has read its records, and blocks before storing them.
    await blocking.query('lock table access_request_records in share mode');
    const collecting = acme.collect();
    await vi.waitFor(async () => {
      const { rows } = await test.pool.query(
        `select from pg_locks where relation = 'access_request_records'::regclass and not granted`,
      );
      expect(rows).toHaveLength(1);
    });
    await acme.erase(student_id);
    while (await sweepStep(serving, acme.organisationId, suppressions));
    const { rows } = await test.pool.query('select step from erasures where organisation_id = $1', [
      acme.organisationId,
    ]);
    expect(rows).toEqual([{ step: 'fence' }]);
    await blocking.query('commit');
    await blocking.end();
    await collecting;
    await acme.sweep();
    const { changes, ...others } = await tablesWith(test.pool, [...ids, mark]);
    expect(others).toEqual({ transactions: 1 });
  });

  it('a request gets the same answer as for somebody who never existed, and stores no id', async () => {
    const acme = await newOrganisation();
    const erased = await newPerson(acme);
    await acme.erase(erased.student_id);
    const shown = async (sent: object) => {
      const answer = await acme.send('POST', '/v1/access-requests', sent);
      const { access_request_id: id, requested, ...rest } = answer.json();
      const stored = (await tablesWith(test.pool, [erased.student_id])).access_request_ids;
      await acme.collect();
      const { access_request_id, requested: _, started, done, expires, ...after } = await acme.get(id);
      return { status: answer.statusCode, rest, stored, after, lines: await acme.download(id) };
    };
    const unknown = await shown({ customer_ids: [randomUUID()] });
    expect(unknown).toMatchObject({ status: 202, after: { state: 'done', records: {} }, lines: [] });
    expect(await shown({ customer_ids: [erased.student_id] })).toEqual(unknown);
    await acme.sweep();
    expect(await shown({ customer_ids: [erased.student_id] })).toEqual(unknown);
    expect(await shown({ user_ids: [erased.visitor] })).toEqual(unknown);
  });
});
