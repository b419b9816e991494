import { randomUUID } from 'node:crypto';
import type { adminOperations } from '../../src/http/admin/operations.ts';
import { operations } from '../../src/http/operations.ts';
import { limits } from '../../src/limits.ts';
import { interactionExample, itemTypes } from '../../src/registry/interaction.ts';
import {
  idFieldOf,
  type ResourceType,
  referencesOf,
  resources,
  resourceTypes,
} from '../../src/registry/resources.ts';
import { uuidFloor } from '../../src/registry/uuid-v7.ts';
import type { Api } from './api.ts';
import { reportCursorAfter } from './signed-cursor.ts';

/** Sends requests of every kind, so that the service runs each of its statements. */

type TestRecord = Record<string, unknown>;

/** Sends every request that a client can send. `signReport` signs report cursors for the client's organisation. */
export async function makeEveryRequest(api: Api, signReport: (text: string) => string): Promise<void> {
  const stored = await uploadEverything(api);
  const id = await recordInteractions(api, stored);
  const runId = await uploadInRuns(api);
  const { body: receipts } = await api.get('/v1/requests');
  await api.get(`/v1/requests/${receipts.requests[0].request_id}`);
  const { body: feed } = await api.get('/v1/changes?limit=1');
  const instant = '2026-01-01T00:00:00Z';
  const groups = {
    ...{ day: '2026-01-01', item_type: 'OFFER', item: `OFFER:${uuidFloor(0)}`, platform: '-', country: '-' },
    recommendation: uuidFloor(0),
  };
  for (const [group_by, key] of Object.entries(groups))
    for (const cursor of ['', `&cursor=${reportCursorAfter(signReport, group_by, key)}`])
      await api.get(
        `/v1/reports/recommendations?from=2026-01-01&to=2027-01-01&group_by=${group_by}${cursor}`,
      );
  await askEverything(api, operations, {
    id,
    cursor: uuidFloor(0),
    limit: '1',
    from: instant,
    to: new Date(Date.now() + 3_600_000).toISOString(),
    stored_since: instant,
    include_deleted: 'true',
    type: 'tags',
    code: 'wrong_type',
    field: 'is_deleted',
    status: '200',
    operation: 'upload',
    idempotency_key: 'twice',
    run_id: runId,
    name: 'nightly',
    item_type: 'SHOP',
    interaction_type: 'SHARE',
    source: 'SERVICE',
    user_id: 'user',
    event_from: instant,
    event_to: instant,
    after: feed.next_cursor,
    types: 'interactions,tags',
    group_by: 'day',
    window: '24h',
    days: '3',
    table: 'interactions',
  });
}

/** Uploads new, unchanged, changed, repeated and failed records of every type. Also uses Idempotency-Keys and dry runs. */
async function uploadEverything(api: Api): Promise<Map<ResourceType, string>> {
  const stored = new Map<ResourceType, string>();
  for (const type of inOrderOfReference()) {
    const fresh = () => newRecord(type, stored);
    const known = fresh();
    const changed = { ...known, updated: '2026-05-05T05:05:05Z' };
    const missing = {
      ...fresh(),
      ...Object.fromEntries(referencesOf(type).map(({ field }) => [field, randomUUID()])),
    };
    const failed = { ...fresh(), is_deleted: 'no' };
    for (const records of [
      [known],
      [known],
      [changed],
      // The sampled ids suggest that every record is new, but three records are not.
      [...Array.from({ length: 40 }, fresh), known, changed, { ...changed, is_deleted: true }],
      [failed, missing],
      [failed, missing],
    ])
      await api.upload(type, records);
    const id = { [idFieldOf(type)]: known[idFieldOf(type)] };
    const wrong = { ...id, is_deleted: 'no' };
    for (const records of [
      [fresh(), { ...id, updated: '2026-05-06T05:05:05Z' }],
      [{ ...id, is_deleted: true }, { ...id, is_deleted: false }, fresh()],
      [wrong, { [idFieldOf(type)]: randomUUID() }],
      [wrong],
    ])
      await api.post(`/v1/data/${type}?mode=merge`, { records });
    stored.set(type, String(known[idFieldOf(type)]));
    await api.post(
      `/v1/data/${type}?dry_run=true`,
      { records: [changed] },
      { 'idempotency-key': randomUUID() },
    );
  }
  // This record fails for two reasons when it is uploaded, and for one reason when it is replayed.
  const tag = newRecord('tags', stored);
  await api.upload('shop-tags', [
    { ...newRecord('shop-tags', stored), shop_id: randomUUID(), tag_id: tag.tag_id },
  ]);
  await api.upload('tags', [tag]);
  const two = { records: Array.from({ length: 1_001 }, () => newRecord('tags', stored)) };
  for (let time = 0; time < 2; time++) await api.post('/v1/data/tags', two, { 'idempotency-key': 'twice' });
  await api.post('/v1/data/tags', { records: [tag] }, { 'idempotency-key': 'twice' });
  // With this many failures, storing the corrected records does not settle their rejections immediately. The service
  // settles a rejection only when its record fails again or is listed.
  const good = Array.from({ length: limits.fewRejectionsMax + 1 }, () => newRecord('tags', stored));
  const bad = good.map((record) => ({ ...record, is_deleted: 'no' }));
  for (const records of [bad, good.slice(0, 2), bad.slice(0, 1), good.slice(0, 1)])
    await api.upload('tags', records);
  await api.get('/v1/rejections?type=tags');
  return stored;
}

/** Opens, uses and ends runs in every way. Returns the id of a run with a failed record. */
async function uploadInRuns(api: Api): Promise<string> {
  const file = (type: string) => ({ name: `${type}.csv`, bytes: 1, sha256: randomHash(), type });
  const open = (name: string, files: readonly object[], more: object = {}) =>
    api.post('/v1/runs', { name, files, ...more }, { 'idempotency-key': name });
  const files = [file('tags'), file('interactions')];
  for (let time = 0; time < 2; time++) await open('nightly', files);
  await open('refused', files);
  const { body: failed } = await open('failed', files, { again: true });
  const { body: run } = await open('nightly', files);
  const records = [newRecord('tags', new Map()), { tag_id: 'no' }];
  await api.post(`/v1/data/tags?run_id=${run.run_id}&file=0&first_record=1`, { records });
  await api.post(`/v1/runs/${run.run_id}/heartbeat`, {});
  await api.post(`/v1/runs/${failed.run_id}/end`, { status: 'failed' });
  for (const status of ['running', 'interrupted', 'finished', 'failed'])
    for (const more of ['', '&name=nightly']) await api.get(`/v1/runs?status=${status}${more}`);
  return run.run_id;
}

function randomHash(): string {
  return randomUUID().replaceAll('-', '').repeat(2);
}

function newRecord(type: ResourceType, stored: ReadonlyMap<ResourceType, string>): TestRecord {
  const references = referencesOf(type).map(({ field, type: to }) => [field, stored.get(to)]);
  return { ...resources[type].example, ...Object.fromEntries(references), [idFieldOf(type)]: randomUUID() };
}

function inOrderOfReference(): ResourceType[] {
  return [...resourceTypes].sort((a, b) => referencesOf(a).length - referencesOf(b).length);
}

/** Records interactions with and without Idempotency-Keys, and with missing references. Returns one interaction's id. */
async function recordInteractions(api: Api, stored: ReadonlyMap<ResourceType, string>): Promise<string> {
  let id = '';
  for (const [item_type, type] of Object.entries(itemTypes)) {
    const sent = {
      ...interactionExample,
      item_type,
      item_id: stored.get(type),
      student_id: stored.get('customers'),
    };
    // The second request finds the references in the cache.
    for (let time = 0; time < 2; time++)
      id = (await api.post('/user-interactions', sent)).body.interaction_id;
    const key = { 'idempotency-key': `${item_type} once` };
    for (let time = 0; time < 2; time++) await api.post('/user-interactions', sent, key);
    const missing = { ...sent, item_id: randomUUID() };
    await api.post('/user-interactions', missing);
    // The second request replaces the rejection. The third has a different body, and replaces the claim on the key.
    const late = { 'idempotency-key': `${item_type} late` };
    for (const city of ['Leeds', 'Leeds', 'York'])
      await api.post('/user-interactions', { ...missing, city }, late);
    const batch = { records: [sent, missing, { ...sent, platform: 'TV' }] };
    for (const query of ['', '?dry_run=true']) await api.post(`/user-interactions/batch${query}`, batch);
    for (let time = 0; time < 2; time++)
      await api.post('/user-interactions/batch', batch, { 'idempotency-key': `${item_type} batch` });
  }
  return id;
}

/**
 * Calls every operation that reads, replays or discards with each parameter and each pair of parameters from its
 * definition. Invalid combinations are refused before a statement is sent.
 */
export async function askEverything(
  api: Api,
  of: typeof operations | typeof adminOperations,
  values: Readonly<Record<string, string>>,
): Promise<void> {
  for (const { method, path, query = {} } of of) {
    if ((method !== 'GET' && !path.startsWith('/v1/rejections')) || path.startsWith('/health/live')) continue;
    const address = path.replace(/\{(\w+)\}/g, (_, name: string) => givenFor(values, name));
    for (const names of combinations(Object.keys(query), 2)) {
      const asked = new URLSearchParams(
        Object.fromEntries(names.map((name) => [name, givenFor(values, name)])),
      );
      const suffix = names.length > 0 ? `?${asked}` : '';
      await api.send(address + suffix, { method });
      if (method === 'GET' && /^(\/v1\/data\/[\w-]+|\/user-interactions)$/.test(path))
        await api.send(address + suffix, { headers: { accept: 'application/x-ndjson' } });
    }
  }
}

function givenFor(values: Readonly<Record<string, string>>, name: string): string {
  const value = values[name] ?? (name.endsWith('_id') ? values.id : undefined);
  if (value === undefined) throw new Error(`no value is known for the parameter ${name}`);
  return value;
}

function combinations(names: readonly string[], most: number): string[][] {
  if (most === 0 || names.length === 0) return [[]];
  const [first = '', ...others] = names;
  return [...combinations(others, most), ...combinations(others, most - 1).map((rest) => [first, ...rest])];
}
