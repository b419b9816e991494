import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { badTag, danglingTransaction, many, newTag } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';
import { listRejections } from '../support/rejections.ts';

/**
 * Statements that write fewer rows than they were given and say nothing of it. A trigger does it here; on Citus a shard
 * that is split while a statement waits does the same. What was not written must never be acknowledged.
 */

let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer();
  await queryDatabase(
    server.databaseUrl,
    `create sequence lost;
     create function lose_row() returns trigger language plpgsql as $$
     begin
       -- The numbers of a sequence go on although the transaction is rolled back.
       return case when nextval('lost') > tg_argv[0]::bigint then new end;
     end $$;
     grant usage on sequence lost to public`,
  );
});
beforeEach(async () => {
  api = apiOf(server.url, await server.createKey(`acme-${randomUUID().slice(0, 8)}`));
});
afterEach(async () => {
  await queryDatabase(
    server.databaseUrl,
    'drop trigger if exists lose on tags; drop trigger if exists lose on rejections',
  );
});
afterAll(() => server.stop());

/** From now on the next rows that are written to the table are lost. */
async function lose(rows: number, table: 'tags' | 'rejections', when = 'insert or update'): Promise<void> {
  await queryDatabase(
    server.databaseUrl,
    `alter sequence lost restart;
     create trigger lose before ${when} on ${table} for each row execute function lose_row('${rows}')`,
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
  it('are stored at the second attempt, and said to be', async () => {
    const records = await make();
    await lose(1, 'tags');
    const answer = await api.upload('tags', records);
    expect(answer.status).toBe(200);
    const last = records.at(-1)!;
    expect((await api.get(`/v1/data/tags/${last.tag_id}`)).body).toMatchObject({ name: last.name });
    expect((await api.batch('tags', records.slice(-1))).counts.unchanged).toBe(1);
  });

  it('are said not to be stored where every attempt fails', async () => {
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

  it('are not said to be kept where every attempt fails', async () => {
    await lose(always, 'rejections', 'insert');
    expect((await api.upload(type, make())).status).toBe(500);
    expect(await listRejections(api)).toEqual([]);
  });
});
