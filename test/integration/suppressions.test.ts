// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { currentPass, savePass } from '../../src/lake/ending/lake-endings.ts';
import { limits } from '../../src/limits.ts';
import { choresOf } from '../../src/maintenance/chores.ts';
import { confirmRestore } from '../../src/operator/after-restore.ts';
import type { AuditEntry } from '../../src/operator/audit-log.ts';
import { type LedgerEntry, readLedger, repeatErasures } from '../../src/operator/erasure-ledger.ts';
import { createPool, type OwnPool, withClient } from '../../src/postgres/pool.ts';
import { fingerprintOf } from '../../src/suppression/suppression-key.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { sweepErasures, sweepStep } from '../support/jobs.ts';
import { newTag } from '../support/new-records.ts';
import { untilPasses } from '../support/until-passes.ts';

/** A suppression belongs to one erasure and to one key. */

const otherKey = 'another key of 32 characters or more';
const suppressions = new Suppressions([erasureKey, otherKey]);
let test: TestApp;
/** A pool with the serving role's privileges. */
let serving: OwnPool;
beforeAll(async () => {
  test = await createTestApp();
  serving = createPool(readConfig({ DATABASE_URL: servingUrl(test.databaseUrl) }), () => {});
});
afterAll(async () => {
  await serving.end();
  await test.close();
});

async function newOrganisation() {
  const { organisationId, key } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const call = async (method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object, { app } = test) => {
    const headers = { authorization: `Bearer ${key}` };
    const answer = await app.inject({ method, url, headers, ...(payload && { payload }) });
    return { status: answer.statusCode, body: answer.json() };
  };
  /** Uploads a customer, and returns how many were stored. */
  const upload = async (customer: object) => {
    const { body } = await call('POST', '/v1/data/customers', { records: [customer] });
    return body.batches[0].data.counts.created;
  };
  const erase = async (customer_id: string): Promise<string> =>
    (await call('POST', '/v1/erasures', { customer_ids: [customer_id] })).body.erasure_id;
  const lift = async (erasureId: string) =>
    (await call('DELETE', `/v1/erasures/${erasureId}/suppression`)).body.lifted;
  return { organisationId, call, upload, erase, lift };
}

const newCustomer = () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' });

const sweep = (...erasureIds: string[]) =>
  untilPasses(async () => {
    await sweepErasures(serving, suppressions);
    const { rows } = await test.pool.query(
      `select from erasures where erasure_id = any ($1) and state = 'swept'`,
      [erasureIds],
    );
    expect(rows).toHaveLength(erasureIds.length);
  });

async function keysOf(organisationId: string): Promise<string[]> {
  const { rows } = await test.pool.query(
    `select encode(fingerprint, 'hex') as key from erasure_keys where organisation_id = $1`,
    [organisationId],
  );
  return rows.map(({ key }) => key);
}

async function ledgerOf(organisationId: string): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  for await (const some of readLedger(test.pool)) entries.push(...some);
  return entries.filter(({ organisation_id }) => organisation_id === organisationId);
}

it('a person whose two erasures overlap is refused until both are lifted', async () => {
  const { upload, erase, lift } = await newOrganisation();
  const person = newCustomer();
  expect(await upload(person)).toBe(1);
  const [one, other] = [await erase(person.customer_id), await erase(person.customer_id)];
  await sweep(one, other);
  expect(await lift(one)).toBe(2);
  expect(await upload(person)).toBe(0);
  expect(await lift(one)).toBe(0);
  expect(await lift(other)).toBe(2);
  expect(await upload(person)).toBe(1);
});

it('lifting an erasure lets nobody back who is being erased by another one', async () => {
  const { organisationId, upload, erase, lift } = await newOrganisation();
  const person = newCustomer();
  await upload(person);
  const first = await erase(person.customer_id);
  await sweep(first);
  const second = await erase(person.customer_id);
  await sweepStep(serving, organisationId, suppressions);
  await lift(first);
  expect(await upload(person)).toBe(0);
  await sweep(second);
  expect(await upload(person)).toBe(0);
});

it('suppressions that are read while another server begins to respond are not kept', async () => {
  const { organisationId, erase } = await newOrganisation();
  await erase(randomUUID());
  const own = new Suppressions([erasureKey]);
  const read = () => withClient(serving, (client) => own.checkNow(client, organisationId));
  await withClient(serving, async (client) => {
    const query = client.query.bind(client) as (statement: { name?: string }) => Promise<unknown>;
    const forgetting = (statement: { name?: string }) => {
      if (statement.name === 'read suppressions') own.forget();
      return query(statement);
    };
    await own.checkNow({ query: forgetting } as unknown as typeof client, organisationId);
  });
  expect(own.versionOf(organisationId)).toBe(0);
  await read();
  expect(own.versionOf(organisationId)).toBe(1);
});

it('an erased student is missing once the erasure is lifted, also if interactions were uploaded before the sweep', async () => {
  const { call, upload, erase, lift } = await newOrganisation();
  const person = newCustomer();
  await upload(person);
  const tag = newTag();
  await call('POST', '/v1/data/tags', { records: [tag] });
  const visit = { interaction_type: 'SHARE', item_type: 'TAG', item_id: tag.tag_id, event_timestamp: 1 };
  const record = async () => {
    const records = [{ ...visit, student_id: person.customer_id }];
    const { body } = await call('POST', '/user-interactions/batch', { records });
    return body.batches[0].data.errors[0]?.code;
  };
  const erasureId = await erase(person.customer_id);
  // The first upload loads the new suppressions, and the second one already knows them.
  expect([await record(), await record()]).toEqual(['erased', 'erased']);
  await sweep(erasureId);
  await lift(erasureId);
  expect(await record()).toBe('reference_not_found');
});

it('only a swept erasure that exists can be lifted', async () => {
  const { call, erase } = await newOrganisation();
  const erasureId = await erase(randomUUID());
  const codeOf = async (id: string) => (await call('DELETE', `/v1/erasures/${id}/suppression`)).body.code;
  expect(await codeOf(erasureId)).toBe('erasure_not_swept');
  expect(await codeOf(randomUUID())).toBe('erasure_not_found');
  expect(await codeOf('no-uuid')).toBe('erasure_not_found');
});

it('a process without the key of a suppression refuses whatever depends on it, and says which key it lacks', async () => {
  const { organisationId, call, upload, erase } = await newOrganisation();
  const person = newCustomer();
  await upload(person);
  const erasureId = await erase(person.customer_id);
  await sweep(erasureId);
  const lacking = await createTestApp(test.databaseUrl, otherKey);
  const appended = await createTestApp(test.databaseUrl, `${otherKey}, ${erasureKey}`);
  try {
    const visit = { interaction_type: 'SHARE', item_type: 'SHOP', item_id: randomUUID(), event_timestamp: 1 };
    const calls = [
      ['POST', '/v1/data/customers', { records: [newCustomer()] }],
      ['POST', '/v1/data/customers?dry_run=true', { records: [person] }],
      ['POST', '/user-interactions', { ...visit, user_id: person.user_id }],
      ['POST', '/user-interactions', visit],
      ['POST', '/user-interactions/batch', { records: [visit] }],
      ['POST', '/v1/access-requests', { customer_ids: [person.customer_id] }],
      ['POST', '/v1/erasures', { customer_ids: [person.customer_id] }],
      ['GET', `/v1/erasures/${erasureId}/certificate`],
      ['GET', '/health/ready'],
    ] as const;
    for (const [method, url, payload] of calls) {
      const { status, body } = await call(method, url, payload, lacking);
      expect([url, status, body.code]).toEqual([url, 503, 'erasure_key_missing']);
      expect(body.message).toContain(fingerprintOf(erasureKey).toString('hex'));
      const { body: other } = await call(method, url, payload, appended);
      expect([url, other.code]).not.toEqual([url, 'erasure_key_missing']);
    }
    const tags = { records: [newTag()] };
    expect((await call('POST', '/v1/data/tags', tags, lacking)).status).toBe(200);
    // If the machine stalls for two seconds, the process is briefly not ready.
    const readiness = async () => (await call('GET', '/health/ready', undefined, appended)).status;
    await expect.poll(readiness).toBe(200);
    // An erasure of another organisation would be hashed with a key that may be wrong.
    const unaffected = await newOrganisation();
    const { body } = await unaffected.call('POST', '/v1/erasures', { user_ids: ['a user'] }, lacking);
    expect(body.code).toBe('erasure_key_missing');
  } finally {
    await lacking.close();
    await appended.close();
    // The other tests' process has not got the other key.
    await test.pool.query('delete from erasure_keys where organisation_id = $1', [organisationId]);
  }
});

it('a leader without the key adds no ids to an erasure', async () => {
  const { organisationId, call, upload, erase } = await newOrganisation();
  const customer = newCustomer();
  await upload(customer);
  const twin = { ...newCustomer(), user_id: customer.user_id };
  await upload(twin);
  const erasureId = await erase(customer.customer_id);
  const lacking = new Suppressions([otherKey]);
  await untilPasses(async () => {
    const swept = async () => {
      while (await sweepStep(serving, organisationId, lacking));
    };
    await expect(swept()).rejects.toThrow(fingerprintOf(erasureKey).toString('hex'));
  });
  expect(await keysOf(organisationId)).toEqual([fingerprintOf(erasureKey).toString('hex')]);
  await sweep(erasureId);
  expect(await keysOf(organisationId)).toEqual([fingerprintOf(erasureKey).toString('hex')]);
  expect((await call('GET', `/v1/data/customers/${twin.customer_id}`)).status).toBe(404);
});

it('looking up thousands of erased ids leaves other requests their turns', async () => {
  const { organisationId, call } = await newOrganisation();
  const ids = Array.from({ length: 5_000 }, () => randomUUID());
  expect((await call('POST', '/v1/erasures', { user_ids: ids })).status).toBe(202);
  const client = await serving.connect();
  try {
    const check = await suppressions.checkNow(client, organisationId);
    let turns = 0;
    let isOver = false;
    const counting = (async () => {
      while (!isOver) {
        await new Promise(setImmediate);
        turns++;
      }
    })();
    const startMs = performance.now();
    const looked = check.erasedAmong(ids);
    const blockedMs = performance.now() - startMs;
    expect((await looked).size).toBe(5_000);
    isOver = true;
    await counting;
    expect(turns).toBeGreaterThan(2);
    expect(blockedMs).toBeLessThan((performance.now() - startMs) / 2);
  } finally {
    client.release();
  }
});

it('an id that was erased hundreds of times costs a look-up as much as an id that was erased once', async () => {
  const { organisationId, upload, erase } = await newOrganisation();
  const person = newCustomer();
  await erase(person.customer_id);
  await test.pool.query(
    `insert into suppressions (organisation_id, hash, filter, erasure_id, version)
     select organisation_id, hash, filter, gen_random_uuid(), version from suppressions, generate_series(2, 300)
     where organisation_id = $1`,
    [organisationId],
  );
  const client = await serving.connect();
  try {
    const check = await new Suppressions([erasureKey]).checkNow(client, organisationId);
    const asked = vi.spyOn(client, 'query');
    expect(await check.erasedAmong([person.customer_id, randomUUID()])).toEqual(
      new Set([person.customer_id]),
    );
    const answers = await Promise.all(asked.mock.results.map(({ value }) => value));
    expect(answers.map(({ rowCount }) => rowCount)).toEqual([1]);
  } finally {
    vi.restoreAllMocks();
    client.release();
  }
  expect(await upload(person)).toBe(0);
});

it('a suppression that an older version added needs no key by name', async () => {
  const { organisationId, call, upload, erase } = await newOrganisation();
  const person = newCustomer();
  await upload(person);
  await sweep(await erase(person.customer_id));
  await test.pool.query('update suppressions set key_fingerprint = null where organisation_id = $1', [
    organisationId,
  ]);
  await test.pool.query('delete from erasure_keys where organisation_id = $1', [organisationId]);
  const appended = await createTestApp(test.databaseUrl, `${otherKey}, ${erasureKey}`);
  try {
    const { status, body } = await call('POST', '/v1/data/customers', { records: [person] }, appended);
    expect([status, body.batches[0].data.counts]).toMatchObject([400, { created: 0, failed: 1 }]);
  } finally {
    await appended.close();
  }
});

it('the ledger contains every suppression, however many erasures share a hash', async () => {
  const { organisationId } = await newOrganisation();
  const perErasure = Math.ceil(limits.ledgerEntriesPerRead / 3) + 2;
  await test.pool.query(
    `insert into erasures (organisation_id, erasure_id, mode, key_id, people, known, state)
     select $1, ('00000000-0000-7000-8000-00000000000' || n)::uuid, 'delete', 'key', 1, 0, 'done' from generate_series(1, 4) n`,
    [organisationId],
  );
  await test.pool.query(
    `insert into suppressions (organisation_id, hash, filter, erasure_id, version)
     select e.organisation_id, substr(sha256(n::text::bytea), 1, 16), n, e.erasure_id, 1
     from erasures e cross join generate_series(1, $2) n where e.organisation_id = $1`,
    [organisationId, perErasure],
  );
  const entries = await ledgerOf(organisationId);
  expect(entries).toHaveLength(4 * perErasure);
  expect(new Set(entries.map(({ hash, erasure_id }) => `${hash} ${erasure_id}`)).size).toBe(4 * perErasure);
});

it('the ledger contains all of an erasure that commits while it is written, or nothing of it', async () => {
  const { organisationId, call } = await newOrganisation();
  await test.pool.query(
    `insert into erasures (organisation_id, erasure_id, mode, key_id, people, known, state)
     values ($1, '00000000-0000-7000-8000-000000000001', 'delete', 'key', 1, 0, 'done')`,
    [organisationId],
  );
  await test.pool.query(
    `insert into suppressions (organisation_id, hash, filter, erasure_id, version)
     select e.organisation_id, substr(sha256(n::text::bytea), 1, 16), n, e.erasure_id, 1
     from erasures e cross join generate_series(1, $2) n where e.organisation_id = $1`,
    [organisationId, 2 * limits.ledgerEntriesPerRead],
  );
  const ids = Array.from({ length: 100 }, () => randomUUID());
  let erasureId: string | undefined;
  const entries: LedgerEntry[] = [];
  for await (const page of readLedger(test.pool)) {
    if (page[0]?.organisation_id !== organisationId) continue;
    entries.push(...page);
    erasureId ??= (await call('POST', '/v1/erasures', { user_ids: ids })).body.erasure_id;
  }
  expect(erasureId).toBeDefined();
  expect(entries).toHaveLength(2 * limits.ledgerEntriesPerRead);
  expect((await ledgerOf(organisationId)).length).toBe(entries.length + ids.length);
});

/** Makes the database look as if it had been restored to a moment before the erasure. */
async function forgetErasures(organisationId: string): Promise<void> {
  for (const table of ['erasures', 'erasure_ids', 'suppressions', 'erasure_keys'])
    await test.pool.query(`delete from ${table} where organisation_id = $1`, [organisationId]);
}

it('an erasure that had been lifted is swept after a restore, and then lifted again', async () => {
  const { organisationId, call, upload, erase, lift } = await newOrganisation();
  const person = newCustomer();
  const erasureId = await erase(person.customer_id);
  const standing = await erase(randomUUID());
  await sweep(erasureId, standing);
  await lift(erasureId);
  const before = await ledgerOf(organisationId);
  expect(before.map(({ erasure_id, lifted_at }) => [erasure_id, typeof lifted_at]).toSorted()).toEqual(
    [
      [erasureId, 'string'],
      [standing, 'object'],
    ].toSorted(),
  );
  expect(before[0]?.key_fingerprint).toBe(fingerprintOf(erasureKey).toString('hex'));
  expect(await upload(person)).toBe(1);
  await forgetErasures(organisationId);
  expect(await repeatErasures(test.pool, before)).toBe(2);
  // Until it has been swept, the person is suppressed.
  expect(await upload({ ...person, region: 'IE' })).toBe(0);
  expect((await ledgerOf(organisationId)).map(({ hash }) => hash)).toEqual(before.map(({ hash }) => hash));
  await sweep(erasureId, standing);
  expect((await call('GET', `/v1/data/customers/${person.customer_id}`)).status).toBe(404);
  const repeated = await ledgerOf(organisationId);
  const liftedIn = (entries: readonly LedgerEntry[]) =>
    new Map(entries.map(({ hash, lifted_at }) => [hash, lifted_at]));
  for (const [hash, lifted] of liftedIn(before)) expect(liftedIn(repeated).get(hash)).toBe(lifted);
  // The sweep found the person's user id, which the first erasure did not know, and that is lifted as well.
  expect(repeated.length).toBe(before.length + 1);
  expect(await upload(person)).toBe(1);
});

it('after a failover, a version that it lost is not taken for the same version of a repeated erasure', async () => {
  const { organisationId, call, upload, erase } = await newOrganisation();
  const lose = async () => {
    await forgetErasures(organisationId);
    await test.pool.query('update tenants set suppressions_version = 0 where organisation_id = $1', [
      organisationId,
    ]);
  };
  const person = newCustomer();
  const erasureId = await erase(person.customer_id);
  const ledger = await ledgerOf(organisationId);
  await lose();
  expect(await upload(person)).toBe(1);
  await erase(randomUUID());
  await withClient(serving, (client) => suppressions.checkNow(client, organisationId));
  await lose();
  expect(await repeatErasures(test.pool, ledger)).toBe(1);
  expect(suppressions.versionOf(organisationId)).toBe(1);
  await sweep(erasureId);
  expect((await call('GET', `/v1/data/customers/${person.customer_id}`)).status).toBe(404);
});

/** Returns the ledger of an erasure, and a database that was restored to a moment before it. */
async function restoredBefore(
  erase: (customer_id: string) => Promise<string>,
  organisationId: string,
  customer_id: string,
) {
  const erasureId = await erase(customer_id);
  const ledger = await ledgerOf(organisationId);
  await forgetErasures(organisationId);
  return { erasureId, ledger };
}

const looksForPeople = async () =>
  (await test.pool.query('select from restores where looks_for_people')).rowCount !== 0;
const confirm = (entries: AsyncIterable<AuditEntry> | readonly AuditEntry[] = []) =>
  confirmRestore(test.pool, { actor: 'test' }, { entries, withoutErasures: false });

it('keys wait for people of repeated erasures, also if the repetition was interrupted before', async () => {
  const { organisationId, upload, erase } = await newOrganisation();
  const person = newCustomer();
  await upload(person);
  const { erasureId, ledger } = await restoredBefore(erase, organisationId, person.customer_id);
  expect([await repeatErasures(test.pool, ledger), await repeatErasures(test.pool, ledger)]).toEqual([1, 0]);
  expect(await confirm()).toMatchObject({ looksForPeople: true });
  await expect(test.pool.query('select keys_can_be_trusted()')).rejects.toThrow('being looked for');
  await sweep(erasureId);
  expect(await looksForPeople()).toBe(false);
  expect(await confirm()).toMatchObject({ looksForPeople: false });
  expect(await looksForPeople()).toBe(false);
});

it('keys work again if people are hidden while a restore is confirmed', async () => {
  const { organisationId, upload, erase } = await newOrganisation();
  const person = newCustomer();
  await upload(person);
  const { erasureId, ledger } = await restoredBefore(erase, organisationId, person.customer_id);
  expect(await repeatErasures(test.pool, ledger)).toBe(1);
  const identifying = async () =>
    (
      await test.pool.query(`select from jobs where organisation_id = $1 and step = 'identify'`, [
        organisationId,
      ])
    ).rowCount === 1;
  // The fence before this step has passed, so the step does not wait for the confirmation.
  while (!(await identifying())) await sweepStep(serving, organisationId, suppressions);
  const hide = async () => {
    while (await identifying()) await sweepStep(serving, organisationId, suppressions);
    return { done: true as const, value: undefined };
  };
  // The entries are read after it has been decided that keys have to wait.
  const entries = { [Symbol.asyncIterator]: () => ({ next: hide }) };
  expect(await confirm(entries)).toMatchObject({ looksForPeople: true });
  await sweep(erasureId);
  expect(await looksForPeople()).toBe(true);
  const config = { receiptsKeptDays: 7, changesKeptDays: 7, deletedOrganisationsKeptDays: 7 };
  const chores = choresOf(serving, { ...config, databaseTimeoutMs: 30_000 }, suppressions);
  await chores.find(({ name }) => name === 'let keys work after a restore')?.run();
  expect(await looksForPeople()).toBe(false);
});

it('with a lake, a repeated erasure is lifted only when the files have been searched', async () => {
  const { organisationId, upload, erase, lift } = await newOrganisation();
  const person = newCustomer();
  const erasureId = await erase(person.customer_id);
  await sweep(erasureId);
  await lift(erasureId);
  const ledger = await ledgerOf(organisationId);
  await forgetErasures(organisationId);
  await test.pool.query(`insert into lake_progress (organisation_id, number, epoch) values ($1, 1, 'a')`, [
    organisationId,
  ]);
  await repeatErasures(test.pool, ledger);
  await sweep(erasureId);
  expect(await upload(person)).toBe(0);
  const pass = await currentPass(serving, organisationId);
  await savePass(serving, organisationId, pass!, 'customers a');
  expect(await upload(person)).toBe(0);
  await savePass(serving, organisationId, pass!, null);
  expect(await upload(person)).toBe(1);
});

it('an erasure of a restored database that was lifted only afterwards is lifted again', async () => {
  const { organisationId, upload, erase, lift } = await newOrganisation();
  const [swept, unswept] = [newCustomer(), newCustomer()];
  const first = await erase(swept.customer_id);
  await sweep(first);
  const second = await erase(unswept.customer_id);
  const ledger = (await ledgerOf(organisationId)).map((entry) => ({
    ...entry,
    lifted_at: '2026-01-01T00:00:00.000Z',
  }));
  expect(await repeatErasures(test.pool, ledger)).toBe(0);
  expect([await upload(swept), await upload(unswept)]).toEqual([1, 0]);
  await sweep(second);
  expect(await upload(unswept)).toBe(1);
  expect(await lift(second)).toBe(0);
});
