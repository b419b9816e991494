// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { limits } from '../../src/limits.ts';
import { createPool, type OwnPool } from '../../src/postgres/pool.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { settleAll } from '../support/jobs.ts';
import { many, newShop, newTransaction } from '../support/new-records.ts';
import { propertyRuns } from '../support/property-runs.ts';

/**
 * Records fail and are corrected, sent again and replayed. Their type has so many rejections that uploads leave settling
 * to a background task. Whatever progress that task has made, a client must see the same as the oracle after each step.
 */

let test: TestApp;
/** The background task's pool, whose connections are killed. */
let background: OwnPool;
const shop = newShop();
beforeAll(async () => {
  test = await createTestApp();
  const config = readConfig({ DATABASE_URL: test.databaseUrl });
  const databaseUrl = `${test.databaseUrl}?application_name=background`;
  background = createPool({ ...config, databaseUrl }, () => {});
});
afterAll(async () => {
  await background.end();
  await test.close();
});

interface Sent {
  /** The index of the record's id. */
  readonly at: number;
  /** The day of `updated`, or 0 to omit the field. */
  readonly day: number;
  readonly amount: number;
  /** Whether the record is valid, invalid, or references a shop that may not be stored yet. */
  readonly is: 'good' | 'wrong' | 'of shop 0' | 'of shop 1';
}

type Step =
  | { readonly do: 'upload'; readonly records: readonly Sent[] }
  | { readonly do: 'store shop'; readonly at: number }
  | { readonly do: 'replay' | 'discard wrong' | 'settle' | 'kill' };

const ids = 5;
const sent: fc.Arbitrary<Sent> = fc.record({
  at: fc.nat(ids - 1),
  day: fc.nat(3),
  amount: fc.integer({ min: 1, max: 2 }),
  is: fc.constantFrom('good', 'good', 'wrong', 'of shop 0', 'of shop 1'),
});
const uploads = fc
  .uniqueArray(sent, { minLength: 1, maxLength: 3, selector: ({ at }) => at })
  .map((records): Step => ({ do: 'upload', records }));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: uploads },
  { weight: 1, arbitrary: fc.nat(1).map((at): Step => ({ do: 'store shop', at })) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom('replay', 'discard wrong', 'settle', 'kill')
      .map((what): Step => ({ do: what })),
  },
);

interface Version {
  readonly day: number;
  readonly amount: number;
}

/** Keeps the records that should be stored and rejected after each step. */
class Oracle {
  readonly stored = new Map<number, Version>();
  readonly rejected = new Map<number, Version & { readonly code: string; readonly shop: number | null }>();
  readonly shops = new Set<number>();

  send({ at, day, amount, is }: Sent): void {
    const shopAt = is === 'of shop 0' ? 0 : is === 'of shop 1' ? 1 : null;
    const version = { day, amount };
    const earlier = this.rejected.get(at);
    const isOlder = (than: Version | undefined) =>
      than !== undefined && day > 0 && than.day > 0 && day < than.day;
    if (is === 'wrong' || (shopAt !== null && !this.shops.has(shopAt))) {
      const code = is === 'wrong' ? 'wrong_type' : 'reference_not_found';
      if (!isOlder(earlier)) {
        // The newest version is replayed last.
        this.rejected.delete(at);
        this.rejected.set(at, { ...version, code, shop: shopAt });
      }
    } else if (!isOlder(this.stored.get(at))) {
      this.stored.set(at, version);
      if (!isOlder(earlier)) this.rejected.delete(at);
    }
  }

  replay(): void {
    for (const [at, { day, amount, shop: shopAt }] of [...this.rejected]) {
      if (shopAt === null || !this.shops.has(shopAt)) continue;
      const stored = this.stored.get(at);
      const isStale = stored !== undefined && day > 0 && stored.day > 0 && day < stored.day;
      if (!isStale) this.stored.set(at, { day, amount });
      this.rejected.delete(at);
    }
  }

  discardWrong(): void {
    for (const [at, { code }] of [...this.rejected]) if (code === 'wrong_type') this.rejected.delete(at);
  }

  open(): unknown[] {
    return [...this.rejected]
      .map(([at, { day, amount, code }]) => ({ at, day, amount, code }))
      .sort((a, b) => a.at - b.at);
  }
}

const others = limits.fewRejectionsMax + 1;

/** Creates a client for an organisation with many unrelated rejections. */
async function newClient() {
  const { key, organisationId } = await test.organisation(`o-${randomUUID().slice(0, 13)}`);
  const headers = { authorization: `Bearer ${key}` };
  const send = async (method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object) => {
    const answer = await test.app.inject({ method, url, headers, ...(payload && { payload }) });
    expect(answer.statusCode).toBeLessThan(500);
    return answer.json();
  };
  const upload = (type: string, records: readonly unknown[]) => send('POST', `/v1/data/${type}`, { records });
  await upload('shops', [shop]);
  await upload(
    'transactions',
    many(others, () => newTransaction(shop.shop_id, { region: 7 })),
  );
  return { organisationId, send, upload };
}

type Client = Awaited<ReturnType<typeof newClient>>;

/** Some of a client's records, with their expected and actual state. */
class Records {
  readonly oracle = new Oracle();
  readonly #client: Client;
  readonly #ids = many(ids, () => randomUUID());
  readonly #shops = [newShop(), newShop()];

  constructor(client: Client) {
    this.#client = client;
  }

  async upload(records: readonly Sent[]): Promise<void> {
    await this.#client.upload(
      'transactions',
      records.map(({ at, day, amount, is }) => {
        const shopAt = { 'of shop 0': 0, 'of shop 1': 1, good: -1, wrong: -1 }[is];
        return newTransaction((this.#shops[shopAt] ?? shop).shop_id, {
          transaction_id: this.#ids[at],
          amount,
          ...(is === 'wrong' && { savings: 'much' }),
          ...(day > 0 && { updated: `2026-01-0${day}T00:00:00Z` }),
        });
      }),
    );
    for (const record of records) this.oracle.send(record);
  }

  async storeShop(at: number): Promise<void> {
    await this.#client.upload('shops', [this.#shops[at]]);
    this.oracle.shops.add(at);
  }

  /** Returns these records' entries in the list of rejections. */
  async open(): Promise<unknown[]> {
    const codes = ['wrong_type', 'reference_not_found'];
    const pages = await Promise.all(
      codes.map((code) =>
        this.#client.send('GET', `/v1/rejections?limit=1000&field=${fieldOf(code)}&code=${code}`),
      ),
    );
    return pages
      .flatMap(({ rejections }) => rejections)
      .filter(({ id }) => this.#ids.includes(id))
      .map(({ id, errors: [{ code }], record: { amount, updated } }) => ({
        at: this.#ids.indexOf(id),
        day: updated ? Number(updated.slice(9, 10)) : 0,
        amount,
        code,
      }))
      .sort((a, b) => a.at - b.at);
  }

  async stored(): Promise<unknown[]> {
    const found = await Promise.all(
      this.#ids.map((id) => this.#client.send('GET', `/v1/data/transactions/${id}`)),
    );
    return found.flatMap(({ amount }, at) => (amount === undefined ? [] : [[at, amount]]));
  }
}

const fieldOf = (code: string) => (code === 'wrong_type' ? 'savings' : 'shop_id');

/** Kills the background task's sessions that wait for a lock. On Citus, a worker's session waits on their behalf. */
const killWaiting = inject('citus')
  ? `with sessions as materialized (
       select global_pid, application_name, wait_event_type from citus_stat_activity where datname = current_database())
     select pg_terminate_backend(global_pid) from sessions
     where application_name = 'background'
       and global_pid in (select global_pid from sessions where wait_event_type = 'Lock')`
  : `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and application_name = 'background' and wait_event_type = 'Lock'`;

/** Kills the background task's connection just before it removes rejections. */
async function killSettling(organisationId: string): Promise<void> {
  const blocking = new pg.Client({ connectionString: test.databaseUrl });
  await blocking.connect();
  await blocking.query('begin');
  // The service locks them in this order too. Otherwise, there could be a deadlock.
  const locking = 'select from rejections where organisation_id = $1 order by rejection_id for update';
  await blocking.query(locking, [organisationId]);
  let hasEnded = false;
  const settling = settleAll(background).then(
    () => 'settled',
    () => 'killed',
  );
  settling.finally(() => {
    hasEnded = true;
  });
  for (let isKilled = false; !hasEnded && !isKilled; ) {
    const { rows } = await blocking.query(killWaiting);
    isKilled = rows.length > 0;
    if (!isKilled) await sleep(1);
  }
  await settling;
  await blocking.query('rollback');
  await blocking.end();
}

async function take(client: Client, records: Records, next: Step): Promise<void> {
  const { oracle } = records;
  if (next.do === 'upload') await records.upload(next.records);
  else if (next.do === 'store shop') await records.storeShop(next.at);
  else if (next.do === 'settle') await settleAll(background);
  else if (next.do === 'kill') await killSettling(client.organisationId);
  else if (next.do === 'replay') {
    await client.send('POST', '/v1/rejections/replay?code=reference_not_found');
    oracle.replay();
  } else {
    await client.send('DELETE', '/v1/rejections?field=savings');
    oracle.discardWrong();
  }
}

async function counts(client: Client) {
  const [overview, summary] = [
    await client.send('GET', '/v1/data'),
    await client.send('GET', '/v1/rejections/summary?type=transactions'),
  ];
  const transactions = overview.types.find(({ type }: { type: string }) => type === 'transactions');
  const of = (field: string) =>
    summary.rejections.find((group: { field: string }) => group.field === field)?.count ?? 0;
  return { open: transactions.open_rejections - others, wrong: of('savings'), dangling: of('shop_id') };
}

it('whatever is sent, settled or killed, a client at once reads what is open', async () => {
  const run = async (steps: readonly Step[], order: number) => {
    const client = await newClient();
    const records = new Records(client);
    const { oracle } = records;
    for (const [at, next] of steps.entries()) {
      await take(client, records, next);
      // Each query settles rejections that the other queries would find, so the first query varies.
      const asked = (at + order) % 3;
      if (asked === 0) expect(await records.open()).toEqual(oracle.open());
      const codes = [...oracle.rejected.values()].map(({ code }) => code);
      const expected = {
        open: codes.length,
        wrong: codes.filter((code) => code === 'wrong_type').length,
        dangling: codes.filter((code) => code === 'reference_not_found').length,
      };
      if (asked === 1) expect(await counts(client)).toEqual(expected);
    }
    expect(await records.open()).toEqual(oracle.open());
    const stored = [...oracle.stored].map(([at, { amount }]) => [at, amount]);
    expect(await records.stored()).toEqual(stored.sort(([a = 0], [b = 0]) => a - b));
    await settleAll(background);
    const { rows } = await test.pool.query('select from unsettled_batches');
    expect(rows).toEqual([]);
  };
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 20 }), fc.nat(2), run), {
    ...propertyRuns(10),
  });
});

it('concurrent clients each read at once what is open of their records', async () => {
  const run = async (perClient: readonly (readonly Step[])[]) => {
    const client = await newClient();
    let hasEnded = false;
    const settling = (async () => {
      for (let round = 0; !hasEnded; round++) {
        if (round % 3 === 0) await killSettling(client.organisationId);
        else await settleAll(background);
        await sleep(3);
      }
    })();
    const all = perClient.map(() => new Records(client));
    try {
      await Promise.all(
        all.map(async (records, at) => {
          for (const next of perClient[at] as Step[]) {
            await take(client, records, next);
            expect(await records.open()).toEqual(records.oracle.open());
          }
        }),
      );
    } finally {
      hasEnded = true;
      await settling;
    }
    const open = all.reduce((sum, { oracle }) => sum + oracle.rejected.size, 0);
    expect((await counts(client)).open).toBe(open);
  };
  const ofOne = fc.array(uploads, { minLength: 8, maxLength: 12 });
  await fc.assert(fc.asyncProperty(fc.array(ofOne, { minLength: 3, maxLength: 3 }), run), {
    ...propertyRuns(3),
  });
});
