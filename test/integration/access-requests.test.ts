import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { expireCollected } from '../../src/access/expire-collected.ts';
import { accessLimits } from '../../src/access/limits.ts';
import { readConfig } from '../../src/config.ts';
import { indexPartitions } from '../../src/interactions/interaction-partitions.ts';
import { jobLimits } from '../../src/jobs/limits.ts';
import { runJobs } from '../../src/jobs/run-jobs.ts';
import { limits } from '../../src/limits.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { UsageKeeper } from '../../src/quotas/measure-usage.ts';
import {
  copyToPast,
  countByType,
  everything,
  newAccessOrganisation,
  newCustomer,
  newPerson,
  shop,
  suppressions,
  visit,
} from '../support/access-organisation.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { collectForAll, collectPart } from '../support/jobs.ts';
import { many } from '../support/new-records.ts';
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

describe('an access request', () => {
  it('counts against the quota, and waits while the quota is used up', async () => {
    const acme = await newOrganisation();
    const { student_id } = await newPerson(acme);
    const { organisationId } = acme;
    const measured = async () => {
      await new UsageKeeper(serving).run();
      const { rows } = await test.pool.query<{ records: number; bytes: number }>(
        'select records::float8 as records, bytes::float8 as bytes from quota_usage where organisation_id = $1',
        [organisationId],
      );
      return rows[0] as { records: number; bytes: number };
    };
    const allow = (records: number) =>
      test.pool.query(
        'update organisations set records_stored_max = $2, bytes_stored_max = 1e9 where organisation_id = $1',
        [organisationId, records],
      );
    await allow(1_000_000);
    const before = await measured();
    const lines = await acme.accessed({ customer_ids: [student_id] });
    const after = await measured();
    expect(after.records).toBe(before.records + lines.length);
    expect(after.bytes).toBeGreaterThan(
      before.bytes + JSON.stringify(lines.map(({ record }) => record)).length,
    );

    const waiting = await acme.access({ customer_ids: [student_id] });
    await allow(after.records);
    for (let step = 0; step < 3; step++) await collectPart(serving, organisationId, suppressions);
    expect(await acme.get(waiting)).toMatchObject({ state: 'pending', records: {} });
    const refused = await acme.send('POST', '/v1/access-requests', { customer_ids: [student_id] });
    expect([refused.statusCode, refused.json().code]).toEqual([403, 'quota_exceeded']);
    await allow(after.records + 1);
    await acme.collect();
    expect(await acme.get(waiting)).toMatchObject({ state: 'done' });
  });

  it('has everything about the person, and nothing about anybody else', async () => {
    const acme = await newOrganisation();
    const [person, stranger] = [await newPerson(acme), await newPerson(acme)];
    for (const isIndexed of [false, true]) {
      if (isIndexed) await indexPartitions(test.pool);
      for (const sent of [
        { customer_ids: [person.student_id] },
        { user_ids: [person.user_id] },
        { customer_ids: [person.student_id.toUpperCase()], user_ids: [person.user_id.toUpperCase()] },
      ]) {
        const id = await acme.access(sent);
        await acme.collect();
        const lines = await acme.download(id);
        expect([sent, countByType(lines)]).toEqual([sent, everything]);
        expect(await acme.get(id)).toMatchObject({ state: 'done', records: everything });
        const text = JSON.stringify(lines);
        for (const one of [...stranger.ids, stranger.visitor, stranger.mark]) expect(text).not.toContain(one);
      }
    }
  });

  it('has each record as it is read back', async () => {
    const acme = await newOrganisation();
    const { student_id, mark } = await newPerson(acme);
    const lines = await acme.accessed({ customer_ids: [student_id] });
    const of = (type: string) => lines.filter((line) => line.type === type);
    const read = async (url: string) => (await acme.send('GET', url)).json();
    for (const { type, id, record } of [...of('customers'), ...of('transactions')])
      expect(record).toEqual(await read(`/v1/data/${type}/${id}`));
    for (const { id, record } of of('interactions'))
      expect(record).toEqual(await read(`/user-interactions/${id}`));
    const { rejections } = await read('/v1/rejections');
    expect(of('rejections').map(({ record }) => record)).toEqual(rejections);
    expect(of('receipts')[0]?.record.errors).toMatchObject([{ id: student_id, field: 'region' }]);
    expect(of('idempotency-keys').map(({ record }) => record.idempotency_key)).toEqual([
      `interaction ${student_id}`,
      `upload ${student_id}`,
    ]);
    expect(JSON.stringify(of('customers'))).toContain(mark);
  });

  it('of a user has interactions without a customer, and with the customer also those of both', async () => {
    const acme = await newOrganisation();
    const { visitor, student_id } = await newPerson(acme);
    const lines = await acme.accessed({ user_ids: [visitor] });
    expect(countByType(lines)).toEqual({ interactions: 1 });
    expect(JSON.stringify(lines)).not.toContain(student_id);
    const { 'users-seen-together': seen, ...others } = everything;
    expect(countByType(await acme.accessed({ customer_ids: [student_id], user_ids: [visitor] }))).toEqual({
      ...others,
      interactions: others.interactions + 1,
    });
  });

  it('lists users seen together with the person, but nothing that others did on the same device', async () => {
    const acme = await newOrganisation();
    const user_id = randomUUID();
    const [one, again, other] = [newCustomer(user_id), newCustomer(user_id), newCustomer()];
    await acme.upload('customers', one, again, other);
    const device = `device ${randomUUID()}`;
    for (const student_id of [one.customer_id, again.customer_id, other.customer_id, undefined]) {
      const sent = { ...visit, user_id: device, ...(student_id && { student_id }) };
      await acme.send('POST', '/user-interactions', sent);
      await acme.send('POST', '/user-interactions/batch', { records: [{ ...sent, platform: 'TV' }] });
      if (student_id) await copyToPast(test, student_id, 2);
    }
    await indexPartitions(test.pool);
    const lines = await acme.accessed({ customer_ids: [one.customer_id] });
    const counts = { customers: 2, interactions: 4, rejections: 2, 'users-seen-together': 1 };
    expect(countByType(lines)).toEqual(counts);
    expect(JSON.stringify(lines)).not.toContain(other.customer_id);
    const seen = lines.filter(({ type }) => type === 'users-seen-together');
    expect(seen).toMatchObject([{ id: device, record: { user_id: device, other_students: 1 } }]);
  });

  it('has nothing of another organisation, whatever ids it sends', async () => {
    const [acme, globex] = [await newOrganisation(), await newOrganisation()];
    const { student_id, user_id, visitor } = await newPerson(acme);
    const sent = { customer_ids: [student_id], user_ids: [user_id, visitor] };
    expect(await globex.accessed(sent)).toEqual([]);
    const id = await acme.access(sent);
    await acme.collect();
    for (const url of [`/v1/access-requests/${id}`, `/v1/access-requests/${id}/records`])
      expect((await globex.send('GET', url)).json().code).toBe('access_request_not_found');
  });

  it('with more than fits into a part is whole, also with several at once', async () => {
    const acme = await newOrganisation();
    const customers = many(3, () => newCustomer());
    await acme.upload('customers', ...customers);
    const count = limits.erasureRowsPerStep + 700;
    for (const { customer_id } of customers)
      await test.pool.query(
        `with t as (
           insert into transactions (organisation_id, transaction_id, shop_id, region, savings, amount, student_id, is_deleted)
           select $1, gen_random_uuid(), $2, 'GB', 1, 1, $3, false from generate_series(1, $4))
         insert into interactions (organisation_id, interaction_id, interaction_type, student_id, item_type, item_id,
           event_timestamp, event_time)
         select $1, uuid_floor(now() - (n % 2) * interval '2 days' + n * interval '1 ms'), 'SHARE', $3, 'SHOP', $2, '1', now()
         from generate_series(1, $4) n on conflict do nothing`,
        [acme.organisationId, shop.shop_id, customer_id, count],
      );
    await indexPartitions(test.pool);
    const { rows } = await test.pool.query<{ id: string; count: number }>(
      `select student_id as id, count(*)::integer as count from interactions
       where organisation_id = $1 group by student_id`,
      [acme.organisationId],
    );
    const requests: string[] = [];
    for (const { customer_id } of customers)
      requests.push(await acme.access({ customer_ids: [customer_id] }));
    const together = await acme.access({ customer_ids: customers.map(({ customer_id }) => customer_id) });
    // Several processes collect at the same time.
    await Promise.all(many(3, () => acme.collect()));
    const sum = rows.reduce((all, one) => all + one.count, 0);
    expect(countByType(await acme.download(together))).toEqual({
      customers: 3,
      transactions: 3 * count,
      interactions: sum,
    });
    for (const [at, { customer_id }] of customers.entries()) {
      const interactions = rows.find(({ id }) => id === customer_id)?.count;
      const lines = await acme.download(requests[at] as string);
      expect(countByType(lines)).toEqual({ customers: 1, transactions: count, interactions });
      expect(new Set(lines.map(({ type, id }) => `${type} ${id}`)).size).toBe(lines.length);
    }
  });

  it('keeps no id when it is done', async () => {
    const acme = await newOrganisation();
    await acme.accessed({ user_ids: ['nobody that is known'] });
    expect(await tablesWith(test.pool, ['nobody that is known'])).toEqual({});
  });

  it('is deleted after 7 days, and then only its counts are left', async () => {
    const acme = await newOrganisation();
    const { student_id, mark } = await newPerson(acme);
    const id = await acme.access({ customer_ids: [student_id] });
    expect((await acme.send('GET', `/v1/access-requests/${id}/records`)).json().code).toBe(
      'access_request_not_done',
    );
    await acme.collect();
    const kept = async () => (await tablesWith(test.pool, [mark])).access_request_records ?? 0;
    const expire = () => runJobs(serving, [expireCollected]);
    const setAge = (age: string) =>
      test.pool.query(
        `update access_requests set done_at = now() - $2::interval where access_request_id = $1`,
        [id, age],
      );
    await setAge('6 days 23 hours');
    await expire();
    expect(await acme.download(id)).toHaveLength(14);
    await setAge('7 days 1 second');
    // The download expires on time, even before maintenance has run.
    expect((await acme.send('GET', `/v1/access-requests/${id}/records`)).json()).toMatchObject({
      code: 'access_request_expired',
    });
    expect(await kept()).toBeGreaterThan(0);
    await expire();
    expect(await kept()).toBe(0);
    expect(await acme.get(id)).toMatchObject({ state: 'expired', records: everything });
  });

  it('that is cancelled drops out of a running collection, and maintenance deletes its records', async () => {
    const acme = await newOrganisation();
    const { student_id, mark } = await newPerson(acme);
    const [kept, cancelled, waiting] = [
      await acme.access({ customer_ids: [student_id] }),
      await acme.access({ customer_ids: [student_id] }),
      await acme.access({ user_ids: many(accessLimits.idsTogetherMax, () => randomUUID()) }),
    ];
    const part = () => collectPart(serving, acme.organisationId, suppressions);
    while (!(await acme.get(cancelled)).records.transactions) await part();
    const cancel = async (id: string) => (await acme.send('DELETE', `/v1/access-requests/${id}`)).json();
    const idsOf = async (id: string) => {
      const text = 'select count(*)::integer as count from access_request_ids where access_request_id = $1';
      return (await test.pool.query<{ count: number }>(text, [id])).rows[0]?.count;
    };
    expect(await idsOf(cancelled)).toBeGreaterThan(0);
    for (const id of [cancelled, waiting]) {
      const answer = await cancel(id);
      expect(answer).toMatchObject({ access_request_id: id, state: 'cancelled', done: null, expires: null });
      expect(await acme.get(id)).toEqual(answer);
      expect(await cancel(id)).toEqual(answer);
    }
    expect([await idsOf(cancelled), await idsOf(waiting)]).toEqual([0, 0]);
    await acme.collect();
    expect(countByType(await acme.download(kept))).toEqual(everything);
    const download = await acme.send('GET', `/v1/access-requests/${cancelled}/records`);
    expect(download.json().code).toBe('access_request_cancelled');
    const recordsOf = async (id: string) => {
      const text = 'select from access_request_records where access_request_id = $1';
      return (await test.pool.query(text, [id])).rowCount;
    };
    expect(await recordsOf(cancelled)).toBeGreaterThan(0);
    const expire = () => runJobs(serving, [expireCollected]);
    await expire();
    expect(await recordsOf(cancelled)).toBe(0);
    expect(countByType(await acme.download(kept))).toEqual(everything);
    // Records that can be downloaded are deleted too.
    expect(await cancel(kept)).toMatchObject({ state: 'cancelled', records: everything });
    await expire();
    expect((await tablesWith(test.pool, [mark])).access_request_records).toBeUndefined();
    for (const id of [kept, cancelled, waiting]) expect((await acme.get(id)).state).toBe('cancelled');
  });

  it('that is cancelled while the other ids of its people are added keeps no id', async () => {
    const acme = await newOrganisation();
    const { student_id } = await newPerson(acme);
    const id = await acme.access({ customer_ids: [student_id] });
    const step = async () => {
      const { rows } = await test.pool.query<{ step: string }>(
        'select step from jobs where organisation_id = $1',
        [acme.organisationId],
      );
      return rows[0]?.step;
    };
    const part = () => collectPart(serving, acme.organisationId, suppressions);
    while ((await step()) !== 'expand') await part();
    const cancelling = new pg.Client({ connectionString: test.databaseUrl });
    await cancelling.connect();
    let expanding: Promise<boolean>;
    try {
      await cancelling.query('begin');
      await cancelling.query(
        `update access_requests set state = 'done', cancelled_at = now() where access_request_id = $1`,
        [id],
      );
      await cancelling.query('delete from access_request_ids where access_request_id = $1', [id]);
      expanding = part();
      await untilPasses(async () => {
        const { rowCount } = await test.pool.query(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        );
        expect(rowCount).toBe(1);
      });
      await cancelling.query('commit');
    } finally {
      await cancelling.end();
    }
    await expanding;
    await acme.collect();
    const { rowCount } = await test.pool.query(
      'select from access_request_ids where access_request_id = $1',
      [id],
    );
    expect(rowCount).toBe(0);
  });

  it('is refused if a hundred are open, or too much is kept', async () => {
    const acme = await newOrganisation();
    // On a busy machine, the last of so many requests may wait too long for a connection.
    const ask = async () => {
      for (;;) {
        const answer = await acme.send('POST', '/v1/access-requests', { user_ids: ['somebody'] });
        if (answer.statusCode !== 503) return answer;
      }
    };
    const answers = await Promise.all(many(accessLimits.requestsOpenMax + 5, ask));
    expect(answers.filter(({ statusCode }) => statusCode === 202)).toHaveLength(accessLimits.requestsOpenMax);
    expect((await ask()).json()).toMatchObject({ code: 'too_many_access_requests' });
    await acme.collect();
    const { statusCode, body } = await ask();
    expect(statusCode, body).toBe(202);
    await test.pool.query(
      `update access_requests set records = $2 where organisation_id = $1 and state = 'done'`,
      [acme.organisationId, { interactions: accessLimits.recordsKeptMax / 100 }],
    );
    expect((await ask()).json()).toMatchObject({ code: 'too_many_access_requests' });
  });

  it('of many is collected a few at a time, and waits while too much is kept', async () => {
    const acme = await newOrganisation();
    const { student_id } = await newPerson(acme);
    const ids: string[] = [];
    for (let at = 0; at < accessLimits.requestsTogetherMax + 3; at++)
      ids.push(await acme.access({ customer_ids: [student_id] }));
    const large = await acme.access({ user_ids: many(accessLimits.idsTogetherMax, () => randomUUID()) });
    const another = await acme.access({ user_ids: ['somebody'] });
    const states = async () =>
      Promise.all([...ids, large, another].map(async (id) => (await acme.get(id)).state));
    const started = async () => {
      expect(await collectPart(serving, acme.organisationId, suppressions)).toBe(true);
      return (await states()).flatMap((state, at) => (state === 'running' ? at : []));
    };
    const first = many(accessLimits.requestsTogetherMax, (at) => at);
    expect(await started()).toEqual(first);
    const until = async (at: number) => {
      while ((await states())[at] !== 'done') await collectPart(serving, acme.organisationId, suppressions);
    };
    await until(first.length - 1);
    await test.pool.query(
      `update access_requests set records = $2 where organisation_id = $1 and access_request_id = $3`,
      [acme.organisationId, { interactions: accessLimits.recordsKeptMax }, ids[0]],
    );
    expect(await started()).toEqual([]);
    await test.pool.query(`update access_requests set state = 'expired' where access_request_id = $1`, [
      ids[0],
    ]);
    // Together with the earlier requests, the large request would exceed the limit on ids.
    expect(await started()).toEqual([20, 21, 22]);
    await until(22);
    expect(await started()).toEqual([23]);
    await acme.collect();
    expect(new Set((await states()).slice(1))).toEqual(new Set(['done']));
    expect(countByType(await acme.download(ids.at(-1) as string))).toEqual(everything);
  });

  it('that arrives during a collection is collected whole in the next one', async () => {
    const acme = await newOrganisation();
    const { student_id } = await newPerson(acme);
    const first = await acme.access({ customer_ids: [student_id] });
    for (let parts = 0; parts < 4; parts++) await collectPart(serving, acme.organisationId, suppressions);
    const second = await acme.access({ customer_ids: [student_id] });
    await acme.collect();
    for (const id of [first, second]) expect(countByType(await acme.download(id))).toEqual(everything);
  });

  it('of an organisation whose parts take all the time does not delay the others', async () => {
    const [acme, globex] = [await newOrganisation(), await newOrganisation()];
    const ids = [
      [acme, await acme.access({ user_ids: ['somebody'] })],
      [globex, await globex.access({ user_ids: ['somebody'] })],
    ] as const;
    // The organisation that gets the first turn becomes the slow one.
    let [slow, lateMs]: [string | undefined, number] = [undefined, 0];
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + lateMs);
    onTestFinished(() => clock.mockRestore());
    const delaying = new Proxy(serving, {
      get(pool, name) {
        const value = Reflect.get(pool, name);
        if (name !== 'query') return typeof value === 'function' ? value.bind(pool) : value;
        return (text: string | { values?: unknown[] }, values?: unknown[]) => {
          const [organisationId] = (typeof text === 'string' ? values : text.values) ?? [];
          if (typeof organisationId !== 'string') return pool.query(text as string, values);
          slow ??= organisationId;
          if (organisationId === slow) {
            lateMs += 2 * jobLimits.roundMs;
            return Promise.reject(new Error('it took too long'));
          }
          return pool.query(text as string, values);
        };
      },
    });
    const done = async () => {
      const fast = ids.find(([{ organisationId }]) => organisationId !== slow);
      return fast && (await fast[0].get(fast[1])).state;
    };
    for (let runs = 0; runs < 300 && (await done()) !== 'done'; runs++)
      await collectForAll(delaying, suppressions).catch(() => {});
    expect(await done()).toBe('done');
  });

  it('of an organisation that fails or is being removed does not delay the others', async () => {
    const [acme, globex] = [await newOrganisation(), await newOrganisation()];
    const id = await acme.access({ user_ids: ['somebody'] });
    await globex.access({ user_ids: ['somebody'] });
    await test.pool.query('delete from tenants where organisation_id = $1', [globex.organisationId]);
    await collectForAll(serving, suppressions);
    expect(await acme.get(id)).toMatchObject({ state: 'done' });
  });
});
