import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AdminServer, patch, startAdminServer } from '../support/admin-server.ts';
import { allPages } from '../support/all-pages.ts';
import { type Api, apiOf } from '../support/api.ts';
import { expectError, uuidV7 } from '../support/expect-error.ts';
import { linesOf } from '../support/lines-of.ts';
import { many } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Tests managing organisations through the admin API. */

const path = '/admin/v1/organisations';
let server: AdminServer;
let admin: Api;
beforeAll(async () => {
  server = await startAdminServer({ REQUESTS_PER_SECOND_MAX: '1000' });
  admin = server.admin;
});
afterAll(() => server.stop());

const asCreated = {
  recommendations_report: false,
  lake: false,
  requests_per_second_max: null,
  interactions_per_second_max: null,
  records_per_second_max: null,
  bytes_in_flight_max: null,
  interactions_kept_days: null,
  receipts_kept_days: null,
  rejections_kept_days: null,
  records_stored_max: null,
  bytes_stored_max: null,
  records_stored: null,
  bytes_stored: null,
};

async function create(slug: string, fields: object = {}) {
  const { status, body } = await admin.post(path, { slug, ...fields });
  expect({ status, body }).toMatchObject({ status: 201 });
  return body;
}

describe('creating one', () => {
  it('returns it, and so does reading it', async () => {
    const before = Date.now();
    const created = await create('acme', { name: 'Acme Student Discounts' });
    expect(created).toEqual({
      organisation_id: expect.stringMatching(uuidV7),
      slug: 'acme',
      name: 'Acme Student Discounts',
      created_at: expect.any(String),
      suspended_at: null,
      deleted_at: null,
      removal: null,
      ...asCreated,
    });
    expect(Date.parse(created.created_at)).toBeGreaterThanOrEqual(before - 1);
    expect(Date.parse(created.created_at)).toBeLessThanOrEqual(Date.now());
    const read = await admin.get(`${path}/acme`);
    expect(read.status).toBe(200);
    expect(read.body).toEqual(created);
  });

  it('uses its slug as its name by default', async () => {
    expect((await create('plain')).name).toBe('plain');
  });

  it('twice is 409, and leaves the first unchanged', async () => {
    const first = await create('twice', { name: 'First' });
    expectError(await admin.post(path, { slug: 'twice', name: 'Second' }), 409);
    expect((await admin.get(`${path}/twice`)).body).toEqual(first);
  });

  it('twice at once creates one', async () => {
    const answers = await Promise.all(many(8, () => admin.post(path, { slug: 'raced' })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, ...many(7, () => 409)]);
  });

  it.each<[object, string[]]>([
    [{}, ['slug']],
    [{ slug: null }, ['slug']],
    [{ slug: 7 }, ['slug']],
    [{ slug: 'With Capitals' }, ['slug']],
    [{ slug: '-hyphen' }, ['slug']],
    [{ slug: 'x'.repeat(64) }, ['slug']],
    [{ slug: 'faulty', name: '' }, ['name']],
    [{ slug: 'faulty', name: 7 }, ['name']],
    [{ slug: 'faulty', name: 'x'.repeat(201) }, ['name']],
    [{ slug: 'faulty', name: 'nul\0' }, ['name']],
    [{ slug: 'faulty', name: 'half \ud800' }, ['name']],
    [{ slug: 'faulty', colour: 'red' }, ['colour']],
    [{ slug: 'faulty', suspended: true }, ['suspended']],
  ])('as %j is 400', async (body, fields) => {
    expectError(await admin.post(path, body), 400, fields);
    expect((await admin.get(`${path}/faulty`)).status).toBe(404);
  });
});

describe('the list', () => {
  it('lists more than a thousand, each once, by slug', async () => {
    await queryDatabase(
      server.databaseUrl,
      `insert into organisations (organisation_id, slug, name)
       select gen_random_uuid(), 'many-' || md5(n::text), 'Many' from generate_series(1, 1205) n`,
    );
    const rows = await queryDatabase<{ slug: string }>(
      server.databaseUrl,
      'select slug from organisations order by slug',
    );
    const slugs = rows.map(({ slug }) => slug);
    for (const [limit, perPage] of [
      ['', 100],
      ['1000', 1_000],
      ['7', 7],
    ] as const) {
      const pages = await allPages<{ slug: string }>(admin, path, 'organisations', limit ? { limit } : {});
      expect(pages.flat().map(({ slug }) => slug)).toEqual(slugs);
      expect(pages.slice(0, -1).every((page) => page.length === perPage)).toBe(true);
    }
  });

  it('has the same details as reading each', async () => {
    const { body } = await admin.get(`${path}?limit=1`);
    expect(body.organisations).toHaveLength(1);
    const { records, last_upload_at, ...listed } = body.organisations[0];
    expect([records, last_upload_at]).toEqual([0, null]);
    expect((await admin.get(`${path}/${listed.slug}`)).body).toEqual(listed);
  });

  it('can be searched by slug and name, ignoring case, page by page', async () => {
    await create('searched-1', { name: 'Ärzte & Söhne 100%' });
    await create('searched-2', { name: 'The SEARCHED one' });
    await create('other-3', { name: 'Searched by its name' });
    const found = async (search: string, limit = '2') =>
      (await allPages<{ slug: string }>(admin, path, 'organisations', { search, limit }))
        .flat()
        .map(({ slug }) => slug);
    expect(await found('SEARCHED')).toEqual(['other-3', 'searched-1', 'searched-2']);
    expect(await found('Ärzte')).toEqual(['searched-1']);
    // The search does not treat these characters as wildcards.
    expect(await found('0%')).toEqual(['searched-1']);
    expect(await found('searched_1')).toEqual([]);
  });

  it.each([
    ['search=', 'search'],
    [`search=${'x'.repeat(64)}`, 'search'],
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=', 'limit'],
    ['colour=red', 'colour'],
    ['cursor=%00', 'cursor'],
    ['limit=1&limit=2', 'limit'],
  ])('with %s is 400', async (query, field) => {
    expectError(await admin.get(`${path}?${query}`), 400, [field]);
  });
});

describe('an unknown one', () => {
  it('is 404', async () => {
    for (const slug of ['nobody', 'x'.repeat(200), '%00', 'With%20Space', "'--"]) {
      expectError(await admin.get(`${path}/${slug}`), 404);
      expectError(await patch(admin, `${path}/${slug}`, { name: 'Somebody' }), 404);
    }
  });
});

describe('changing one', () => {
  it('changes only the given fields', async () => {
    const created = await create('changed', { name: 'Before' });
    const change = async (fields: object) => {
      const { status, body } = await patch(admin, `${path}/changed`, fields);
      expect(status).toBe(200);
      expect((await admin.get(`${path}/changed`)).body).toEqual(body);
      return body;
    };
    expect(await change({ name: 'After' })).toEqual({ ...created, name: 'After' });
    const limited = { requests_per_second_max: 7, records_per_second_max: 5_000 };
    expect(await change(limited)).toEqual({ ...created, name: 'After', ...limited });
    expect(await change({ requests_per_second_max: null, bytes_in_flight_max: 99_999_999 })).toEqual({
      ...created,
      name: 'After',
      records_per_second_max: 5_000,
      bytes_in_flight_max: 99_999_999,
    });
    expect(await change({ interactions_per_second_max: 9, recommendations_report: true })).toMatchObject({
      interactions_per_second_max: 9,
      recommendations_report: true,
    });
    expect(await change({ recommendations_report: false })).toMatchObject({ recommendations_report: false });
    expect(await change({ lake: true })).toMatchObject({ lake: true });
    expect(await change({ lake: false })).toMatchObject({ lake: false });
    const kept = { interactions_kept_days: 90, receipts_kept_days: 30, rejections_kept_days: 1 };
    expect(await change(kept)).toMatchObject(kept);
    expect(await change({ receipts_kept_days: null })).toMatchObject({ ...kept, receipts_kept_days: null });
    const quotas = { records_stored_max: 10 ** 12, bytes_stored_max: Number.MAX_SAFE_INTEGER };
    expect(await change(quotas)).toMatchObject(quotas);
    const none = { records_stored_max: null, bytes_stored_max: null };
    expect(await change(none)).toMatchObject(none);
  });

  it('suspends and resumes it, which takes effect for its keys within seconds', async () => {
    await create('paused');
    const issued = await admin.post('/admin/v1/keys', { organisation: 'paused' });
    const api = apiOf(server.url, issued.body.key);
    const status = async () => (await api.get('/v1/data')).status;
    expect(await status()).toBe(200);
    const suspended = (await patch(admin, `${path}/paused`, { suspended: true })).body;
    expect(Math.abs(Date.parse(suspended.suspended_at) - Date.now())).toBeLessThan(60_000);
    await expect.poll(status).toBe(403);
    // Suspending the organisation again changes nothing, and changing its name does not resume it.
    expect((await patch(admin, `${path}/paused`, { suspended: true })).body).toEqual(suspended);
    expect((await patch(admin, `${path}/paused`, { name: 'Paused' })).body).toEqual({
      ...suspended,
      name: 'Paused',
    });
    expect((await patch(admin, `${path}/paused`, { suspended: false })).body.suspended_at).toBeNull();
    await expect.poll(status).toBe(200);
  });

  it('limits it, which takes effect within seconds', async () => {
    await create('limited');
    const issued = await admin.post('/admin/v1/keys', { organisation: 'limited' });
    const api = apiOf(server.url, issued.body.key);
    const policy = async () => (await api.get('/v1/data')).headers.get('ratelimit-policy');
    expect(await policy()).toBe('"requests";q=2000;w=2');
    await patch(admin, `${path}/limited`, { requests_per_second_max: 5 });
    await expect.poll(policy).toBe('"requests";q=10;w=2');
    await patch(admin, `${path}/limited`, { requests_per_second_max: null });
    await expect.poll(policy).toBe('"requests";q=2000;w=2');
  });

  it.each<[object, string[]]>([
    [{ name: '' }, ['name']],
    [{ name: null }, ['name']],
    [{ suspended: 'yes' }, ['suspended']],
    [{ suspended: null }, ['suspended']],
    [{ requests_per_second_max: 0 }, ['requests_per_second_max']],
    [{ requests_per_second_max: 1.5 }, ['requests_per_second_max']],
    [{ interactions_per_second_max: '9' }, ['interactions_per_second_max']],
    [{ records_per_second_max: -1 }, ['records_per_second_max']],
    [{ bytes_in_flight_max: true }, ['bytes_in_flight_max']],
    [{ recommendations_report: 'on' }, ['recommendations_report']],
    [{ lake: 'on' }, ['lake']],
    [{ interactions_kept_days: 0 }, ['interactions_kept_days']],
    [{ interactions_kept_days: '90d' }, ['interactions_kept_days']],
    [{ interactions_kept_days: 3_651 }, ['interactions_kept_days']],
    // The service keeps receipts and rejections for 30 days, and an organisation cannot choose a longer time.
    [{ receipts_kept_days: 31, rejections_kept_days: 31 }, ['receipts_kept_days', 'rejections_kept_days']],
    [{ transactions_kept_days: 30 }, ['transactions_kept_days']],
    [{ bytes_in_flight_max: 1e15 }, ['bytes_in_flight_max']],
    [{ records_per_second_max: 2 ** 31 }, ['records_per_second_max']],
    [{ records_stored_max: 0 }, ['records_stored_max']],
    [{ bytes_stored_max: 2 ** 53 }, ['bytes_stored_max']],
    [{ bytes_stored: 1 }, ['bytes_stored']],
    [{ name: 'nul\0' }, ['name']],
    [{ slug: 'renamed' }, ['slug']],
    [{ name: 'Fine', colour: 'red' }, ['colour']],
  ])('to %j is 400 and changes nothing', async (body, fields) => {
    if ((await admin.get(`${path}/steady`)).status === 404) await create('steady');
    const before = (await admin.get(`${path}/steady`)).body;
    expectError(await patch(admin, `${path}/steady`, body), 400, fields);
    expect((await admin.get(`${path}/steady`)).body).toEqual(before);
  });

  it('names every wrong field', async () => {
    const expected = {
      name: 'wrong_type',
      suspended: 'wrong_type',
      requests_per_second_max: 'wrong_type',
      records_per_second_max: 'out_of_range',
    };
    const body = { name: 7, suspended: 1, requests_per_second_max: '5', records_per_second_max: 0.5 };
    const answer = await patch(admin, `${path}/acme`, body);
    expectError(
      answer,
      400,
      answer.body.details?.map(({ field }: { field: string }) => field),
    );
    const codes = answer.body.details.map(({ field, code }: { field: string; code: string }) => [
      field,
      code,
    ]);
    expect(Object.fromEntries(codes)).toEqual(expected);
  });
});

it('every act is in the audit log, with its request id', async () => {
  const requestIds: (string | null)[] = [];
  const act = async (answer: Promise<{ status: number; headers: Headers }>) => {
    const { status, headers } = await answer;
    expect(status).toBeLessThan(300);
    requestIds.push(headers.get('x-request-id'));
  };
  await act(admin.post(path, { slug: 'watched' }));
  await act(patch(admin, `${path}/watched`, { suspended: true }));
  await act(patch(admin, `${path}/watched`, { suspended: false }));
  await act(patch(admin, `${path}/watched`, { records_per_second_max: 5_000 }));
  await act(patch(admin, `${path}/watched`, { recommendations_report: true }));
  await act(patch(admin, `${path}/watched`, { recommendations_report: true }));
  await act(patch(admin, `${path}/watched`, { interactions_kept_days: 90 }));
  await act(patch(admin, `${path}/watched`, { lake: true }));
  const entries: { act: string; actor: string; request_id: string }[] = linesOf(
    await server.run('audit', '--organisation', 'watched', '--json'),
  );
  expect(entries.toReversed().map(({ act, actor, request_id }) => [act, actor, request_id])).toEqual([
    ['organisation.create', 'token:operator', requestIds[0]],
    ['organisation.suspend', 'token:operator', requestIds[1]],
    ['organisation.resume', 'token:operator', requestIds[2]],
    ['organisation.limit', 'token:operator', requestIds[3]],
    ['organisation.report', 'token:operator', requestIds[4]],
    ['organisation.retention', 'token:operator', requestIds[6]],
    ['organisation.lake', 'token:operator', requestIds[7]],
  ]);
});
