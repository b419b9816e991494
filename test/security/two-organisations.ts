import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { fieldsOf, idFieldOf, makeRecord, recordTypes, type TestRecord } from '../acceptance/record-types.ts';
import { accessPerson } from '../support/access-person.ts';
import type { Api } from '../support/api.ts';
import { erasePerson } from '../support/erase-person.ts';
import { everyRowOf } from '../support/query-database.ts';
import { listRejections } from '../support/rejections.ts';
import { replayCursorAfter, reportCursorAfter, signerOf } from '../support/signed-cursor.ts';

/** The stored data of two organisations before one of them attacks the other. Some of their ids are the same. */

export const types = Object.keys(recordTypes);

export function referencesOf(type: string): string[] {
  return fieldsOf(type).flatMap(([, { references }]) => references ?? []);
}

/** The types, with referenced types first. */
const typesInOrder = types.toSorted((one, other) => referencesOf(one).length - referencesOf(other).length);

/** A word that occurs in all of the victim's text fields and interactions, and in nothing that the attacker sends. */
export const victimsWord = 'victims-own-word';
const victimsDay = '1999-12-31';
export const attackersDay = '2011-11-11';

/** Ids by type. Both store the `shared` ids. Only the victim stores the others, and the attacker later uploads `taken`. */
export const shared = newIds();
export const foreign = newIds();
export const taken = newIds();

function newIds(): Record<string, string> {
  return Object.fromEntries(types.map((type) => [type, randomUUID()]));
}

export function recordOf(type: string, ids: Record<string, string>, day: string, word: string): TestRecord {
  const texts = fieldsOf(type).flatMap(([name, { kind }]) => (kind === 'text' ? [[name, word]] : []));
  const changes = { ...Object.fromEntries(texts), created: `${day}T00:00:00Z` };
  return makeRecord(type, ids, { ...changes, [idFieldOf(type)]: ids[type] });
}

export const interactionWith = (item_id: string, fields: object = {}) => ({
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id,
  event_timestamp: 1_700_000_000,
  ...fields,
});

export interface Victims {
  /** One of the victim's values for each parameter that can identify data. */
  readonly values: Readonly<Record<string, string>>;
  /** All values that belong only to the victim. A response to the attacker may contain one only if the request did. */
  readonly own: readonly string[];
  /** One of the victim's cursors and its query, for each operation with signed cursors. */
  readonly signed: Readonly<Record<string, readonly [cursor: string, filter: string]>>;
}

export async function storeVictims(victim: Api, databaseUrl: string): Promise<Victims> {
  const requestIds: string[] = [];
  for (const type of typesInOrder) {
    for (const ids of [shared, foreign]) {
      const headers = { 'idempotency-key': `${victimsWord} ${type} ${ids === shared}` };
      const records = [recordOf(type, ids, victimsDay, victimsWord)];
      const { status, body } = await victim.post(`/v1/data/${type}`, { records }, headers);
      expect({ status, body }).toMatchObject({ status: 200 });
      requestIds.push(body.request_id);
    }
    const another = { ...recordOf(type, foreign, victimsDay, victimsWord), [idFieldOf(type)]: taken[type] };
    expect((await victim.upload(type, [another])).status).toBe(200);
    const bad = { ...recordOf(type, foreign, victimsDay, victimsWord), [idFieldOf(type)]: randomUUID() };
    const { body } = await victim.upload(type, [{ ...bad, updated: 7 }]);
    requestIds.push(body.request_id);
  }
  // This rejection could be replayed by now, but no client replays it.
  const shop_id = randomUUID();
  const waiting = {
    ...recordOf('offers', foreign, victimsDay, victimsWord),
    offer_id: randomUUID(),
    shop_id,
  };
  requestIds.push((await victim.upload('offers', [waiting])).body.request_id);
  await victim.upload('shops', [{ ...recordOf('shops', foreign, victimsDay, victimsWord), shop_id }]);
  const recommendation_id = randomUUID();
  const fields = { user_id: victimsWord, student_id: foreign.customers, recommendation_id };
  const key = { 'idempotency-key': victimsWord };
  const recorded = await victim.post('/user-interactions', interactionWith(foreign.shops!, fields), key);
  expect(recorded.status).toBe(201);
  const batch = { records: [interactionWith(foreign.shops!, fields), interactionWith(randomUUID(), fields)] };
  const batchKey = { 'idempotency-key': `${victimsWord} interactions` };
  const sent = await victim.post('/user-interactions/batch', batch, batchKey);
  expect(sent.status).toBe(207);
  requestIds.push(sent.body.request_id);
  const values = {
    ...Object.fromEntries(types.map((type) => [idFieldOf(type), foreign[type]!])),
    student_id: foreign.customers!,
    user_id: victimsWord,
    item_id: foreign.shops!,
    recommendation_id,
    interaction_id: recorded.body.interaction_id,
    erasure_id: await erasePerson(victim),
    access_request_id: await accessPerson(victim, { customer_ids: [foreign.customers] }),
    request_id: requestIds.at(-1)!,
    run_id: await openSameRun(victim),
    idempotency_key: `${victimsWord} tags false`,
    // Any id works as the cursor of a list.
    cursor: requestIds.at(-1)!,
    after: (await victim.get('/v1/changes')).body.next_cursor,
  };
  const rejections = (await listRejections(victim)).map(({ rejection_id }) => rejection_id);
  expect(rejections).toHaveLength(types.length + 2);
  const ids = [...Object.values(foreign), ...Object.values(taken), ...requestIds, ...rejections];
  const { interaction_id, erasure_id, access_request_id, run_id } = values;
  const made = [recommendation_id, interaction_id, erasure_id, access_request_id, run_id];
  const own = [victimsWord, victimsDay, ...made, ...ids];
  return { values, own, signed: await signedCursorsOf(databaseUrl, 'victim') };
}

/** The victim and the attacker open runs with the same key and the same file. */
export async function openSameRun(api: Api): Promise<string> {
  const sha256 = '9f'.repeat(32);
  const files = ['tags', 'interactions'].map((type) => ({ name: 'visits.csv', bytes: 1, sha256, type }));
  const { status, body } = await api.post(
    '/v1/runs',
    { name: 'nightly', files },
    { 'idempotency-key': 'a run' },
  );
  expect([200, 201]).toContain(status);
  return body.run_id;
}

export async function storeAttackers(attacker: Api): Promise<void> {
  for (const type of typesInOrder) {
    const record = recordOf(type, shared, attackersDay, 'word');
    const bad = { ...record, [idFieldOf(type)]: randomUUID(), updated: 7 };
    const { status } = await attacker.upload(type, [record, bad]);
    expect(status).toBe(207);
  }
  expect((await attacker.post('/user-interactions', interactionWith(shared.shops!))).status).toBe(201);
}

/** Returns the report URLs once maintenance has counted both organisations' interactions, which are on the same day. */
export async function countedReports(victim: Api, attacker: Api, path: string): Promise<string[]> {
  const pathOf = (group_by: string) => `${path}?from=2023-11-01&to=2023-12-01&group_by=${group_by}`;
  const unusable = async () =>
    (await victim.get(pathOf('item'))).body.unusable.recommendation_without_service;
  await expect.poll(unusable, { interval: 500 }).toBeGreaterThan(1);
  const groups = async () =>
    (await attacker.get(pathOf('item'))).body.groups.map(({ group }: TestRecord) => group);
  await expect.poll(groups, { interval: 500 }).toContainEqual({ item_type: 'SHOP', item_id: shared.shops });
  return ['day', 'item_type', 'item', 'platform', 'country', 'recommendation'].map(pathOf);
}

/**
 * Returns all of the victim's rows, except its keys, the organisation itself, the audit log, and its activity, which counts
 * the victim's own requests every minute.
 */
export async function rowsOfVictim(databaseUrl: string, victimId: string): Promise<Record<string, string[]>> {
  const rows = await everyRowOf(databaseUrl);
  const kept = Object.entries(rows).filter(
    ([table]) => !/^(api_keys|organisations|organisation_activity|audit_log)/.test(table),
  );
  const own = kept.map(([table, all]) => [table, all.filter((row) => row.includes(victimId))] as const);
  return Object.fromEntries(own.filter(([, ofVictim]) => ofVictim.length > 0));
}

async function signedCursorsOf(databaseUrl: string, slug: string): Promise<Victims['signed']> {
  const [ofReplay, ofReport] = [
    await signerOf(databaseUrl, slug, 'replay'),
    await signerOf(databaseUrl, slug, 'report'),
  ];
  return {
    'replay-rejections': [
      replayCursorAfter(ofReplay, 'customers', foreign.customers!),
      '&code=not_an_object',
    ],
    'report-recommendations': [
      reportCursorAfter(ofReport, 'recommendation', foreign.offers!),
      '&group_by=recommendation',
    ],
  };
}
