import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type AdminServer, startAdminServer } from '../support/admin-server.ts';
import { type Answer, type Api, apiOf } from '../support/api.ts';
import { expectError } from '../support/expect-error.ts';
import { inOneWindow } from '../support/in-one-window.ts';
import { many, newShop } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';
import { rawPost } from '../support/raw-http.ts';
import { listRejections } from '../support/rejections.ts';

/**
 * A browser key is part of a web page, so every visitor has it. It can only record interactions from pages on its
 * origins, within limits per address, and its responses reveal nothing about stored data.
 */

const origin = 'https://shop.example';
const perWindow = 40;
const single = '/user-interactions';
const batch = '/user-interactions/batch';

let server: AdminServer;
let owner: Api;
let key: string;
let keyId: string;
let shop: string;
let student: string;
beforeAll(async () => {
  server = await startAdminServer({
    // This setting lets a test send requests from any address.
    TRUSTED_PROXY: '127.0.0.1',
    BROWSER_INTERACTIONS_PER_SECOND_MAX: String(perWindow / 2),
  });
  const ownersKey = await server.createKey('acme');
  owner = proxied(ownersKey);
  const issued = await server.run(
    ...['keys', 'issue', '--organisation', 'acme', '--json', '--label', 'shop'],
    ...['--browser', '--origin', origin, '--origin', 'http://localhost:3000'],
  );
  ({ key, key_id: keyId } = JSON.parse(issued));
  shop = newShop().shop_id;
  student = randomUUID();
  await owner.upload('shops', [newShop({ shop_id: shop })]);
  expect((await owner.upload('customers', [newCustomer(student)])).status).toBe(200);
  return () => server.stop();
});

/** Returns the API with this key, behind a proxy that terminates HTTPS. */
function proxied(key: string, headers: Record<string, string> = {}): Api {
  const api = apiOf(server.url, key);
  const all = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.1', ...headers };
  return {
    ...api,
    send: (path, init) => api.send(path, { ...init, headers: { ...all, ...init.headers } }),
    post: (path, body, more = {}) => api.post(path, body, { ...all, ...more }),
    get: (path, more = {}) => api.get(path, { ...all, ...more }),
    upload: (type, records) => api.post(`/v1/data/${type}`, { records }, all),
  };
}

let addresses = 0;
/** Returns the API as the shop's web page uses it, from a new address by default. */
const page = (address = `10.1.${++addresses >> 8}.${addresses & 255}`, from: string = origin, with_ = key) =>
  proxied(with_, { origin: from, 'x-forwarded-for': address });

const seen = (fields: object = {}) => ({
  interaction_type: 'SHARE',
  item_type: 'SHOP',
  item_id: shop,
  event_timestamp: 1_700_000_000,
  ...fields,
});

const newCustomer = (customer_id: string) => ({ customer_id, user_id: randomUUID(), region: 'GB' });

const corsOf = ({ headers }: Answer) =>
  [...headers].filter(([name]) => name.startsWith('access-control-')).map(([name]) => name);

const accepted = (received = 1) => ({ received, accepted: received, errors: [], warnings: [] });

describe('its permissions', () => {
  it('records interactions from pages of its origins, which can read the answers', async () => {
    const item_id = newShop().shop_id;
    await owner.upload('shops', [newShop({ shop_id: item_id })]);
    for (const from of [origin, 'http://localhost:3000']) {
      const one = await page(undefined, from).post(single, seen({ item_id }));
      expect({ status: one.status, body: one.body }).toEqual({ status: 202, body: accepted() });
      const more = await page(undefined, from).post(batch, { records: many(3, () => seen({ item_id })) });
      expect({ status: more.status, body: more.body }).toEqual({ status: 202, body: accepted(3) });
      for (const { headers } of [one, more]) {
        expect(headers.get('access-control-allow-origin')).toBe(from);
        expect(headers.get('access-control-expose-headers')).toMatch(/Retry-After/);
      }
    }
    const { body } = await owner.get(`${single}?item_id=${item_id}`);
    expect(body.interactions).toHaveLength(8);
  });

  it('is refused from another origin, and without one', async () => {
    const others = [
      'https://evil.example',
      'http://shop.example',
      `${origin}:8443`,
      `${origin}.evil.example`,
    ];
    for (const from of [...others, 'null', `${origin}, https://evil.example`, origin.toUpperCase()]) {
      for (const path of [single, batch]) {
        const answer = await page(undefined, from).post(path, seen());
        expectError(answer, 403);
        expect(answer.body.code).toBe('origin_not_allowed');
        expect(corsOf(answer)).toEqual([]);
      }
    }
    const answer = await proxied(key).post(single, seen());
    expectError(answer, 403);
    expect(answer.body).toMatchObject({
      code: 'origin_not_allowed',
      message: expect.stringMatching(/origin/),
    });
  });

  it('is refused for every other operation, at no cost to the organisation', async () => {
    const { paths } = JSON.parse(readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'));
    let refused = 0;
    for (const [path, methods] of Object.entries<Record<string, { security?: [] }>>(paths)) {
      for (const [method, { security }] of Object.entries(methods)) {
        if (security || (method === 'post' && [single, batch].includes(path))) continue;
        const url = path.replace(/\{\w+\}/, randomUUID());
        const answer = await page().send(url, { method: method.toUpperCase() });
        expectError(answer, 403);
        expect(answer.body.code).toBe('missing_permission');
        expect(answer.headers.get('ratelimit')).toBeNull();
        expect(corsOf(answer)).toEqual([]);
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(40);
    const nowhere = await page().get('/nowhere');
    expectError(nowhere, 404);
    expect(nowhere.headers.get('ratelimit')).toBeNull();
  });

  it('preflights of its two operations are answered and cached, and no others', async () => {
    const asked = { origin, 'access-control-request-method': 'POST' };
    const anyone = { 'x-forwarded-proto': 'https', ...asked };
    const ask = (path: string, headers: Record<string, string> = anyone) =>
      apiOf(server.url).send(path, { method: 'OPTIONS', headers });
    for (const path of [single, batch]) {
      const { status, headers, body } = await ask(path);
      expect({ status, body }).toEqual({ status: 204, body: '' });
      expect(headers.get('access-control-allow-origin')).toBe('*');
      expect(headers.get('access-control-allow-methods')).toBe('POST');
      expect(headers.get('access-control-allow-headers')).toMatch(/authorization.*idempotency-key/);
      expect(Number(headers.get('access-control-max-age'))).toBeGreaterThan(600);
      expectError(await ask(path, asked), 403);
    }
    for (const path of [
      '/v1/data/shops',
      `${single}/${randomUUID()}`,
      '/v1/requests',
      '/health/ready',
      '/',
    ]) {
      const answer = await ask(path);
      expect(answer.status).toBeGreaterThanOrEqual(400);
      expect(corsOf(answer)).toEqual([]);
    }
    // Without the preflight headers, OPTIONS is an ordinary method that needs a key.
    expectError(await ask(single, { 'x-forwarded-proto': 'https', origin }), 401);
    const plain = await owner.send(single, { method: 'OPTIONS', headers: { origin } });
    expectError(plain, 405);
    expect(corsOf(plain)).toEqual([]);
  });

  it('an ordinary key has no CORS, and answers as before', async () => {
    const headers = { origin };
    const [records, wrong] = [{ records: [seen()] }, {}];
    expect(corsOf(await owner.post(batch, records, headers))).toEqual([]);
    expect(corsOf(await owner.post(single, wrong, headers))).toEqual([]);
    expect(corsOf(await owner.get('/v1/data', headers))).toEqual([]);
    expect((await owner.post(single, seen(), headers)).status).toBe(201);
  });
});

describe('the limit of an address', () => {
  const send = (api: Api, count: number) => Promise.all(many(count, () => api.post(single, seen())));
  const statuses = (answers: Answer[]) => answers.map(({ status }) => status);

  it('holds; other addresses and other keys of the organisation are served', async () => {
    const [flood, other, ours] = await inOneWindow(async () => {
      const flooding = await send(page('203.0.113.1'), perWindow + 20);
      return [flooding, await send(page(), 2), [await owner.post(single, seen())]];
    });
    expect(statuses(flood!).filter((status) => status === 202)).toHaveLength(perWindow);
    const refused = flood!.find(({ status }) => status !== 202)!;
    expectError(refused, 429);
    expect(refused.body.message).toMatch(/^This address may send 40 interactions in 2 seconds/);
    expect(refused.headers.get('access-control-allow-origin')).toBe(origin);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect([...statuses(other!), ...statuses(ours!)]).toEqual([202, 202, 201]);
  });

  it('counts the interactions of a batch, and shows the address what it has left', async () => {
    const [one, two] = await inOneWindow(async () => {
      const api = page(`203.0.113.${2 + addresses++}`);
      return [
        await api.post(batch, { records: many(30, () => seen()) }),
        await api.post(batch, { records: many(11, () => seen()) }),
      ];
    });
    expect(one!.headers.get('ratelimit')).toMatch(/^"interactions";r=10;/);
    expect(one!.headers.get('ratelimit-policy')).toBe(`"interactions";q=${perWindow};w=2`);
    expectError(two!, 429);
    const large = await page().post(batch, { records: many(perWindow + 1, () => seen()) });
    expectError(large, 429, ['records']);
    expect(large.body.details[0].code).toBe('too_many_records');
  });

  it('covers a whole IPv6 network', async () => {
    const answers = await inOneWindow(async () => {
      const network = `2001:db8:${(++addresses).toString(16)}`;
      const within = many(perWindow + 5, (at) => page(`${network}::${at + 1}`).post(single, seen()));
      return [...(await Promise.all(within)), await page(`${network}:1::1`).post(single, seen())];
    });
    expect(statuses(answers).filter((status) => status === 429)).toHaveLength(5);
    expect(answers.at(-1)!.status).toBe(202);
  });

  it('a body of more than a mebibyte is 413, and an address may send at most four at once', async () => {
    const text = (bytes: number) => JSON.stringify({ records: [seen()] }).padEnd(bytes);
    const post = (api: Api, bytes: number) =>
      api.send(batch, { method: 'POST', headers: { 'content-type': 'application/json' }, body: text(bytes) });
    expectError(await post(page(), 1024 * 1024 + 1), 413);
    const headers = (address: string) => [
      `Authorization: Bearer ${key}`,
      `Origin: ${origin}`,
      'X-Forwarded-Proto: https',
      `X-Forwarded-For: ${address}`,
      'Content-Type: application/json',
      `Content-Length: ${1024 * 1024}`,
    ];
    const another = async () => {
      const request = rawPost(batch, headers('203.0.113.200'), '{"records":[');
      const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.write(request));
      onTestFinished(() => void socket.destroy());
      return (await post(page('203.0.113.200'), 1_000)).body.message;
    };
    await expect.poll(another).toMatch(/^This address may have 4194304 bytes/);
    expect((await post(page(), 1_000)).status).toBe(202);
    expect((await owner.post(single, seen())).status).toBe(201);
  });
});

describe('what its answers reveal', () => {
  /** Returns the status, headers and body, without values that differ between any two requests. */
  function shown({ status, headers, body }: Answer): string {
    const told = [...headers].filter(
      ([name]) => !/^(date|x-request-id|idempotency-key|ratelimit)$/.test(name),
    );
    return JSON.stringify({ status, told, body });
  }

  it('is the same for existing and missing references', async () => {
    const bodies = (student_id: string, item_id: string) => [
      [single, seen({ student_id, item_id })],
      [batch, { records: [seen({ student_id, item_id }), seen({ student_id, item_id }), seen()] }],
      [batch, { records: [seen({ student_id, item_id }), { interaction_type: 'NO' }, 7] }],
    ];
    const ask = async (student_id: string, item_id: string) => {
      const answers: string[] = [];
      for (const [path, body] of bodies(student_id, item_id)) {
        const other = seen({ city: 'Bath' });
        const otherBody = path === batch ? { records: [other] } : other;
        for (const headers of [undefined, { 'idempotency-key': randomUUID() }]) {
          // With an Idempotency-Key, retry the request, and then send another body with the same key.
          const sent = headers ? [body, body, otherBody] : [body];
          for (const one of sent) answers.push(shown(await page().post(path as string, one, headers)));
        }
      }
      return answers;
    };
    const existing = await ask(student, shop);
    expect(await ask(randomUUID(), shop)).toEqual(existing);
    expect(await ask(student, randomUUID())).toEqual(existing);
    expect(existing.map((one) => JSON.parse(one).status)).toEqual(many(3, () => [202, 202, 202, 422]).flat());
    expect(JSON.parse(existing.at(-4)!).body).toMatchObject({
      received: 3,
      accepted: 1,
      errors: [
        { index: 1, field: 'interaction_type', code: 'invalid_value' },
        ...many(3, () => ({ index: 1, code: 'required' })),
        { index: 2, field: null, code: 'not_an_object' },
      ],
    });
  });

  it('does not change when the student is uploaded between two attempts, and then it is stored once', async () => {
    const late = randomUUID();
    const body = seen({ student_id: late });
    const headers = { 'idempotency-key': randomUUID() };
    const first = shown(await page().post(single, body, headers));
    await owner.upload('customers', [newCustomer(late)]);
    const again = [await page().post(single, body, headers), await page().post(single, body, headers)];
    expect(again.map(shown)).toEqual([first, first]);
    const { body: found } = await owner.get(`${single}?student_id=${late}`);
    expect(found.interactions).toHaveLength(1);
  });

  it('missing references are kept as rejections, and invalid interactions are not kept', async () => {
    const ownKey = await server.createKey('keeping');
    const { body: issued } = await server.admin.post('/admin/v1/keys', {
      organisation: 'keeping',
      browser: true,
      origins: [origin],
    });
    const from = page(undefined, origin, issued.key);
    await from.post(single, seen({ student_id: student }));
    await from.post(batch, { records: [seen(), { ...seen(), item_type: 'TREE' }] });
    const wrong = await from.post(batch, { records: [{ ...seen(), item_type: 'TREE' }] });
    expect(wrong).toMatchObject({ status: 400, body: { received: 1, accepted: 0 } });
    expectError(await from.post(single, { ...seen(), item_type: 'TREE' }), 400, ['item_type']);
    const rejections = await listRejections(proxied(ownKey));
    expect(rejections.map(({ errors }) => errors.map(({ code }) => code))).toEqual([
      ['reference_not_found', 'reference_not_found'],
      ['reference_not_found'],
    ]);
    const { body: receipts } = await proxied(ownKey).get('/v1/requests');
    expect(receipts.requests).toMatchObject([{ key_id: issued.key_id, counts: { received: 2, failed: 2 } }]);
  });

  it('a dry run, which would show references, is refused', async () => {
    expectError(await page().post(`${batch}?dry_run=true`, { records: [seen()] }), 400, ['dry_run']);
  });

  it('its Idempotency-Keys are separate from other keys', async () => {
    const headers = { 'idempotency-key': randomUUID() };
    expect((await owner.post(single, seen(), headers)).status).toBe(201);
    expect((await page().post(single, seen({ city: 'Bath' }), headers)).status).toBe(202);
    const { status, headers: told } = await owner.post(single, seen(), headers);
    expect([status, told.get('idempotency-replayed')]).toEqual([201, 'true']);
  });
});

describe('its life', () => {
  const origins = [origin, 'http://localhost:3000'];

  it('is listed and audited with its origins, and rotation keeps them', async () => {
    const { body } = await server.admin.get('/admin/v1/keys?organisation=acme');
    expect(body.keys.find(({ key_id }: { key_id: string }) => key_id === keyId)).toMatchObject({
      browser: true,
      origins,
      permissions: ['interactions:write'],
    });
    expect(await server.run('keys', 'list', '--organisation', 'acme')).toContain(
      `${keyId}\tacme\tbrowser ${origins.join(',')}\t`,
    );
    expect(await server.run('audit', '--organisation', 'acme')).toContain(JSON.stringify(origins));
    const { body: successor } = await server.admin.post(`/admin/v1/keys/${keyId}/rotate`, {
      grace_seconds: 600,
    });
    expect(successor).toMatchObject({ browser: true, origins, permissions: ['interactions:write'] });
    expect((await page(undefined, origin, successor.key).post(single, seen())).status).toBe(202);
    expectError(await page(undefined, 'https://evil.example', successor.key).post(single, seen()), 403);
    expectError(await page(undefined, origin, successor.key).get('/v1/data'), 403);
    expect((await page().post(single, seen())).status).toBe(202);
  });

  it('rotation by the previous release keeps it a browser key, and that release does not know it', async () => {
    const rows = await queryDatabase<{ browser_origins: string[] }>(
      server.databaseUrl,
      `insert into api_keys (key_id, organisation_id, key_sha256, permissions, successor_of)
       select 'successor00', organisation_id, '\\x00', permissions, key_id from api_keys where key_id = '${keyId}'
       returning browser_origins`,
    );
    expect(rows).toEqual([{ browser_origins: origins }]);
    const known = (id: string) => queryDatabase(server.databaseUrl, `select from find_api_key('${id}')`);
    expect(await known(keyId)).toEqual([]);
    const { body } = await server.admin.post('/admin/v1/keys', { organisation: 'acme' });
    expect(await known(body.key_id)).toHaveLength(1);
    await expect(
      queryDatabase(
        server.databaseUrl,
        `update api_keys set permissions = '{data:read}' where key_id = '${keyId}'`,
      ),
    ).rejects.toThrow(/check constraint/);
  });

  it('works at once, and stops within seconds when it is revoked, which its pages can read', async () => {
    const wanted = { organisation: 'acme', browser: true, origins: [origin] };
    const { status, body } = await server.admin.post('/admin/v1/keys', wanted);
    expect({ status, body }).toMatchObject({ status: 201, body: { browser: true, origins: [origin] } });
    const record = () => page(undefined, origin, body.key).post(single, seen());
    expect((await record()).status).toBe(202);
    await server.admin.post(`/admin/v1/keys/${body.key_id}/revoke`, {});
    await expect.poll(async () => (await record()).status).toBe(401);
    const refused = await record();
    expectError(refused, 401);
    expect(refused.headers.get('access-control-allow-origin')).toBe(origin);
  });
});
