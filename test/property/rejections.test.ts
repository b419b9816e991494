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
 * Records fail and are corrected, merged, sent again and replayed. Their type has so many rejections that uploads leave settling
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

/** Without the fields that are the same in all records. */
interface Fields {
  /** The index of a shop, of which only the last one is stored from the beginning. */
  readonly shop?: number;
  readonly savings?: number | 'much';
  readonly amount?: number;
  readonly source?: string;
  /** Of `updated`. */
  readonly day?: number;
}

interface Sent {
  /** The index of the record's id. */
  readonly at: number;
  readonly fields: Fields;
}

type Mode = 'replace' | 'merge';

type Step =
  | { readonly do: 'upload'; readonly mode: Mode; readonly records: readonly Sent[] }
  | { readonly do: 'store shop'; readonly at: number }
  | { readonly do: 'replay' | 'discard wrong' | 'settle' | 'kill' };

const ids = 5;
const shops = 3;
const required = ['shop', 'savings', 'amount'] as const;
const fields = {
  shop: fc.constantFrom(0, 1, 2, 2, 2),
  savings: fc.constantFrom(1, 1, 1, 'much' as const),
  amount: fc.integer({ min: 1, max: 3 }),
  source: fc.constantFrom('a', 'b'),
  day: fc.integer({ min: 1, max: 3 }),
};
const at = fc.nat(ids - 1);
const whole = fc.record({ at, fields: fc.record(fields, { requiredKeys: [...required] }) });
const part = fc.record({ at, fields: fc.record(fields, { requiredKeys: [] }) });
const uploads = fc.oneof(
  fc
    .uniqueArray(whole, { minLength: 1, maxLength: 3, selector: (one) => one.at })
    .map((records): Step => ({ do: 'upload', mode: 'replace', records })),
  fc
    .array(part, { minLength: 1, maxLength: 4 })
    .map((records): Step => ({ do: 'upload', mode: 'merge', records })),
);
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

interface Rejected {
  readonly mode: Mode;
  readonly fields: Fields;
  /** Of the newest version whose `updated` is known, even if it was stored. */
  readonly day: number | undefined;
  readonly code: string;
}

const isOlder = (day: number | undefined, than: number | undefined) =>
  day !== undefined && than !== undefined && day < than;

/** Keeps the records that should be stored and rejected after each step. */
class Oracle {
  readonly stored = new Map<number, Fields>();
  readonly rejected = new Map<number, Rejected>();
  readonly shops = new Set([shops - 1]);

  send({ at, fields }: Sent, mode: Mode): void {
    const earlier = this.rejected.get(at);
    const code = this.#codeOf(at, fields, mode);
    if (code !== undefined) {
      if (isOlder(fields.day, earlier?.day)) return;
      const isFolded = mode === 'merge' && earlier !== undefined;
      // The newest version is replayed last.
      this.rejected.delete(at);
      this.rejected.set(at, {
        mode: isFolded ? earlier.mode : mode,
        fields: isFolded ? { ...earlier.fields, ...fields } : fields,
        day: fields.day ?? (isFolded ? earlier.day : undefined),
        code,
      });
    } else if (this.#store(at, fields, mode) && earlier && !isOlder(fields.day, earlier.day)) {
      const left = mode === 'merge' ? withoutStored(earlier, fields) : undefined;
      if (left) this.rejected.set(at, left);
      else this.rejected.delete(at);
    }
  }

  #codeOf(at: number, fields: Fields, mode: Mode): string | undefined {
    if (fields.savings === 'much') return 'wrong_type';
    if (fields.shop !== undefined && !this.shops.has(fields.shop)) return 'reference_not_found';
    const isWhole = required.every((field) => field in fields) || (mode === 'merge' && this.stored.has(at));
    return isWhole ? undefined : 'required';
  }

  #store(at: number, fields: Fields, mode: Mode): boolean {
    const before = this.stored.get(at);
    if (isOlder(fields.day, before?.day)) return false;
    this.stored.set(at, mode === 'merge' ? { ...before, ...fields } : fields);
    return true;
  }

  replay(): void {
    for (const [at, rejected] of [...this.rejected]) {
      const { fields, mode } = rejected;
      const code = this.#codeOf(at, fields, mode);
      if (code !== undefined) this.rejected.set(at, { ...rejected, code });
      else {
        this.#store(at, fields, mode);
        this.rejected.delete(at);
      }
    }
  }

  discardWrong(): void {
    for (const [at, { code }] of [...this.rejected]) if (code === 'wrong_type') this.rejected.delete(at);
  }

  open(): unknown[] {
    return [...this.rejected]
      .map(([at, { mode, fields, code }]) => ({ at, mode, code, ...fields }))
      .sort((a, b) => a.at - b.at);
  }
}

/** What a replay would still have to store. */
function withoutStored(rejected: Rejected, stored: Fields): Rejected | undefined {
  const left = Object.entries(rejected.fields).filter(([field]) => !(field in stored));
  if (left.length === 0) return undefined;
  const isMerge = rejected.mode === 'merge';
  return {
    ...rejected,
    fields: isMerge ? Object.fromEntries(left) : { ...rejected.fields, ...stored },
    day: stored.day ?? rejected.day,
  };
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
  const upload = (type: string, records: readonly unknown[], mode: Mode = 'replace') =>
    send('POST', `/v1/data/${type}?mode=${mode}`, { records });
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
  readonly #shops = [newShop(), newShop(), shop];

  constructor(client: Client) {
    this.#client = client;
  }

  async upload(records: readonly Sent[], mode: Mode): Promise<void> {
    const sent = records.map(({ at, fields: { shop: shopAt, day, ...fields } }) => ({
      transaction_id: this.#ids[at],
      region: 'GB',
      // A rejected record that was read has it, even if it was left out.
      is_deleted: false,
      ...(shopAt !== undefined && { shop_id: this.#shops[shopAt]?.shop_id }),
      ...fields,
      ...(day !== undefined && { updated: `2026-01-0${day}T00:00:00Z` }),
    }));
    await this.#client.upload('transactions', sent, mode);
    for (const record of records) this.oracle.send(record, mode);
  }

  async storeShop(at: number): Promise<void> {
    await this.#client.upload('shops', [this.#shops[at]]);
    this.oracle.shops.add(at);
  }

  /** Returns these records' entries in the list of rejections. */
  async open(): Promise<unknown[]> {
    const filters = ['field=savings&code=wrong_type', 'code=reference_not_found', 'code=required'];
    const pages = await Promise.all(
      filters.map((filter) => this.#client.send('GET', `/v1/rejections?limit=1000&${filter}`)),
    );
    return pages
      .flatMap(({ rejections }) => rejections)
      .filter(({ id }) => this.#ids.includes(id))
      .map(({ id, mode, errors: [{ code }], record }) => ({
        at: this.#ids.indexOf(id),
        mode,
        code,
        ...this.#fieldsOf(record),
      }))
      .sort((a, b) => a.at - b.at);
  }

  async stored(): Promise<unknown[]> {
    const found = await Promise.all(
      this.#ids.map((id) => this.#client.send('GET', `/v1/data/transactions/${id}`)),
    );
    return found.flatMap((record, at) => (record.transaction_id ? [[at, this.#fieldsOf(record)]] : []));
  }

  #fieldsOf({ shop_id, savings, amount, source, updated }: Record<string, string | null>): Fields {
    const shopAt = this.#shops.findIndex((one) => one.shop_id === shop_id);
    const all = {
      shop: shopAt < 0 ? undefined : shopAt,
      savings,
      amount,
      source,
      day: updated ? Number(updated.slice(9, 10)) : undefined,
    };
    return Object.fromEntries(
      Object.entries(all).filter(([, value]) => value !== undefined && value !== null),
    );
  }
}

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
  if (next.do === 'upload') await records.upload(next.records, next.mode);
  else if (next.do === 'store shop') await records.storeShop(next.at);
  else if (next.do === 'settle') await settleAll(background);
  else if (next.do === 'kill') await killSettling(client.organisationId);
  else if (next.do === 'replay') {
    await client.send('POST', '/v1/rejections/replay');
    oracle.replay();
  } else {
    await client.send('DELETE', '/v1/rejections?field=savings&code=wrong_type');
    oracle.discardWrong();
  }
}

async function counts(client: Client) {
  const [overview, summary] = [
    await client.send('GET', '/v1/data'),
    await client.send('GET', '/v1/rejections/summary?type=transactions'),
  ];
  const transactions = overview.types.find(({ type }: { type: string }) => type === 'transactions');
  const of = (field: string, code: string) =>
    summary.rejections.find(
      (group: { field: string; code: string }) => group.field === field && group.code === code,
    )?.count ?? 0;
  return {
    open: transactions.open_rejections - others,
    wrong: of('savings', 'wrong_type'),
    dangling: of('shop_id', 'reference_not_found'),
  };
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
    expect(await records.stored()).toEqual([...oracle.stored].sort(([a], [b]) => a - b));
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
