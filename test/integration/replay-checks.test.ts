import { randomUUID, randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KnownReferences } from '../../src/interactions/known-ids.ts';
import { SignedCursors } from '../../src/keys/signed-cursors.ts';
import { limits } from '../../src/limits.ts';
import type { OwnPool } from '../../src/postgres/pool.ts';
import { Suppressions } from '../../src/suppression/suppressions.ts';
import { type CheckedUpload, type Unchecked, UploadChecker } from '../../src/uploads/read/upload-checker.ts';
import { type Replayed, replayRejections } from '../../src/uploads/replay-rejections.ts';
import { createTestApp, type TestApp } from '../support/app.ts';
import { many, newShop } from '../support/new-records.ts';

/** A replay checks records in a worker thread. During a slow check, the replay holds no locks and detects changes. */

let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(() => test.close());

/** Runs an action before each check, to simulate concurrent requests. */
class InterruptedChecker extends UploadChecker {
  readonly #meanwhile: (() => Promise<void>)[];

  constructor(...meanwhile: (() => Promise<void>)[]) {
    super();
    this.#meanwhile = meanwhile;
  }

  override async check(upload: Unchecked): Promise<CheckedUpload> {
    await this.#meanwhile.shift()?.();
    return super.check(upload);
  }
}

async function client(slug: string) {
  const { key, organisationId } = await test.organisation(slug);
  const headers = { authorization: `Bearer ${key}` };
  return {
    organisationId,
    async send(method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object) {
      const answer = await test.app.inject({ method, url, headers, ...(payload && { payload }) });
      return answer.json();
    },
    async upload(type: string, records: unknown[]): Promise<{ request_id: string }> {
      return this.send('POST', `/v1/data/${type}`, { records });
    },
    /** Runs the same code as the API, with actions that run during the check. */
    replay(...meanwhile: (() => Promise<void>)[]): Promise<Replayed> {
      return this.replayOn(test.pool, ...meanwhile);
    },
    async replayOn(pool: OwnPool, ...meanwhile: (() => Promise<void>)[]): Promise<Replayed> {
      const checker = new InterruptedChecker(...meanwhile);
      const keyId = randomUUID();
      const replay = {
        organisationId,
        keyId,
        requestId: randomUUIDv7(),
        startedMs: 0,
        filter: {},
        cursor: undefined,
      };
      const references = new KnownReferences(new Suppressions([]));
      try {
        const signer = await new SignedCursors(pool).for(organisationId, 'replay');
        return await replayRejections({ pool, checker, references, signer }, replay, (error) => {
          throw error;
        });
      } finally {
        await checker.close();
      }
    },
    /** Returns the stored count and the actual number of rejections, by kind. */
    async kinds() {
      const { rows } = await test.pool.query<{ fields: string[]; counted: number; existing: number }>(
        `select fields, counted::integer, existing::integer from (
           select fields, k.rejections + coalesce((
               select sum(rejections) from rejection_count_changes c
               where c.organisation_id = $1 and c.kind_id = k.kind_id), 0) as counted,
             (select count(*) from rejections r where r.organisation_id = $1 and r.kind_id = k.kind_id) as existing
           from rejection_kinds k where organisation_id = $1) as kinds
         where counted <> 0 or existing <> 0`,
        [organisationId],
      );
      return rows;
    },
  };
}

const countsOf = ({ batches }: Replayed) => batches.map(({ counts }) => counts);
const newLink = (shop_id: string, tag_id: string) => ({ shop_tag_id: randomUUID(), shop_id, tag_id });
const newTag = (tag_id: string) => ({ tag_id, name: 'vegan' });

it('a replay has no transaction and no lock while it checks', async () => {
  const acme = await client('unlocked');
  const [shop, tag_id] = [newShop(), randomUUID()];
  await acme.upload(
    'shop-tags',
    many(3, () => newLink(shop.shop_id, tag_id)),
  );
  await acme.upload('shops', [shop]);
  await acme.upload('tags', [newTag(tag_id)]);
  const seen: unknown[] = [];
  const replayed = await acme.replay(async () => {
    const { rows } = await test.pool.query(
      `select state, query from pg_stat_activity
       where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
         and backend_type = 'client backend'`,
    );
    const { rows: locks } = await test.pool.query(
      `select mode from pg_locks where locktype = 'advisory'
         and database = (select oid from pg_database where datname = current_database())`,
    );
    seen.push({ transactions: rows, locks });
  });
  expect(seen).toEqual([{ transactions: [], locks: [] }]);
  expect(countsOf(replayed)).toMatchObject([{ received: 3, created: 3 }]);
});

it('a record that another replay stores meanwhile is not stored again', async () => {
  const acme = await client('stored');
  const [shop, tag_id] = [newShop(), randomUUID()];
  await acme.upload(
    'shop-tags',
    many(3, () => newLink(shop.shop_id, tag_id)),
  );
  await acme.upload('shops', [shop]);
  await acme.upload('tags', [newTag(tag_id)]);
  const replayed = await acme.replay(async () => {
    expect(countsOf(await acme.replay())).toMatchObject([{ created: 3 }]);
  });
  expect(replayed).toEqual({ batches: [], remaining: 0, nextCursor: null });
  expect(await acme.kinds()).toEqual([]);
});

it('a rejection whose kind another replay changes meanwhile is counted once', async () => {
  const acme = await client('changed');
  const shop = newShop();
  await acme.upload(
    'shop-tags',
    many(3, () => newLink(shop.shop_id, randomUUID())),
  );
  const replayed = await acme.replay(async () => {
    await acme.upload('shops', [shop]);
    expect(countsOf(await acme.replay())).toMatchObject([{ failed: 3 }]);
  });
  expect(countsOf(replayed)).toMatchObject([{ received: 3, failed: 3 }]);
  expect(await acme.kinds()).toEqual([{ fields: ['tag_id'], counted: 3, existing: 3 }]);
});

it('rejections that are discarded or uploaded meanwhile are left alone, and all others are tried', async () => {
  const acme = await client('left');
  const [shop, tag_id] = [newShop(), randomUUID()];
  const links = many(6, () => newLink(shop.shop_id, tag_id));
  for (const link of links) await acme.upload('shop-tags', [link]);
  await acme.upload('shops', [shop]);
  await acme.upload('tags', [newTag(tag_id)]);
  const replayed = await acme.replay(
    async () => {
      const { rejections } = await acme.send('GET', '/v1/rejections?limit=1');
      await acme.send('DELETE', `/v1/rejections?request_id=${rejections[0].request_id}`);
    },
    async () => void (await acme.upload('shop-tags', [links[1]])),
  );
  const created = countsOf(replayed).reduce((sum, counts) => sum + counts.created, 0);
  expect(created).toBe(4);
  expect(replayed).toMatchObject({ remaining: 0, nextCursor: null });
  expect(await acme.kinds()).toEqual([]);
  const { rows } = await test.pool.query('select from shop_tags where organisation_id = $1', [
    acme.organisationId,
  ]);
  expect(rows).toHaveLength(5);
});

it('the batch after a reduced one is as small, and the next one larger again', async () => {
  const acme = await client('smaller');
  const [shop, tag_id] = [newShop(), randomUUID()];
  const { recordsPerBatch } = limits;
  const { request_id } = await acme.upload('shop-tags', [newLink(shop.shop_id, tag_id)]);
  const left = 2 * recordsPerBatch;
  await acme.upload(
    'shop-tags',
    many(left, () => newLink(shop.shop_id, tag_id)),
  );
  const replayed = await acme.replay(async () => {
    expect((await acme.send('DELETE', `/v1/rejections?request_id=${request_id}`)).discarded).toBe(1);
  });
  const half = recordsPerBatch / 2;
  expect(countsOf(replayed).map(({ received }) => received)).toEqual([half, half, recordsPerBatch]);
});

it('a batch that is discarded while it is read does not end the replay before the rest', async () => {
  const acme = await client('gone');
  const [shop, tag_id] = [newShop(), randomUUID()];
  const links = many(limits.recordsPerBatch + 1, () => newLink(shop.shop_id, tag_id));
  const { request_id } = await acme.upload('shop-tags', links.slice(0, -1));
  await acme.upload('shop-tags', links.slice(-1));
  await acme.upload('shops', [shop]);
  await acme.upload('tags', [newTag(tag_id)]);
  let discarded = 0;
  const pool = beforeReading(async () => {
    ({ discarded } = await acme.send('DELETE', `/v1/rejections?request_id=${request_id}`));
  });
  const replayed = await acme.replayOn(pool);
  expect(discarded).toBe(limits.recordsPerBatch);
  expect(countsOf(replayed)).toMatchObject([{ received: 1, created: 1 }]);
});

/** Returns a pool that runs an action between finding the rejections and reading their records. */
function beforeReading(meanwhile: () => Promise<void>): OwnPool {
  let isDone = false;
  return new Proxy(test.pool, {
    get(pool, name) {
      const value = Reflect.get(pool, name, pool);
      if (name !== 'query') return typeof value === 'function' ? value.bind(pool) : value;
      return async (asked: { text?: string }, ...rest: []) => {
        if (!isDone && asked.text?.includes('octet_length(record)')) {
          isDone = true;
          await meanwhile();
        }
        return pool.query(asked as never, ...rest);
      };
    },
  });
}
