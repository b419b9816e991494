import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { many, newShop, newTransaction } from '../../test/support/new-records.ts';
import { type Erasure, Intake, type NewInteraction } from '../src/index.ts';
import { json, startHostileServer } from './support/hostile-server.ts';
import { startHttpProxy } from './support/http-proxy.ts';

let server: BuiltServer;
let key: string;
let intake: Intake;
const shop = newShop();

beforeAll(async () => {
  server = await startBuiltServer({ ERASURE_KEYS: 'a key of 32 characters or more for tests' });
  const permissions = ['data:write', 'data:read', 'interactions:write', 'interactions:read', 'data:erase'];
  key = await server.createKey('erasing', ...permissions);
  intake = new Intake({ url: server.url, key });
  await intake.upload('shops', [shop]).finish();
});
afterAll(() => server?.stop());

const newCustomer = () => ({ customer_id: randomUUID(), user_id: randomUUID(), region: 'GB' });

const viewBy = (people: Pick<NewInteraction, 'student_id' | 'user_id'>): NewInteraction => ({
  interaction_type: 'PAGE_VIEW',
  item_type: 'SHOP',
  item_id: shop.shop_id,
  city: 'Leeds',
  event_timestamp: 1_700_000_000,
  ...people,
});

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

const untilSwept = (erasureId: string) =>
  expect.poll(async () => (await intake.erasures.get(erasureId)).state).toBe('swept');

it('people are gone and refused when erase resolves, and swept soon after', async () => {
  const customer = newCustomer();
  const { customer_id } = customer;
  await intake.upload('customers', [customer]).finish();
  const sale = newTransaction(shop.shop_id, { student_id: customer_id });
  await intake.upload('transactions', [sale]).finish();
  const view = await intake.record(viewBy({ student_id: customer_id, user_id: 'seen together' }));
  const viewAlone = await intake.record(viewBy({ user_id: 'seen together' }));
  const stranger = randomUUID();

  // An open transaction delays the sweep.
  const other = new Client({ connectionString: server.databaseUrl });
  await other.connect();
  onTestFinished(() => other.end());
  await other.query('begin');
  await other.query('select 1');
  const [erasure, ...rest] = await intake.erase({ customerIds: [customer_id, stranger, customer_id] });
  if (!erasure || rest.length > 0) throw new Error('one erasure was expected');
  const { erasure_id } = erasure;
  expect(erasure).toMatchObject({
    mode: 'anonymise',
    people: 2,
    known: 1,
    unknown_customer_ids: [stranger],
    swept: null,
  });
  await expect(intake.data.get('customers', customer_id)).rejects.toMatchObject({ code: 'record_not_found' });
  await expect(intake.data.get('transactions', sale.transaction_id)).rejects.toMatchObject({ status: 404 });
  const entryOf = async (id: string) => {
    for await (const entry of intake.changes({ types: ['customers', 'transactions'] }))
      if (entry.type !== undefined && entry.id === id) return entry;
    return undefined;
  };
  expect(await entryOf(sale.transaction_id)).toMatchObject({ erased: true, deleted: true, record: null });
  const refused = await intake
    .upload('customers', [customer, { ...customer, customer_id: stranger }])
    .finish();
  expect(refused.failed.map(({ problems }) => problems.map(({ code }) => code))).toEqual([
    ['erased'],
    ['erased'],
  ]);
  await expect(intake.record(viewBy({ student_id: customer_id }))).rejects.toThrow();
  await expect(intake.erasures.liftSuppression(erasure_id)).rejects.toMatchObject({
    code: 'erasure_not_swept',
  });
  await other.query('rollback');

  await untilSwept(erasure_id);
  const swept: Erasure = await intake.erasures.get(erasure_id);
  expect(swept).toMatchObject({ rows: { customers: 1, transactions: 1, interactions: 1 } });
  expect(JSON.stringify(swept)).not.toContain(customer_id);
  expect(await intake.data.get('transactions', sale.transaction_id)).toMatchObject({ student_id: null });
  const cleared = { student_id: null, user_id: null, city: null };
  expect(await intake.interactions.get(view.interaction_id ?? '')).toMatchObject(cleared);
  // Anybody may have used the same device.
  expect(await intake.interactions.get(viewAlone.interaction_id ?? '')).toMatchObject({
    user_id: 'seen together',
    city: 'Leeds',
  });
  expect((await collect(intake.erasures.list({ limit: 1 })))[0]).toEqual(swept);
  expect(await entryOf(sale.transaction_id)).toMatchObject({ erased: false, record: { student_id: null } });
  expect(await entryOf(customer_id)).toMatchObject({ erased: true, deleted: true, record: null });

  expect((await intake.erasures.liftSuppression(erasure_id)).lifted).toBeGreaterThan(1);
  expect(await intake.erasures.liftSuppression(erasure_id)).toEqual({ lifted: 0 });
  expect((await intake.upload('customers', [customer]).finish()).counts).toMatchObject({ created: 1 });
});

it('a user is erased without being a customer; delete leaves nothing', async () => {
  const mine = await intake.record(viewBy({ user_id: 'visitor-1' }));
  const theirs = await intake.record(viewBy({ user_id: 'visitor-2' }));
  const [erasure] = await intake.erase({ userIds: ['visitor-1'], mode: 'delete' });
  expect(erasure).toMatchObject({ mode: 'delete', people: 1, known: 0, unknown_customer_ids: [] });
  await untilSwept(erasure?.erasure_id ?? '');
  await expect(intake.interactions.get(mine.interaction_id ?? '')).rejects.toMatchObject({ status: 404 });
  expect(await intake.interactions.get(theirs.interaction_id ?? '')).toMatchObject({ user_id: 'visitor-2' });
});

it('more than 5,000 ids are several requests, and no URL contains one', async () => {
  const proxy = await startHttpProxy(server.url, () => 'pass');
  onTestFinished(proxy.close);
  const through = new Intake({ url: proxy.url, key });
  const customerIds = many(5_003, () => randomUUID());
  const userIds = many(4_998, (at) => `visitor ${at} of many`);
  const erasures = await through.erase({ customerIds, userIds });
  const bodies = proxy.seen.map(({ body }) => JSON.parse(body));
  expect(bodies.map(({ customer_ids, user_ids }) => [customer_ids?.length, user_ids?.length])).toEqual([
    [5_000, undefined],
    [3, 4_997],
    [undefined, 1],
  ]);
  expect(new Set(bodies.flatMap(({ customer_ids = [] }) => customer_ids))).toEqual(new Set(customerIds));
  expect(bodies.flatMap(({ user_ids = [] }) => user_ids)).toEqual(userIds);
  expect(proxy.seen.map(({ url }) => url)).toEqual(many(3, () => '/v1/erasures'));
  expect(erasures.map(({ people, unknown_customer_ids }) => [people, unknown_customer_ids.length])).toEqual([
    [5_000, 5_000],
    [5_000, 3],
    [1, 0],
  ]);
  expect(new Set((await collect(through.erasures.list({ limit: 2 }))).map((one) => one.erasure_id))).toEqual(
    new Set((await collect(intake.erasures.list())).map((one) => one.erasure_id)),
  );
});

it('an erasure whose answer was lost is sent again, and erases nothing more', async () => {
  const customer = newCustomer();
  await intake.upload('customers', [customer]).finish();
  const proxy = await startHttpProxy(server.url, (_, count) => (count === 1 ? 'cut after' : 'pass'));
  onTestFinished(proxy.close);
  const through = new Intake({ url: proxy.url, key, onRetry: () => {} });
  const [answered] = await through.erase({ customerIds: [customer.customer_id] });
  expect(proxy.seen).toHaveLength(2);
  const [second, first] = await collect(intake.erasures.list());
  if (!first || !second) throw new Error('there are two erasures');
  expect(second.erasure_id).toBe(answered?.erasure_id);
  await untilSwept(first.erasure_id);
  await untilSwept(second.erasure_id);
  const rows = await Promise.all([first, second].map(({ erasure_id }) => intake.erasures.get(erasure_id)));
  expect(rows.reduce((sum, one) => sum + (one.rows.customers ?? 0), 0)).toBe(1);
});

it('counts what would be erased, and erases nothing', async () => {
  const customer = newCustomer();
  await intake.upload('customers', [customer]).finish();
  const { interaction_id } = await intake.record(viewBy({ student_id: customer.customer_id }));
  const stranger = randomUUID();
  const people = { customerIds: [customer.customer_id, stranger], mode: 'delete' } as const;
  expect(await intake.erasures.count(people)).toEqual([
    {
      dry_run: true,
      mode: 'delete',
      people: 2,
      known: 1,
      unknown_customer_ids: [stranger],
      rows: {
        customers: 1,
        transactions: 0,
        student_favourites: 0,
        interactions: 1,
        interactions_unlinked: 0,
      },
      complete: true,
    },
  ]);
  expect(await intake.interactions.get(interaction_id ?? '')).toMatchObject({
    student_id: customer.customer_id,
  });
  const many5001 = many(5_001, () => randomUUID());
  expect((await intake.erasures.count({ customerIds: many5001 })).map((one) => one.people)).toEqual([
    5_000, 1,
  ]);
});

it('while too many ids are being erased, the next erasure waits and is sent again', async () => {
  const refusal = { error: 'Conflict', code: 'too_many_erasures', message: 'Wait.' };
  let count = 0;
  const busy = await startHostileServer(async (outgoing, incoming) => {
    // The second request is refused twice.
    if (++count === 2 || count === 3) return json(409, refusal, { 'retry-after': '1' })(outgoing, incoming);
    const [erasure] = await intake.erase({ customerIds: [randomUUID()] });
    return json(202, erasure)(outgoing, incoming);
  });
  onTestFinished(busy.close);
  const waits: [string, number][] = [];
  const onRetry = ({ code }: { code: string }, waitMs: number) => waits.push([code, waitMs]);
  // A twelfth of the time is enough, because erasures take long.
  const patient = new Intake({ url: busy.url, key, retryForMs: 1_000, onRetry });
  expect(await patient.erase({ customerIds: many(5_001, () => randomUUID()) })).toHaveLength(2);
  expect([count, waits.map(([code]) => code)]).toEqual([4, ['too_many_erasures', 'too_many_erasures']]);
  for (const [, waitMs] of waits) expect(waitMs).toBeGreaterThanOrEqual(1_000);
  count = 1;
  const hasty = new Intake({ url: busy.url, key, retryForMs: 0 });
  await expect(hasty.erase({ customerIds: [randomUUID()] })).rejects.toMatchObject({
    code: 'too_many_erasures',
    status: 409,
  });
});

it('a list with a wrong id erases nobody, and the error does not contain it', async () => {
  const server = await startHostileServer(json(500, {}));
  onTestFinished(server.close);
  const careful = new Intake({ url: server.url, key, retryForMs: 0 });
  const ids = [...many(6_000, () => randomUUID()), 'jane@example.com'];
  await expect(careful.erase({ customerIds: ids })).rejects.toThrow(
    new TypeError('customerIds[6000] is not a UUID'),
  );
  await expect(careful.erase({ userIds: ['a', ''] })).rejects.toThrow(
    /^userIds\[1\] is not a string of 1 to 255/,
  );
  await expect(careful.erase({ userIds: ['😀'.repeat(256)] })).rejects.toThrow(TypeError);
  await expect(careful.erase({ customer_ids: ids } as never)).rejects.toThrow(
    new TypeError('erase needs customerIds or userIds'),
  );
  await expect(careful.erase({ customerIds: randomUUID() as never })).rejects.toThrow(
    new TypeError('customerIds must be an array of ids'),
  );
  expect(await careful.erase({ customerIds: [] })).toEqual([]);
  expect(server.seen).toEqual([]);
});

it('a key without the permission erases nobody; an unexpected answer is an error', async () => {
  const usual = new Intake({ url: server.url, key: await server.createKey('erasing') });
  const denied = { code: 'missing_permission', permission: 'data:erase' };
  await expect(usual.erase({ userIds: ['a'] })).rejects.toMatchObject(denied);
  await expect(usual.erasures.get(randomUUID())).rejects.toMatchObject(denied);
  const { url, close } = await startHostileServer(json(200, { erasure_id: 'x', state: 'swept', rows: {} }));
  onTestFinished(close);
  const other = new Intake({ url, key });
  await expect(other.erase({ userIds: ['a'] })).rejects.toMatchObject({ code: 'unexpected_answer' });
  await expect(other.erasures.liftSuppression('x')).rejects.toMatchObject({ code: 'unexpected_answer' });
});
