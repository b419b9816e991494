import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { badTag, danglingTransaction, many, newShop, newTag } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { allowingTriggers, onEveryNode, queryDatabase } from '../support/query-database.ts';
import { discardRejections, listRejections, replayRejections } from '../support/rejections.ts';

/**
 * Tests statements that silently write fewer rows than they were given. Here a trigger drops the rows. On Citus,
 * splitting a shard while a statement waits has the same effect. The service must never acknowledge rows that were not
 * written.
 */

let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer();
  // In a cluster, all of an organisation's rows are on one worker, so only that worker's sequence counts them.
  await onNodes('create sequence lost; grant usage on sequence lost to public');
  await queryDatabase(
    server.databaseUrl,
    `create function lose_row() returns trigger language plpgsql as $$
     begin
       -- A sequence advances even if the transaction is rolled back.
       return case when nextval('lost') > tg_argv[0]::bigint then coalesce(new, old) end;
     end $$`,
  );
});
beforeEach(async () => {
  api = apiOf(server.url, await server.createKey(`acme-${randomUUID().slice(0, 8)}`));
});
afterEach(async () => {
  await queryDatabase(allowingTriggers(server.databaseUrl), `drop trigger if exists lose on ${loser}`);
});
afterAll(() => server.stop());

let loser = 'tags';

const onNodes = (statement: string) =>
  Promise.all(onEveryNode(server.databaseUrl).map((url) => queryDatabase(url, statement)));

/** Makes the next `rows` rows written to the table disappear. */
async function lose(rows: number, table: string, when = 'insert or update'): Promise<void> {
  loser = table;
  await onNodes('alter sequence lost restart');
  await queryDatabase(
    allowingTriggers(server.databaseUrl),
    `create trigger lose before ${when} on ${table} for each row execute function lose_row('${rows}')`,
  );
}

const always = 1_000_000;

describe.each([
  ['new records', async () => many(3, () => newTag())],
  [
    'changed records',
    async () => {
      const tags = many(3, () => newTag({ updated: '2026-01-01T00:00:00Z' }));
      await api.upload('tags', tags);
      return tags.map((tag) => ({ ...tag, name: 'vegetarian', updated: '2026-02-01T00:00:00Z' }));
    },
  ],
  [
    'records of which some are new and some changed',
    async () => {
      const [first, ...others] = many(3, () => newTag());
      await api.upload('tags', [first]);
      return [{ ...first, name: 'vegetarian' }, ...others];
    },
  ],
  [
    'records of one id',
    async () => {
      const tag = newTag();
      await api.upload('tags', [tag]);
      return many(3, (at) => ({ ...tag, name: `name ${at}` }));
    },
  ],
])('%s', (_what, make) => {
  it('are stored at the second attempt, and acknowledged', async () => {
    const records = await make();
    await lose(1, 'tags');
    const answer = await api.upload('tags', records);
    expect(answer.status).toBe(200);
    const last = records.at(-1)!;
    expect((await api.get(`/v1/data/tags/${last.tag_id}`)).body).toMatchObject({ name: last.name });
    expect((await api.batch('tags', records.slice(-1))).counts.unchanged).toBe(1);
  });

  it('are not acknowledged if every attempt fails', async () => {
    const records = await make();
    await lose(always, 'tags');
    const { status, body } = await api.upload('tags', records);
    expect(status).toBe(500);
    expect(body.batches[0].data.errors[0]).toMatchObject({ code: 'not_stored' });
  });
});

describe.each([
  ['bad records', 'tags', () => many(3, () => badTag())],
  ['records whose reference is missing', 'transactions', () => many(3, () => danglingTransaction())],
] as const)('rejections of %s', (_what, type, make) => {
  it('are kept at the second attempt', async () => {
    await lose(1, 'rejections', 'insert');
    expect((await api.upload(type, make())).status).toBe(400);
    expect(await listRejections(api)).toHaveLength(3);
    expect(await overviewOf(api)).toMatchObject({ [type]: { open_rejections: 3 } });
  });

  it('are not acknowledged as kept if every attempt fails', async () => {
    await lose(always, 'rejections', 'insert');
    expect((await api.upload(type, make())).status).toBe(500);
    expect(await listRejections(api)).toEqual([]);
  });
});

/** The rows that a batch writes for bookkeeping. If one of them is lost, the whole batch is rolled back. */
describe.each(['record_count_changes', 'receipts', 'receipt_batches', 'changes'])('a row of %s', (table) => {
  it('is written at the second attempt', async () => {
    await lose(1, table, 'insert');
    const { status, body } = await api.upload(
      'tags',
      many(3, () => newTag()),
    );
    expect(status).toBe(200);
    expect(await overviewOf(api)).toMatchObject({ tags: { records: 3 } });
    const receipt = await api.get(`/v1/requests/${body.request_id}`);
    expect(receipt.body).toMatchObject({ counts: { created: 3 }, batches: [{ batch: 1 }] });
  });

  it('is never written, and the batch is not stored', async () => {
    const tag = newTag();
    await lose(always, table, 'insert');
    expect((await api.upload('tags', [tag])).status).toBe(500);
    expect((await api.get(`/v1/data/tags/${tag.tag_id}`)).status).toBe(404);
  });
});

it.each(['rejection_kinds', 'rejection_count_changes'])(
  'a row of %s is written at the second attempt',
  async (table) => {
    await lose(1, table, 'insert');
    expect(
      (
        await api.upload(
          'tags',
          many(3, () => badTag({ region: 7 })),
        )
      ).status,
    ).toBe(400);
    expect(await listRejections(api)).toHaveLength(3);
    expect(await overviewOf(api)).toMatchObject({ tags: { open_rejections: 3 } });
  },
);

describe('a rejection that is not removed at the first attempt', () => {
  it('is removed when its record is stored', async () => {
    const tag = badTag();
    await api.upload('tags', [tag]);
    await lose(1, 'rejections', 'delete');
    expect((await api.upload('tags', [{ ...tag, name: 'vegan' }])).status).toBe(200);
    expect(await listRejections(api)).toEqual([]);
    expect(await overviewOf(api)).toMatchObject({ tags: { open_rejections: 0 } });
  });

  it('is removed when it is replayed', async () => {
    const dangling = danglingTransaction();
    await api.upload('transactions', [dangling]);
    await api.upload('shops', [newShop({ shop_id: dangling.shop_id })]);
    await lose(1, 'rejections', 'delete');
    expect((await replayRejections(api)).body).toMatchObject({ remaining: 0 });
    expect(await listRejections(api)).toEqual([]);
  });

  it('is removed when it is discarded', async () => {
    await api.upload(
      'tags',
      many(3, () => badTag()),
    );
    await lose(1, 'rejections', 'delete');
    expect((await discardRejections(api, { type: 'tags' })).body).toEqual({ discarded: 3, has_more: false });
    expect(await listRejections(api)).toEqual([]);
  });
});

describe('an interaction', () => {
  const newInteraction = async () => {
    const tag = newTag();
    await api.upload('tags', [tag]);
    return {
      interaction_type: 'SHARE',
      item_type: 'TAG',
      item_id: tag.tag_id,
      event_timestamp: 1_767_225_600,
    };
  };

  it.each([
    ['is not known', false],
    ['is known', true],
  ])('whose item %s is written at the second attempt', async (_what, isKnown) => {
    const sent = await newInteraction();
    if (isKnown) await api.post('/user-interactions', sent);
    await lose(1, 'interactions', 'insert');
    const { status, body } = await api.post('/user-interactions', sent);
    expect(status).toBe(201);
    expect((await api.get(`/user-interactions/${body.interaction_id}`)).status).toBe(200);
  });

  it.each(['interactions', 'interaction_idempotency_keys'])(
    'with an Idempotency-Key is written at the second attempt if a row of %s is lost',
    async (table) => {
      const sent = await newInteraction();
      await lose(1, table, 'insert');
      const send = () => api.post('/user-interactions', sent, { 'idempotency-key': 'once' });
      const first = await send();
      expect(first.status).toBe(201);
      expect((await send()).body).toEqual(first.body);
    },
  );

  it('takes over the Idempotency-Key of an interaction that was not stored at the second attempt', async () => {
    const sent = await newInteraction();
    const send = (body: object) => api.post('/user-interactions', body, { 'idempotency-key': 'once' });
    await send({ ...sent, item_id: randomUUID() });
    await lose(1, 'interaction_idempotency_keys', 'update');
    const first = await send(sent);
    expect(first.status).toBe(201);
    expect((await send(sent)).body).toEqual(first.body);
  });

  it('is never acknowledged if every attempt fails', async () => {
    const sent = await newInteraction();
    await lose(always, 'interactions', 'insert');
    expect((await api.post('/user-interactions', sent)).status).toBe(500);
    expect((await api.get('/user-interactions')).body.interactions).toEqual([]);
  });
});

it('an Idempotency-Key of an upload is claimed at the second attempt', async () => {
  const records = many(3, () => newTag());
  await lose(1, 'upload_idempotency_keys', 'insert');
  const send = () => api.post('/v1/data/tags', { records }, { 'idempotency-key': 'once' });
  const first = await send();
  expect(first.status).toBe(200);
  expect((await send()).body).toEqual(first.body);
});
