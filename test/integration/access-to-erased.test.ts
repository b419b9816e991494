import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import {
  countByType,
  everything,
  newAccessOrganisation,
  newPerson,
  suppressions,
  visit,
} from '../support/access-organisation.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { collectPart, endRewriting, sweepStep } from '../support/jobs.ts';
import { tablesWith } from '../support/tables-with.ts';
import { untilPasses } from '../support/until-passes.ts';

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

/** The step of an organisation's job of this kind. */
async function stepOf(organisationId: string, kind: string): Promise<string | undefined> {
  const text = 'select step from jobs where organisation_id = $1 and kind = $2';
  return (await test.pool.query<{ step: string }>(text, [organisationId, kind])).rows[0]?.step;
}

describe('when the person is erased', () => {
  it('collected records cannot be downloaded once it is answered, and are gone after the sweep', async () => {
    const acme = await newOrganisation();
    const [person, stranger] = [await newPerson(acme), await newPerson(acme)];
    const id = await acme.access({ customer_ids: [person.student_id, stranger.student_id] });
    await acme.collect();
    expect(await acme.download(id)).toHaveLength(28);
    await acme.erase(person);
    const hidden = await acme.download(id);
    for (const one of person.ids) expect(JSON.stringify(hidden).toLowerCase()).not.toContain(one);
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
      const person = await newPerson(acme);
      const { student_id, ids, mark } = person;
      const id = await acme.access({ customer_ids: [student_id] });
      for (let part = 0; part < parts; part++) await collectPart(serving, acme.organisationId, suppressions);
      isRunning = (await acme.get(id)).state !== 'done';
      await acme.erase(person);
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
    const person = await newPerson(acme);
    const { student_id } = person;
    const id = await acme.access({ customer_ids: [student_id] });
    const rows = async (query: string) => (await test.pool.query(query, [id])).rows;
    while ((await stepOf(acme.organisationId, 'access requests')) !== 'rejections')
      await collectPart(serving, acme.organisationId, suppressions);
    await acme.erase(person);
    await acme.collect();
    expect(
      await rows(
        `select distinct type from access_request_records where access_request_id = $1 and people ? '${student_id}' order by type`,
      ),
    ).toEqual(['customers', 'interactions', 'transactions', 'users-seen-together'].map((type) => ({ type })));
  });

  it('a part that has read something and stores it later is waited for', async () => {
    const acme = await newOrganisation();
    await endRewriting(test.pool, acme.organisationId);
    const person = await newPerson(acme);
    const { student_id, ids, mark } = person;
    await acme.access({ customer_ids: [student_id] });
    const blocking = new pg.Client({ connectionString: test.databaseUrl });
    await blocking.connect();
    let collecting: Promise<void> | undefined;
    try {
      await blocking.query('begin');
      // The part has read its records, and blocks before storing them.
      await blocking.query('lock table access_request_records in share mode');
      collecting = acme.collect();
      await untilPasses(async () => {
        const { rows } = await test.pool.query(
          `select from pg_locks where relation = 'access_request_records'::regclass and not granted`,
        );
        expect(rows).toHaveLength(1);
      });
      await acme.erase(person);
      while (await sweepStep(serving, acme.organisationId, suppressions));
      expect(await stepOf(acme.organisationId, 'erasures')).toBe('fence');
      await blocking.query('commit');
    } finally {
      await blocking.end();
      await collecting;
    }
    await acme.sweep();
    const { changes, ...others } = await tablesWith(test.pool, [...ids, mark]);
    expect(others).toEqual({ transactions: 1 });
  });

  it('another student’s collected interactions only lose the person’s user id, from the answer on', async () => {
    const acme = await newOrganisation();
    const [student, userId] = [randomUUID(), `library-pc ${randomUUID()}`];
    await acme.upload('customers', { customer_id: student, user_id: randomUUID(), region: 'GB' });
    const sent = { ...visit, student_id: student, user_id: userId, city: 'Leeds' };
    expect((await acme.send('POST', '/user-interactions', sent)).statusCode).toBe(201);
    const failed = { records: [{ ...sent, item_id: randomUUID() }] };
    await acme.send('POST', '/user-interactions/batch', failed);
    const before = await acme.access({ customer_ids: [student] });
    await acme.collect();
    const read = async (id: string) => {
      const found = await acme.download(id);
      expect(JSON.stringify(found)).not.toContain(userId);
      return found.flatMap(({ type, record }: { type: string; record: object }) =>
        type === 'interactions' ? record : [],
      );
    };
    const erased = await acme.send('POST', '/v1/erasures', { user_ids: [userId] });
    expect(erased.statusCode).toBe(202);
    const shown = [expect.objectContaining({ student_id: student, user_id: null, city: 'Leeds' })];
    expect(await read(before)).toEqual(shown);
    const second = await acme.access({ customer_ids: [student] });
    await acme.collect();
    expect(await read(second)).toEqual(shown);
    const rejections = (await acme.download(second)).filter(
      ({ type }: { type: string }) => type === 'rejections',
    );
    expect(rejections).toHaveLength(1);
    await acme.sweep();
    for (const id of [before, second]) {
      expect(await read(id)).toEqual(shown);
      expect(await acme.get(id)).toMatchObject({ records: { interactions: 1 } });
    }
    expect(await tablesWith(test.pool, [userId])).toEqual({});
  });

  it('copies of user ids that the release before collected in another spelling are gone after the sweep', async () => {
    const acme = await newOrganisation();
    const [student_id, user_id] = ['Ab3c2d1e', 'Ab3c2d1f'].map((start) => start + randomUUID().slice(8));
    await acme.upload('customers', { customer_id: student_id, user_id: randomUUID(), region: 'GB' });
    for (const of of [{ user_id }, { user_id, student_id }])
      expect((await acme.send('POST', '/user-interactions', { ...visit, ...of })).statusCode).toBe(201);
    const id = await acme.access({ customer_ids: [student_id], user_ids: [user_id] });
    await acme.collect();
    await test.pool.query(
      `update access_request_records
       set people = replace(people::text, lower($2), $2)::jsonb, record = replace(record, lower($2), $2)
       where access_request_id = $1`,
      [id, user_id],
    );
    const interactions = async () =>
      (await acme.download(id)).flatMap(({ type, record }: { type: string; record: object }) =>
        type === 'interactions' ? record : [],
      );
    expect(await interactions()).toMatchObject([{ user_id }, { user_id }]);
    expect((await acme.send('POST', '/v1/erasures', { user_ids: [user_id] })).statusCode).toBe(202);
    const left = [{ student_id: student_id?.toLowerCase(), user_id: null }];
    expect(await interactions()).toMatchObject(left);
    await acme.sweep();
    expect(await interactions()).toMatchObject(left);
    const { rows } = await test.pool.query(
      `select from access_request_records
       where access_request_id = $1 and type = 'interactions' and (people::text || record) ilike '%' || $2 || '%'`,
      [id, user_id],
    );
    expect(rows).toEqual([]);
  });

  it('a request gets the same answer as for somebody who never existed, and stores no id', async () => {
    const acme = await newOrganisation();
    const erased = await newPerson(acme);
    await acme.erase(erased);
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
    expect(await shown({ user_ids: [erased.user_id] })).toEqual(unknown);
  });
});
