// @module-tag full

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { expectError } from '../support/expect-error.ts';
import { inOneWindow, nextWindow } from '../support/in-one-window.ts';
import { many, newTag } from '../support/new-records.ts';
import { runCommand } from '../support/run-command.ts';

/** Each organisation can have its own limits, and every response includes the remaining quota. */

let server: AdminServer;
beforeAll(async () => {
  server = await startAdminServer({
    REQUESTS_PER_SECOND_MAX: '1000',
    INTERACTIONS_PER_SECOND_MAX: '2000',
    RECORDS_PER_SECOND_MAX: '3000',
    RECORDS_PER_REQUEST_MAX: '200',
    BYTES_IN_FLIGHT_PER_ORGANISATION_MAX: '201326592',
  });
});
afterAll(() => server.stop());

const limit = async (slug: string, ...flags: string[]) =>
  JSON.parse(await server.run('organisations', 'limit', slug, ...flags, '--json'));
async function newApi(slug: string): Promise<Api> {
  await server.admin.post('/admin/v1/organisations', { slug });
  const { body } = await server.admin.post('/admin/v1/keys', { organisation: slug });
  return apiOf(server.url, body.key);
}
const tags = (count: number) => many(count, () => newTag());
const policyOf = async (api: Api) => (await api.get('/user-interactions')).headers.get('ratelimit-policy');

function interactionWith(tagId: string) {
  return { interaction_type: 'SHARE', item_type: 'TAG', item_id: tagId, event_timestamp: 1 };
}

function expectTooMany(answer: Answer, what: string): void {
  expectError(answer, 429);
  expect(answer.body.message).toContain(what);
  expect(answer.body.message).toMatch(/again/);
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(Number(answer.headers.get('retry-after'))).toBeLessThanOrEqual(2);
  expect(answer.headers.get('ratelimit')).toMatch(new RegExp(`"${what}";r=\\d+;t=[12](,|$)`));
}

describe('the headers', () => {
  it('of a request have the remaining requests of the window', async () => {
    const { headers } = await (await newApi('headed')).get('/user-interactions');
    expect(headers.get('ratelimit-policy')).toBe('"requests";q=2000;w=2');
    expect(headers.get('ratelimit')).toMatch(/^"requests";r=1999;t=[12]$/);
  });

  it('of an upload have requests and records', async () => {
    const { headers } = await (await newApi('listed')).upload('tags', tags(30));
    expect(headers.get('ratelimit-policy')).toBe('"requests";q=2000;w=2, "records";q=6000;w=2');
    expect(headers.get('ratelimit')).toMatch(/^"requests";r=1999;t=[12], "records";r=5970;t=[12]$/);
  });

  it('of a dry run are the same, because it counts the same', async () => {
    const api = await newApi('dry');
    const { headers } = await api.post('/v1/data/tags?dry_run=true', { records: tags(30) });
    expect(headers.get('ratelimit')).toMatch(/^"requests";r=1999;t=[12], "records";r=5970;t=[12]$/);
  });

  it('of an interaction have interactions, which are counted separately from requests', async () => {
    const api = await newApi('apart');
    const tag = newTag();
    await api.upload('tags', [tag]);
    await nextWindow();
    const { status, headers } = await api.post('/user-interactions', interactionWith(tag.tag_id));
    expect(status).toBe(201);
    expect(headers.get('ratelimit-policy')).toBe('"interactions";q=4000;w=2');
    expect(headers.get('ratelimit')).toMatch(/^"interactions";r=3999;t=[12]$/);
    const read = await api.get('/user-interactions');
    expect(read.headers.get('ratelimit')).toMatch(/^"requests";r=1999;t=[12]$/);
  });
});

describe('a limit of one organisation', () => {
  it('for requests takes effect within seconds, only for this organisation, until it is the default again', async () => {
    const [api, other] = [await newApi('slow'), await newApi('other')];
    expect(await policyOf(api)).toBe('"requests";q=2000;w=2');
    await limit('slow', '--requests-per-second', '5');
    await expect.poll(() => policyOf(api)).toBe('"requests";q=10;w=2');
    await nextWindow();
    const answers = await inOneWindow(() => Promise.all(many(14, () => api.get('/user-interactions'))));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    expectTooMany(answers.find(({ status }) => status !== 200)!, 'requests');
    expect(await policyOf(other)).toBe('"requests";q=2000;w=2');

    await limit('slow', '--requests-per-second', 'default');
    await expect.poll(() => policyOf(api)).toBe('"requests";q=2000;w=2');
    await nextWindow();
    const more = await Promise.all(many(14, () => api.get('/user-interactions')));
    expect(more.filter(({ status }) => status === 200)).toHaveLength(14);
  });

  it('may be above the default', async () => {
    const api = await newApi('fast');
    await limit('fast', '--requests-per-second', '1500');
    await expect.poll(() => policyOf(api)).toBe('"requests";q=3000;w=2');
  });

  it('for records takes effect, is named when it is used up, and a refused upload stores nothing', async () => {
    const api = await newApi('small');
    await limit('small', '--records-per-second', '100');
    const policy = async () => (await api.upload('tags', [newTag()])).headers.get('ratelimit-policy');
    await expect.poll(policy).toBe('"requests";q=2000;w=2, "records";q=200;w=2');
    await nextWindow();
    let refused = tags(60);
    const [taken, tooMany] = await inOneWindow(async () => {
      refused = tags(60);
      return [await api.upload('tags', tags(150)), await api.upload('tags', refused)];
    });
    expect(taken!.status).toBe(200);
    expectTooMany(tooMany!, 'records');
    expect((await api.get(`/v1/data/tags/${refused[0]!.tag_id}`)).status).toBe(404);
    await nextWindow();
    expect((await api.batch('tags', refused)).counts).toMatchObject({ created: 60 });
  });

  it('for interactions takes effect, and does not affect requests', async () => {
    const api = await newApi('quiet');
    const tag = newTag();
    await api.upload('tags', [tag]);
    await limit('quiet', '--interactions-per-second', '10');
    const record = () => api.post('/user-interactions', interactionWith(tag.tag_id));
    const policy = async () => (await record()).headers.get('ratelimit-policy');
    await expect.poll(policy).toBe('"interactions";q=20;w=2');
    await nextWindow();
    const answers = await inOneWindow(() => Promise.all(many(24, record)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
    expectTooMany(answers.find(({ status }) => status !== 201)!, 'interactions');
    expect((await api.get('/user-interactions')).status).toBe(200);
  });

  it('counts the requests of all its keys together', async () => {
    const apis = [await newApi('several'), await newApi('several')];
    await limit('several', '--requests-per-second', '5');
    for (const api of apis) await expect.poll(() => policyOf(api)).toBe('"requests";q=10;w=2');
    await nextWindow();
    const answers = await inOneWindow(() =>
      Promise.all(many(20, (at) => apis[at % 2]!.get('/user-interactions'))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
  });
});

describe('organisations limit', () => {
  it('changes the given limits, leaves the others unchanged, and shows them all', async () => {
    await newApi('shown');
    const all = (shown: object) => ({
      requests_per_second_max: null,
      interactions_per_second_max: null,
      records_per_second_max: null,
      bytes_in_flight_max: null,
      ...shown,
    });
    expect(await limit('shown')).toMatchObject(all({}));
    expect(await limit('shown', '--requests-per-second', '7')).toMatchObject(
      all({ requests_per_second_max: 7 }),
    );
    expect(
      await limit('shown', '--records-per-second', '5000', '--bytes-in-flight', '99999999'),
    ).toMatchObject(
      all({ requests_per_second_max: 7, records_per_second_max: 5_000, bytes_in_flight_max: 99_999_999 }),
    );
    expect(
      await limit('shown', '--requests-per-second', 'default', '--interactions-per-second', '9'),
    ).toMatchObject(
      all({ interactions_per_second_max: 9, records_per_second_max: 5_000, bytes_in_flight_max: 99_999_999 }),
    );
    expect(await server.run('organisations', 'limit', 'shown')).toBe(
      [
        'LIMIT\tVALUE\tFROM',
        'requests-per-second\tdefault\tREQUESTS_PER_SECOND_MAX of the service',
        'interactions-per-second\t9\tset for this organisation',
        'records-per-second\t5000\tset for this organisation',
        'bytes-in-flight\t99999999\tset for this organisation',
        'records-stored\tnone\tdefault',
        'bytes-stored\tnone\tdefault\n',
      ].join('\n'),
    );
    // The settings of the command may differ from those of the service, so they are not shown.
    const elsewhere = { DATABASE_URL: server.databaseUrl, REQUESTS_PER_SECOND_MAX: '7' };
    const { stdout } = await runCommand(['organisations', 'limit', 'shown'], elsewhere);
    expect(stdout).toContain('requests-per-second\tdefault\tREQUESTS_PER_SECOND_MAX of the service');
  });

  it.each([
    ['shown', '--requests-per-second', '0'],
    ['shown', '--requests-per-second', '1.5'],
    ['shown', '--records-per-second', 'many'],
    ['shown', '--interactions-per-second=-5'],
    ['shown', '--bytes-in-flight', '1GB'],
    ['shown', '--bytes-stored', '9007199254740992'],
    ['shown', '--records-stored', '0'],
    ['shown', '--requests', '5'],
    ['nobody', '--requests-per-second', '5'],
    [],
  ])('does not accept %j', async (...args) => {
    const shown = async () => (await server.admin.get('/admin/v1/organisations/shown')).body;
    const before = await shown();
    const command = ['organisations', 'limit', ...args];
    const { exitCode, stdout, stderr } = await runCommand(command, { DATABASE_URL: server.databaseUrl });
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(/per-second|bytes-in-flight|-stored|requests|"nobody"|slug/);
    expect(await shown()).toEqual(before);
  });
});

it('a request that is refused for its rate is not counted as one that passed', async () => {
  const api = await newApi('patient');
  await limit('patient', '--records-per-second', '100');
  const policy = async () =>
    (await api.upload('tags', [newTag()])).headers.get('ratelimit-policy')?.includes('q=200;');
  await expect.poll(policy).toBe(true);
  await nextWindow();
  const tryOnce = async () => (await api.upload('tags', tags(150))).status;
  const status = await inOneWindow(async () => {
    await api.upload('tags', tags(190));
    return tryOnce();
  });
  expect(status).toBe(429);
  // Refused attempts do not restart the window. Otherwise the window would never end.
  await expect.poll(tryOnce, { interval: 50 }).toBe(200);
});
