import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { indexPartitions } from '../../src/interactions/interaction-partitions.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { linesOf } from '../support/access-person.ts';
import { createTestApp, erasureKey, type TestApp } from '../support/app.ts';
import { servingUrl } from '../support/database.ts';
import { collectPart, sweepStep } from '../support/jobs.ts';
import { newShop, newTransaction } from '../support/new-records.ts';
import { propertyRuns } from '../support/property-runs.ts';
import { tablesWith } from '../support/tables-with.ts';
import { untilPasses } from '../support/until-passes.ts';

/**
 * People are uploaded, buy, add favourites, interact on shared devices and have failed records. In the meantime, a
 * process that is killed now and then collects access requests about them in parts, and some people are erased. At the
 * end, a request about each person must return what a full read of all tables finds, and earlier requests must contain
 * nothing about an erased person.
 */

let test: TestApp;
/** The collecting process's pool, with the serving role's privileges. */
let background: OwnPool;
let admin: pg.Client;
const suppressions = new Suppressions([erasureKey]);
const shop = newShop();
beforeAll(async () => {
  test = await createTestApp();
  const databaseUrl = `${servingUrl(test.databaseUrl)}?application_name=collecting`;
  background = createPool(readConfig({ DATABASE_URL: databaseUrl }), () => {});
  admin = new pg.Client({ connectionString: test.databaseUrl });
  await admin.connect();
});
afterAll(async () => {
  await background.end();
  await admin.end();
  await test.close();
});

const people = 3;
const devices = 2;

type Step =
  | { readonly do: 'customer' | 'buy' | 'favour'; readonly who: number; readonly isWrong: boolean }
  | {
      readonly do: 'interact';
      readonly who: number | null;
      readonly on: number | 'own' | null;
      readonly daysAgo: number;
      readonly isWrong: boolean;
    }
  | { readonly do: 'erase'; readonly who: number }
  | { readonly do: 'access'; readonly who: readonly number[]; readonly device: number | null }
  | { readonly do: 'collect' | 'sweep'; readonly parts: number }
  | { readonly do: 'kill' | 'index' };

const person = fc.nat(people - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constantFrom('customer', 'customer', 'buy', 'favour'),
      who: person,
      isWrong: fc.boolean(),
    }) as fc.Arbitrary<Step>,
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('interact' as const),
      who: fc.option(person),
      on: fc.option(fc.oneof(fc.nat(devices - 1), fc.constant('own' as const))),
      daysAgo: fc.nat(2),
      isWrong: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('erase' as const), who: person }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('access' as const),
      who: fc.uniqueArray(person, { minLength: 1 }),
      device: fc.option(fc.nat(devices - 1)),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constantFrom('collect', 'sweep'), parts: fc.nat(8) }) as fc.Arbitrary<Step>,
  },
  { weight: 1, arbitrary: fc.constantFrom('kill', 'index').map((what): Step => ({ do: what })) },
);

type Row = Readonly<Record<string, string | null>>;

/** Returns the expected result of a request for these ids, found by reading every row. */
async function expectedOf(organisationId: string, asked: readonly string[]): Promise<string[]> {
  const rowsOf = async (table: string) =>
    (await admin.query<Row>(`select * from ${table} where organisation_id = $1`, [organisationId])).rows;
  const [customers, transactions, favourites, interactions] = [
    await rowsOf('customers'),
    await rowsOf('transactions'),
    await rowsOf('student_favourites'),
    await rowsOf('interactions'),
  ] as const;
  const is = (ids: ReadonlySet<string>, id: string | null | undefined) => ids.has((id ?? '').toLowerCase());
  const users = customers
    .filter((one) => asked.includes(one.customer_id ?? ''))
    .map((one) => one.user_id ?? '');
  const first = new Set([...asked, ...users]);
  const own = new Set([
    ...first,
    ...customers
      .filter((one) => is(first, one.customer_id) || is(first, one.user_id))
      .flatMap((one) => [one.customer_id ?? '', one.user_id ?? '']),
  ]);
  const seen = new Set(
    interactions.flatMap((one) =>
      is(own, one.student_id) && !is(own, one.user_id) ? (one.user_id ?? []) : [],
    ),
  );
  const isOwn = ({ student_id, user_id }: Row) => is(own, student_id ?? user_id);
  const found = [
    ...customers.filter((one) => is(own, one.customer_id)).map((one) => `customers ${one.customer_id}`),
    ...transactions.filter(isOwn).map((one) => `transactions ${one.transaction_id}`),
    ...favourites.filter(isOwn).map((one) => `student-favourites ${one.student_favourite_id}`),
    ...interactions.filter(isOwn).map((one) => `interactions ${one.interaction_id}`),
    ...[...seen].map((user) => `users-seen-together ${user}`),
  ];
  for (const { rejection_id, record } of await rowsOf('rejections')) {
    const { customer_id, student_id, user_id } = JSON.parse(record ?? '{}');
    if (is(own, customer_id) || isOwn({ student_id, user_id })) found.push(`rejections ${rejection_id}`);
  }
  for (const { request_id, batch, answer } of await rowsOf('receipt_batches'))
    if (JSON.parse(answer ?? '').data.errors.some((error: Row) => is(own, error.id)))
      found.push(`receipts ${request_id}/${batch}`);
  return found.sort();
}

function newPerson() {
  const user_id = randomUUID();
  return { user_id, customers: [randomUUID(), randomUUID()] as const, isErased: false };
}

class World {
  readonly all = Array.from({ length: people }, newPerson);
  readonly devices = Array.from({ length: devices }, () => `device ${randomUUID()}`);
  readonly requests: string[] = [];
  readonly organisationId: string;
  readonly #key: string;
  #turn = 0;

  constructor(organisationId: string, key: string) {
    this.organisationId = organisationId;
    this.#key = key;
  }

  async send(method: 'GET' | 'POST', url: string, payload?: object) {
    const headers = { authorization: `Bearer ${this.#key}` };
    const answer = await test.app.inject({ method, url, headers, ...(payload && { payload }) });
    if (answer.statusCode >= 500) throw new Error(`${method} ${url}: ${answer.body}`);
    return answer;
  }

  async run(step: Step): Promise<void> {
    if (step.do === 'collect') for (let part = 0; part < step.parts; part++) await this.collect();
    else if (step.do === 'sweep') for (let part = 0; part < step.parts; part++) await this.sweep();
    else if (step.do === 'kill') await this.kill();
    else if (step.do === 'index') await indexPartitions(test.pool);
    else if (step.do === 'erase') await this.erase(step.who);
    else if (step.do === 'access') {
      const asked = step.who.map((who) => this.#person(who).customers[0]);
      await this.access(asked, step.device === null ? [] : [this.devices[step.device] as string]);
    } else if (step.do === 'interact') await this.interact(step);
    else if ('isWrong' in step) await this.upload(step.do, step.who, step.isWrong);
  }

  #person(at: number) {
    return this.all[at] as ReturnType<typeof newPerson>;
  }

  async upload(what: 'customer' | 'buy' | 'favour', at: number, isWrong: boolean): Promise<void> {
    const { customers, user_id } = this.#person(at);
    const student_id = customers[this.#turn++ % 2] as string;
    const records = {
      customer: ['customers', { customer_id: student_id, user_id, region: isWrong ? 7 : 'GB' }],
      buy: ['transactions', newTransaction(isWrong ? randomUUID() : shop.shop_id, { student_id })],
      favour: [
        'student-favourites',
        { student_favourite_id: randomUUID(), student_id, shop_id: isWrong ? 'none' : shop.shop_id },
      ],
    } as const;
    const [type, record] = records[what];
    await this.send('POST', `/v1/data/${type}`, { records: [record] });
  }

  async interact({ who, on, daysAgo, isWrong }: Extract<Step, { do: 'interact' }>): Promise<void> {
    const student_id = who === null ? undefined : this.#person(who).customers[this.#turn++ % 2];
    const own = this.#person(who ?? 0).user_id.toUpperCase();
    const user_id = on === null ? undefined : on === 'own' ? own : this.devices[on];
    const sent = {
      interaction_type: 'SHARE',
      item_type: 'SHOP',
      item_id: shop.shop_id,
      event_timestamp: '2026-03-14T09:26:53Z',
      ...(student_id && { student_id }),
      ...(user_id && { user_id }),
      ...(isWrong && { platform: 'TV' }),
    };
    const { body } = await this.send('POST', '/user-interactions/batch', { records: [sent] });
    const id = JSON.parse(body).batches[0].data.interaction_ids?.[0] ?? null;
    if (id === null || daysAgo === 0) return;
    await admin.query(
      `with old as (delete from interactions where organisation_id = $1 and interaction_id = $2 returning *)
       insert into interactions select organisation_id, uuid_floor(now() - $3 * interval '1 day' + random() * interval '1 minute'),
         interaction_type, user_id, student_id, item_type, item_id, city, country, platform, event_timestamp, source,
         recommendation_id, event_time
       from old`,
      [this.organisationId, id, daysAgo],
    );
  }

  async erase(at: number): Promise<void> {
    const { customers, user_id } = this.#person(at);
    const sent = { customer_ids: customers, user_ids: [user_id] };
    const { statusCode } = await this.send('POST', '/v1/erasures', sent);
    expect(statusCode).toBe(202);
    this.#person(at).isErased = true;
    await this.expectNothingErased();
  }

  async access(customer_ids: readonly string[], user_ids: readonly string[]): Promise<string> {
    const sent = {
      ...(customer_ids.length > 0 && { customer_ids }),
      ...(user_ids.length > 0 && { user_ids }),
    };
    const answer = await this.send('POST', '/v1/access-requests', sent);
    expect(answer.statusCode, answer.body).toBe(202);
    const { access_request_id } = answer.json();
    this.requests.push(access_request_id);
    return access_request_id;
  }

  /** Collects one part. An error means that the connection was killed, and the next call continues. */
  async collect(): Promise<boolean> {
    return collectPart(background, this.organisationId, suppressions).catch(() => true);
  }

  async sweep(): Promise<boolean> {
    return sweepStep(background, this.organisationId, suppressions).catch(() => true);
  }

  /** Kills the collecting process's connection in the middle of a part. */
  async kill(): Promise<void> {
    const collecting = this.collect();
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'collecting' and datname = current_database()`,
    );
    await collecting;
  }

  async finish(): Promise<void> {
    for (let left = 1_000; await this.collect(); left--)
      if (left === 0) throw new Error('collecting does not end');
    await untilPasses(async () => {
      while (await this.sweep());
      for (const { state } of (await this.send('GET', '/v1/erasures')).json().erasures)
        expect(state).toBe('swept');
    });
  }

  async download(id: string) {
    const { statusCode, body } = await this.send('GET', `/v1/access-requests/${id}/records`);
    return statusCode === 200 ? linesOf(body) : [];
  }

  /** Checks that no download contains an erased person's id. */
  async expectNothingErased(): Promise<void> {
    const erased = this.all
      .filter(({ isErased }) => isErased)
      .flatMap(({ user_id, customers }) => [user_id, ...customers]);
    for (const id of this.requests) {
      const text = JSON.stringify(await this.download(id)).toLowerCase();
      expect(erased.filter((one) => text.includes(one))).toEqual([]);
    }
  }
}

async function newWorld(): Promise<World> {
  const { organisationId, key } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const world = new World(organisationId, key);
  await world.send('POST', '/v1/data/shops', { records: [shop] });
  for (const at of world.all.keys()) await world.upload('customer', at, false);
  return world;
}

it('whatever happens, a request has everything of its people and nothing of others', async () => {
  let compared = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
      const world = await newWorld();
      for (const one of steps) await world.run(one);
      await world.finish();
      await world.expectNothingErased();
      const fresh = new Map<string, readonly string[]>();
      for (const { customers } of world.all)
        fresh.set(await world.access([customers[0]], []), [customers[0]]);
      for (const device of world.devices) fresh.set(await world.access([], [device]), [device]);
      // All requests are collected together in one pass.
      await world.finish();
      for (const [id, asked] of fresh) {
        const lines = await world.download(id);
        const expected = await expectedOf(world.organisationId, asked);
        compared += expected.length;
        expect(lines.map(({ type, id: of }) => `${type} ${of}`).sort()).toEqual(expected);
        const { records } = (await world.send('GET', `/v1/access-requests/${id}`)).json();
        const counted = Object.values<number>(records).reduce((sum, count) => sum + count, 0);
        expect(counted).toBe(lines.length);
      }
      const erased = world.all.filter(({ isErased }) => isErased);
      const { changes, ...others } = await tablesWith(
        admin,
        erased.flatMap(({ user_id, customers }) => [user_id, ...customers]),
      );
      expect(others).toEqual({});
    }),
    propertyRuns(60),
  );
  expect(compared).toBeGreaterThan(propertyRuns(60).numRuns);
});
