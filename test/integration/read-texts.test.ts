// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { storeCollected } from '../../src/access/store-collected.ts';
import { readConfig } from '../../src/config.ts';
import { requestErasure } from '../../src/erasure/request-erasure.ts';
import { limits } from '../../src/limits.ts';
import { readAnswerTexts, readCopies, readRejectionTexts } from '../../src/people/read-texts.ts';
import { binaryArray } from '../../src/postgres/binary/array-writer.ts';
import { createPool, type OwnPool, withClient } from '../../src/postgres/pool.ts';
import { inTransaction } from '../../src/postgres/transactions.ts';
import { pageOfRejections } from '../../src/rejections/rejections.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import type { CheckedBatch } from '../../src/uploads/read/batch-builder.ts';
import { leaveOutErased } from '../../src/uploads/store/leave-out-erased.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { many } from '../support/new-records.ts';

/** The texts that erasures and access requests search, and the copies that access requests keep. */

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

const newOrganisation = async () =>
  (await test.organisation(`o-${randomUUID().slice(0, 13)}`)).organisationId;

/** One for each size in bytes. Without a size, the record is not kept. */
async function addRejections(organisationId: string, sizes: readonly (number | null)[]): Promise<string[]> {
  const ids = sizes.map((_, at) => `00000000-0000-7000-8000-${String(at).padStart(12, '0')}`);
  await test.pool.query(
    `insert into rejection_kinds (organisation_id, kind_id, type, fields, codes, messages, used_at)
     values ($1, $1, 'customers', '{region}', '{required}', '{is missing}', now())`,
    [organisationId],
  );
  await test.pool.query(
    `insert into rejections (organisation_id, rejection_id, type, kind_id, request_id, index, record_id, record)
     select $1, r.id, 'customers', $1, $1, 0, null, '{"gender":"' || repeat('x', r.size) || '"}'
     from unnest($2::uuid[], $3::integer[]) as r(id, size)`,
    [organisationId, ids, sizes],
  );
  return ids;
}

async function addAccessRequest(organisationId: string): Promise<string> {
  const id = randomUUID();
  await test.pool.query(
    `insert into access_requests (organisation_id, access_request_id, key_id, people, state)
     values ($1, $2, 'key', 1, 'collecting')`,
    [organisationId, id],
  );
  return id;
}

const size = limits.recordBytesMax;
const count = Math.ceil((3.5 * limits.recordCharactersPerRead) / size);

/** Reads all pages. */
async function readPages<T, P>(read: (after: P | null) => Promise<{ page: readonly T[]; next: P | null }>) {
  const pages: (readonly T[])[] = [];
  for (let after: P | null = null; ; ) {
    const { page, next } = await read(after);
    pages.push(page);
    if (next === null) return pages;
    after = next;
  }
}

function expectBounded(pages: readonly (readonly string[])[], ids: readonly string[]): void {
  expect(pages).toHaveLength(4);
  for (const page of pages) expect(page.length * size).toBeLessThan(limits.recordCharactersPerRead + size);
  expect(pages.flat()).toEqual(ids);
}

it('a step reads a limited number of bytes of failed records, and the steps read each record once', async () => {
  const organisationId = await newOrganisation();
  const ids = await addRejections(
    organisationId,
    many(count, () => size),
  );
  const pages = await readPages(async (after: string | null) => {
    const { texts, next } = await readRejectionTexts(serving, organisationId, after);
    return { page: texts.map(({ rejection_id }) => rejection_id), next };
  });
  expectBounded(pages, ids);
});

it('a step reads a limited number of bytes of responses, and the steps read each response once', async () => {
  const { organisationId, key } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const headers = { authorization: `Bearer ${key}` };
  const failing = { method: 'POST', url: '/v1/data/customers', headers, payload: { records: [{}] } } as const;
  const { request_id } = (await test.app.inject(failing)).json();
  await test.pool.query('delete from receipt_batches where request_id = $1', [request_id]);
  await test.pool.query(
    `insert into receipt_batches (organisation_id, request_id, batch, answer)
     select $1, $2, n, repeat('x', $4) from generate_series(1, $3::integer) n`,
    [organisationId, request_id, count, size],
  );
  const pages = await readPages(async (after: string | null) => {
    const { texts, next } = await readAnswerTexts(serving, organisationId, after);
    return { page: texts.map(({ batch }) => String(batch)), next };
  });
  expectBounded(
    pages,
    many(count, (at) => String(at + 1)),
  );
});

it('a step reads a limited number of bytes of collected records, and the steps read each record once', async () => {
  const organisationId = await newOrganisation();
  const request = await addAccessRequest(organisationId);
  const ids = many(count, (at) => String(at).padStart(5, '0'));
  await test.pool.query(
    `insert into access_request_records (organisation_id, access_request_id, type, id, record, people)
     select $1, $2, 'customers', id, repeat('x', $4), '[]' from unnest($3::text[]) as r(id)`,
    [organisationId, request, ids, size],
  );
  const pages = await readPages(async (after: readonly [string, string, string] | null) => {
    const { copies, next } = await readCopies(serving, organisationId, after);
    return { page: copies.map(({ id }) => id), next };
  });
  expectBounded(pages, ids);
});

it('a page of rejections ends with its last record, although the next records were not kept', async () => {
  const organisationId = await newOrganisation();
  const ids = await addRejections(organisationId, [size, size, size, null]);
  const page = (after: string | undefined) =>
    pageOfRejections(serving, organisationId, {}, { after, limit: 10 }, 1.5 * size);
  const { rejections, more } = await page(undefined);
  expect([rejections.map(({ rejection_id }) => rejection_id), more]).toEqual([ids.slice(0, 2), true]);
  const { rejections: others } = await page(ids[1]);
  expect(others.map(({ rejection_id }) => rejection_id)).toEqual(ids.slice(2));
});

it('searching a batch’s failed records for erased people leaves other requests their turns', async () => {
  const organisationId = await newOrganisation();
  const suppressions = new Suppressions([erasureKey]);
  const hasher = await suppressions.hasherFor(serving, organisationId);
  const erased = {
    organisationId,
    keyId: 'key',
    mode: 'delete' as const,
    customerIds: [randomUUID()],
    userIds: [],
  };
  await requestErasure(serving, erased, hasher);
  const text = JSON.stringify({ gender: many(size / 40, () => randomUUID()).join() });
  const failed = many(50, (index) => ({ index, id: null, problems: [] }));
  const checked = {
    failed,
    failedTexts: binaryArray(
      'text',
      failed.map(() => text),
    ),
    rows: { count: 0, arrays: many(40, () => binaryArray('text', [])) },
  };
  await withClient(serving, async (client) => {
    const check = await suppressions.checkNow(client, organisationId);
    let turns = 0;
    const counting = setInterval(() => turns++, 0);
    await leaveOutErased('customers', checked as unknown as CheckedBatch, check);
    clearInterval(counting);
    expect(turns).toBeGreaterThan(10);
  });
});

it('an erasure that commits after a record was read only takes its id out of interactions of others', async () => {
  const organisationId = await newOrganisation();
  const request = await addAccessRequest(organisationId);
  const [student_id, user_id] = [randomUUID(), `library-pc ${randomUUID()}`];
  const collection = {
    organisationId,
    for: 'access' as const,
    hiddenAmong: async () => new Set([user_id]),
  };
  const interaction = (id: string, values: object, people: string[]) => ({
    id,
    record: JSON.stringify({ interaction_id: id, ...values, city: 'Leeds' }),
    people,
    requests: [request],
  });
  const [others, own] = [randomUUID(), randomUUID()];
  await inTransaction(serving, (client) =>
    storeCollected(client, collection, 'interactions', [
      interaction(others, { student_id, user_id }, [student_id, user_id]),
      interaction(own, { student_id: null, user_id }, [user_id]),
    ]),
  );
  const { rows } = await test.pool.query(
    'select id, record::json as record, people from access_request_records where access_request_id = $1',
    [request],
  );
  const record = { interaction_id: others, student_id, user_id: null, city: 'Leeds' };
  expect(rows).toEqual([{ id: others, record, people: [student_id] }]);
});
