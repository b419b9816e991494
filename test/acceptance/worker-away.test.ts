import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/**
 * A coordinator of Citus reports that a worker is away in words and a code of its own, over a connection that is sound. A
 * trigger says them here. What was certainly not stored may be sent again, and is a 503.
 */

let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer();
  api = apiOf(server.url, await server.createKey('acme'));
  if (inject('citus') !== null) return;
  await queryDatabase(
    server.databaseUrl,
    `create table said (code text, message text, times integer);
     create sequence told;
     grant select on said to public;
     grant usage on sequence told to public;
     create function say() returns trigger language plpgsql as $$
     declare words said := (select s from said s);
     begin
       -- The numbers of a sequence go on although the transaction is rolled back.
       if nextval('told') <= words.times then
         raise exception using errcode = words.code, message = words.message;
       end if;
       return new;
     end $$;
     create trigger say before insert on interactions for each row execute function say();
     create trigger say before insert on tags for each row execute function say()`,
  );
});
beforeEach(({ skip }) => skip(inject('citus') !== null, 'Citus allows no trigger on a distributed table'));
afterAll(() => server.stop());

/** Each insert fails with these words while `work` goes on, or so many times. */
async function whileSaying<T>(
  code: string,
  words: string,
  work: () => Promise<T>,
  times = 1_000_000,
): Promise<T> {
  await queryDatabase(server.databaseUrl, 'alter sequence told restart');
  await queryDatabase(server.databaseUrl, 'insert into said values ($1, $2, $3)', [code, words, times]);
  return work().finally(() => queryDatabase(server.databaseUrl, 'delete from said'));
}

const stored = async (item_id: string) =>
  (await api.get(`/user-interactions?item_id=${item_id}`)).body.interactions;

const prefix = 'connection to the remote node intake@worker:5432 failed with the following error: ';

describe.each([
  ['Connection refused\n\tIs the server running on that host?', 503],
  ['timeout expired', 503],
  ['server closed the connection unexpectedly', 500],
])('"%s"', (words, status) => {
  it(`an interaction is answered ${status}`, async () => {
    const tag = newTag();
    await api.upload('tags', [tag]);
    const sent = { interaction_type: 'SHARE', item_type: 'TAG', item_id: tag.tag_id, event_timestamp: 1 };
    const answer = await whileSaying('08006', prefix + words, () => api.post('/user-interactions', sent));
    expect(answer.status).toBe(status);
    expect(answer.body.code).toBe(status === 503 ? 'database_unavailable' : 'outcome_unknown');
    expect(answer.headers.get('retry-after')).not.toBeNull();
    expect(await stored(tag.tag_id)).toEqual([]);
    expect((await api.post('/user-interactions', sent)).status).toBe(201);
  });

  it('an upload is answered 503, and nothing of it is stored', async () => {
    const tags = many(3, () => newTag());
    expect((await whileSaying('08006', prefix + words, () => api.upload('tags', tags))).status).toBe(503);
    expect((await api.batch('tags', tags)).counts).toMatchObject({ created: 3 });
  });
});

it('a batch that meets a shard that was split is run again', async () => {
  const tags = many(3, () => newTag());
  const gone = 'could not find valid entry for shard 102045';
  const { status } = await whileSaying('XX000', gone, () => api.upload('tags', tags), 1);
  expect(status).toBe(200);
  expect((await api.batch('tags', tags)).counts).toMatchObject({ unchanged: 3 });
});
