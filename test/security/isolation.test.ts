import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { idFieldOf, type TestRecord } from '../acceptance/record-types.ts';
import { allPages } from '../support/all-pages.ts';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { readFeed } from '../support/change-feed.ts';
import { describedParameters } from '../support/described-parameters.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';
import { listRejections, type Rejection, summariseRejections } from '../support/rejections.ts';
import { lake, lakeRules, withLakes } from './foreign-lake.ts';
import { peopleRules } from './foreign-people.ts';
import { runRules } from './foreign-runs.ts';
import {
  attackersDay,
  countedReports,
  foreign,
  interactionWith,
  recordOf,
  referencesOf,
  rowsOfVictim,
  shared,
  storeAttackers,
  storeVictims,
  taken,
  types,
  type Victims,
  victimsWord,
} from './two-organisations.ts';

// Two organisations share a database, and one of them tries every operation on the other's data. The victim acts only
// before the tests start. After each write, and at the end, all of the victim's rows must be unchanged.

interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'path' | 'header';
}

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
}

const description = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
const { paths } = description;
const operations: Operation[] = Object.keys(paths).flatMap((path) =>
  Object.keys(paths[path]).map((method) => {
    const parameters = describedParameters(description, paths[path][method]);
    const at = path.replace('{table}', 'interactions');
    return { id: paths[path][method].operationId, method: method.toUpperCase(), path: at, parameters };
  }),
);
let server: BuiltServer;
let victim: Api;
let attacker: Api;
let [attackersKey, victimId] = ['', ''];
let victims: Victims;
let rowsBefore: Record<string, string[]>;
let overviewBefore: unknown;

beforeAll(async () => {
  server = await startBuiltServer({ LAKE_URL: lake.url });
  const victimsKey = await server.createKey('victim', ...everyPermission);
  attackersKey = await server.createKey('attacker', ...everyPermission);
  for (const slug of ['victim', 'attacker'])
    for (const part of ['set-report', 'set-lake']) await server.run('organisations', part, slug, 'on');
  [victim, attacker] = [apiOf(server.url, victimsKey), apiOf(server.url, attackersKey)];
  const [row] = await queryDatabase<{ organisation_id: string }>(
    server.databaseUrl,
    `select organisation_id from organisations where slug = 'victim'`,
  );
  victimId = row!.organisation_id;
  const stored = await storeVictims(victim, server.databaseUrl);
  victims = { ...stored, own: [...stored.own, victimId, victimsKey.split('_')[1]!] };
  await storeAttackers(attacker);
  victims = await withLakes(victims, server.databaseUrl, { victim, attacker });
  rowsBefore = await rowsOfVictim(server.databaseUrl, victimId);
  overviewBefore = await overviewOf(victim);
});

afterAll(() => expectVictimUntouched().finally(() => server.stop().finally(lake.remove)));

async function expectVictimUntouched(): Promise<void> {
  expect(await rowsOfVictim(server.databaseUrl, victimId)).toEqual(rowsBefore);
  expect(await overviewOf(victim)).toEqual(overviewBefore);
}

type Question = { method?: string; path: string; body?: unknown; headers?: Record<string, string> };

/** Returns the response that the attacker gets: status, headers and bytes, without values that differ for every request. */
async function askAsAttacker(question: Question): Promise<string> {
  const { status, headers, text } = await send(question);
  const asked = decodeURIComponent(JSON.stringify(question));
  const { method = 'GET', path } = question;
  for (const own of victims.own.filter((one) => !asked.includes(one)))
    expect(text, `an answer to ${method} ${path}`).not.toContain(own);
  const requestId = headers.get('x-request-id')!;
  const told = [...headers].filter(
    ([name]) => !/^(date|x-request-id|idempotency-key|ratelimit.*)$/.test(name),
  );
  return `${status} ${JSON.stringify(told)} ${text}`
    .replaceAll(requestId, '<request>')
    .replace(/"(batch_id|as_of|interaction_ids)":(\["[^"]+"|"[^"]+"|null)/g, '"$1":"<new>"');
}

async function send({ method = 'GET', path, body, headers = {} }: Question) {
  const answer = await fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${attackersKey}`,
      'accept-encoding': 'identity', // The compressed size depends on the time in the answer.
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

/** Exports a type as the attacker, and returns the records. */
async function exportOf(type: string): Promise<TestRecord[]> {
  const headers = { accept: 'application/x-ndjson' };
  const { text } = await send({ path: `/v1/data/${type}?include_deleted=true`, headers });
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Returns the nearest unused value of the same length, which must get the same response as the victim's value. */
const neighbourOf = (value: string) => value.slice(0, -1) + (value.endsWith('0') ? '1' : '0');

/** Sends the request with the victim's value and with an unused value. The responses may differ only in the value itself. */
async function expectNoDifference(questionOf: (value: string) => Question, value: string): Promise<string> {
  const answers: string[] = [];
  for (const one of [value, neighbourOf(value)])
    answers.push((await askAsAttacker(questionOf(one))).replaceAll(one, '<asked>'));
  expect(answers[0]).toBe(answers[1]);
  return answers[0]!;
}

/** Parameters that do not identify stored data. */
const neutral = new Set(
  `dry_run mode stored_since include_deleted limit type status from to event_from event_to code field interaction_type item_type source types
   window group_by days table name file first_record Range If-Range Idempotency-Key`.split(/\s+/),
);

describe('identifying something of another organisation gets the same answer as identifying nothing', () => {
  const asked = operations.flatMap((operation) =>
    operation.parameters
      // Uploads without a body are refused before their run is looked up: the rule of open-run tries that.
      .filter(({ name }) => !neutral.has(name) && !(name === 'run_id' && operation.id.startsWith('upload-')))
      .map((parameter) => [operation.id, parameter.name, operation, parameter] as const),
  );

  it('there is a value of the victim’s for every parameter of every operation', () => {
    const missing = asked.filter(([, name]) => victims.values[name] === undefined);
    const advice = 'add a value of the victim’s to `values`, or the name to `neutral`';
    expect(missing.map(([id, name]) => `${id} takes ${name}: ${advice}`)).toEqual([]);
  });

  it.each(asked)('%s by %s', async (id, name, { method, path }, parameter) => {
    const ofType = typeOf(id);
    const [signed, filter = ''] = (name === 'cursor' && victims.signed[id]) || [];
    const value = signed ?? (name === 'cursor' && ofType ? foreign[ofType]! : victims.values[name]!);
    const questionOf = (one: string, more = ''): Question => ({
      method,
      path:
        parameter.in === 'path'
          ? path.replace(`{${name}}`, one)
          : `${path}?${name}=${encodeURIComponent(one)}${filter}${more}`,
    });
    const answer = await expectNoDifference(questionOf, value);
    if (parameter.in === 'path') expect(answer).toMatch(/^404 /);
    // Another organisation's signed cursor is refused.
    else expect(answer).toMatch(name === 'after' || signed ? /^400 / : /^200 /);
    if (!id.startsWith('list-') || !ofType) return;
    const headers = { accept: 'application/x-ndjson' };
    const lines = await expectNoDifference((one) => ({ ...questionOf(one), headers }), value);
    expect(lines).toContain('application/x-ndjson');
    expect(await expectNoDifference((one) => questionOf(one, '&include_deleted=true'), value)).toMatch(
      /^200 /,
    );
  });
});

/** Returns an operation's record type, such as shop-tags for list-shop-tags. */
function typeOf(id: string): string | undefined {
  const [, type = ''] = /^(?:upload|list|get)-(.+)$/.exec(id) ?? [];
  return types.includes(type) ? type : undefined;
}

const rules: Record<string, (operation: Operation) => Promise<void>> = {
  'upload-<type>': async ({ id }) => {
    const type = typeOf(id)!;
    await uploadsReferToNothingForeign(type);
    await uploadsTakeForeignIds(type);
    await uploadsKnowNoForeignIdempotencyKey(type);
  },
  'list-<type>': async ({ id, path }) => {
    const type = typeOf(id)!;
    const query = { include_deleted: 'true', stored_since: '1970-01-01T00:00:00Z', limit: '1' };
    const pages = await allPages<TestRecord>(attacker, path, 'records', query);
    const own = pages.flat();
    expect(own.map((record) => record[idFieldOf(type)])).toContain(shared[type]);
    expect(own.filter(({ created }) => created !== `${attackersDay}T00:00:00Z`)).toEqual([]);
    expect(await exportOf(type)).toEqual(own);
    await askAsAttacker({ path: `${path}?include_deleted=true&limit=1000` });
  },
  'get-<type>': async ({ id, path }) => {
    const { status, body } = await attacker.get(path.replace(/\{\w+\}/, shared[typeOf(id)!]!));
    expect({ status, body }).toMatchObject({ status: 200, body: { created: `${attackersDay}T00:00:00Z` } });
    expect(JSON.stringify(body)).not.toContain(victimsWord);
  },
  'get-overview': async () => {
    const overview = await overviewOf(attacker);
    const open = await listRejections(attacker, { limit: '1000' });
    for (const type of types) {
      const counts = {
        records: (await exportOf(type)).length,
        open_rejections: open.filter((one) => one.type === type).length,
      };
      expect(overview[type]).toMatchObject(counts);
    }
    expect(overview).not.toEqual(overviewBefore);
  },
  'list-changes': async ({ path }) => {
    const { changes, cursor } = await readFeed(attacker, { query: 'limit=3' });
    const told = changes.map(({ type, id }) => `${type} ${id}`);
    expect(told).toEqual(expect.arrayContaining(types.map((type) => `${type} ${shared[type]}`)));
    await askAsAttacker({ path: `${path}?limit=1000` });
    expect((await victim.get(`${path}?after=${cursor}`)).status).toBe(400);
  },
  'report-recommendations': async ({ path }) => {
    for (const asked of await countedReports(victim, attacker, path))
      expect(await askAsAttacker({ path: asked })).toMatch(/^200 /);
  },
  'list-requests': async ({ path }) => {
    const pages = await allPages<{ key_id: string }>(attacker, path, 'requests', { limit: '10' });
    expect(pages.length).toBeGreaterThan(1);
    expect([...new Set(pages.flat().map(({ key_id }) => key_id))]).toEqual([attackersKey.split('_')[1]]);
    await askAsAttacker({ path: `${path}?limit=100` });
  },
  'count-requests': async ({ path }) => void (await askAsAttacker({ path })),
  'get-request': async ({ path }) => {
    const { body } = await attacker.get('/v1/requests?limit=1');
    await askAsAttacker({ path: path.replace(/\{\w+\}/, body.requests[0].request_id) });
  },
  'list-rejections': async ({ path }) => {
    const own = (await allPages<Rejection>(attacker, path, 'rejections', { limit: '10' })).flat();
    expect(own.length).toBeGreaterThanOrEqual(types.length);
    expect(own.filter(({ rejection_id }) => victims.own.includes(rejection_id))).toEqual([]);
    await askAsAttacker({ path: `${path}?limit=1000` });
  },
  'summarise-rejections': async ({ path }) => {
    const own = await listRejections(attacker, { limit: '1000', code: 'wrong_type' });
    const groups = await summariseRejections(attacker, { code: 'wrong_type' });
    expect(groups.reduce((sum, { count }) => sum + count, 0)).toBe(own.length);
    await askAsAttacker({ path });
  },
  'replay-rejections': async ({ path }) => {
    const own = await listRejections(attacker, { limit: '1000' });
    const { body } = await attacker.send(path, { method: 'POST' });
    const tried = body.batches.flatMap(
      ({ data }: { data: { counts: { received: number } } }) => data.counts.received,
    );
    expect(tried.reduce((sum: number, count: number) => sum + count, 0)).toBe(own.length);
    expect(body.remaining).toBe(own.length);
    await askAsAttacker({ method: 'POST', path });
  },
  'discard-rejections': async ({ path }) => {
    const own = await listRejections(attacker, { limit: '1000' });
    const { body } = await attacker.send(path, { method: 'DELETE' });
    expect(body).toEqual({ discarded: own.length, has_more: false });
    expect(await listRejections(victim)).toHaveLength(types.length + 2);
  },
  'record-interaction': async ({ path }) => {
    const post = (body: object, headers = {}) => ({ method: 'POST', path, body, headers });
    const item = (id: string) => post(interactionWith(id));
    const student = (student_id: string) => post(interactionWith(shared.shops!, { student_id }));
    expect(await expectNoDifference(item, foreign.shops!)).toMatch(/^400 .*reference_not_found/);
    expect(await expectNoDifference(student, foreign.customers!)).toMatch(/^400 .*reference_not_found/);
    // The victim used this Idempotency-Key with another body. If the attacker could see it, the response would be a 422.
    const key = { 'idempotency-key': victimsWord };
    const { status, body } = await attacker.post(path, interactionWith(shared.shops!), key);
    expect({ status, body }).toMatchObject({ status: 201, body: { user_id: null } });
    expect(victims.own).not.toContain(body.interaction_id);
  },
  'upload-interactions': async ({ path }) => {
    const post = (record: object, query = '', headers = {}): Question => ({
      method: 'POST',
      path: path + query,
      body: { records: [record] },
      headers,
    });
    for (const query of ['?dry_run=true', '']) {
      const item = (id: string) => post(interactionWith(id), query);
      const student = (student_id: string) => post(interactionWith(shared.shops!, { student_id }), query);
      expect(await expectNoDifference(item, foreign.shops!)).toMatch(/^400 .*reference_not_found/);
      expect(await expectNoDifference(student, foreign.customers!)).toMatch(/^400 .*reference_not_found/);
    }
    // The victim used this Idempotency-Key with another body. If the attacker could see it, the response would be a 422.
    const key = (value: string) => post(interactionWith(shared.shops!), '', { 'idempotency-key': value });
    const answer = await expectNoDifference(key, `${victimsWord} interactions`);
    expect(answer).toMatch(/^200 .*"created":1,/);
  },
  'list-interactions': async ({ path }) => {
    const own = (await allPages<{ user_id: string }>(attacker, path, 'interactions', { limit: '1' })).flat();
    expect(own.length).toBeGreaterThan(0);
    expect(own.filter(({ user_id }) => user_id !== null)).toEqual([]);
    await askAsAttacker({ path });
    const lines = await askAsAttacker({ path, headers: { accept: 'application/x-ndjson' } });
    expect(lines.match(/interaction_id/g)).toHaveLength(own.length);
  },
  'get-interaction': async ({ path }) => {
    const { body } = await attacker.get('/user-interactions?limit=1');
    await askAsAttacker({ path: path.replace(/\{\w+\}/, body.interactions[0].interaction_id) });
  },
  ...peopleRules(() => ({ victim, attacker, anybody: apiOf(server.url), ask: askAsAttacker })),
  ...runRules(() => ({ attacker, foreign: victims.values.run_id!, ask: askAsAttacker })),
  ...lakeRules(() => ({ victim, attacker, victimId, ask: askAsAttacker })),
  'health-live': saysTheSameToAll,
  'health-ready': saysTheSameToAll,
};

async function saysTheSameToAll({ path }: Operation): Promise<void> {
  // If the machine stalls for two seconds, the process is briefly not ready.
  for (const api of [victim, attacker, apiOf(server.url)])
    await expect.poll(async () => (await api.get(path)).body).toEqual({ status: 'ok' });
}

async function uploadsReferToNothingForeign(type: string): Promise<void> {
  const id = randomUUID();
  for (const reference of new Set(referencesOf(type))) {
    for (const query of ['?dry_run=true', '']) {
      const questionOf = (value: string): Question => {
        const ids = { ...shared, [reference]: value, [type]: id };
        const records = [recordOf(type, ids, attackersDay, 'word')];
        return { method: 'POST', path: `/v1/data/${type}${query}`, body: { records } };
      };
      const answer = await expectNoDifference(questionOf, foreign[reference]!);
      expect(answer).toMatch(/^400 .*reference_not_found/);
    }
  }
}

/** Uploads an id that only the victim uses. If the victim's record were found, this older one would be stale. */
async function uploadsTakeForeignIds(type: string): Promise<void> {
  const ids = { ...shared, [type]: taken[type]! };
  const record = { ...recordOf(type, ids, attackersDay, 'word'), updated: '2001-01-01T00:00:00Z' };
  const questionOf = (id: string): Question => ({
    method: 'POST',
    path: `/v1/data/${type}`,
    body: { records: [{ ...record, [idFieldOf(type)]: id }] },
  });
  expect(await expectNoDifference(questionOf, taken[type]!)).toMatch(/^200 .*"created":1,/);
}

/** Uploads with the victim's Idempotency-Key and another body. If the attacker could see the key, it would get a 422. */
async function uploadsKnowNoForeignIdempotencyKey(type: string): Promise<void> {
  const records = [recordOf(type, shared, attackersDay, 'word')];
  await attacker.upload(type, records);
  const questionOf = (key: string): Question => ({
    method: 'POST',
    path: `/v1/data/${type}`,
    body: { records },
    headers: { 'idempotency-key': key },
  });
  const answer = await expectNoDifference(questionOf, `${victimsWord} ${type} false`);
  expect(answer).toMatch(/^200 .*"unchanged":1,/);
}

describe('nothing of another organisation is visible, referenced, changed or counted', () => {
  // Writes come after reads, so that the attacker does not read its own data. Operations that end rejections come last.
  const order = ['upload-', 'record-', 'replay-', 'discard-', 'erase-'];
  const placeOf = ({ id }: Operation) => order.findIndex((start) => id.startsWith(start));
  const ordered = operations.toSorted((one, other) => placeOf(one) - placeOf(other));

  it.each(ordered.map((operation) => [operation.id, operation] as const))('by %s', async (id, operation) => {
    const type = typeOf(id);
    const rule = rules[type ? id.replace(new RegExp(`${type}$`), '<type>') : id];
    if (!rule) throw new Error(`openapi.json has ${id}: add to \`rules\` how it is tried on another’s data`);
    await rule(operation);
    if (operation.method !== 'GET') await expectVictimUntouched();
  });

  it('whatever organisation a request claims to mean', async () => {
    const record = recordOf('tags', { tags: randomUUID() }, attackersDay, 'word');
    const headers = {
      'x-organisation': 'victim',
      'x-organisation-id': victimId,
      cookie: `organisation=${victimId}`,
    };
    const records = [{ ...record, organisation_id: victimId, organisation: 'victim' }];
    const { status, body } = await attacker.post('/v1/data/tags', { records }, headers);
    expect([status, body.batches[0].data.counts.created]).toEqual([200, 1]);
    expect((await attacker.get(`/v1/data/tags/${record.tag_id}`, headers)).status).toBe(200);
    expect((await attacker.get(`/v1/data?organisation_id=${victimId}`)).status).toBe(400);
    onTestFinished(async () => expect((await victim.get(`/v1/data/tags/${record.tag_id}`)).status).toBe(404));
  });
});
