// @module-tag full

import { afterAll, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many, newTag } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/**
 * If a worker fails, the Citus coordinator reports the failure with its own message and code over an intact connection.
 * Here, a trigger raises the same errors. If the data was certainly not stored, the request gets a 503 and can be
 * retried.
 */

let server: BuiltServer;
let api: Api;
beforeAll(async () => {
  server = await startBuiltServer();
  api = apiOf(server.url, await server.createKey('acme'));
  if (inject('citus') !== null) return;
  await queryDatabase(
    server.databaseUrl,
    `create table said (moment text, code text, message text, times integer);
     create sequence told;
     grant select on said to public;
     grant usage on sequence told to public;
     create function say() returns trigger language plpgsql as $$
     declare words said := (select s from said s);
     begin
       -- A sequence advances even if the transaction is rolled back.
       if words.moment = tg_argv[0] and nextval('told') <= words.times then
         raise exception using errcode = words.code, message = words.message;
       end if;
       return new;
     end $$;
     create trigger say before insert on interactions for each row execute function say('insert');
     create trigger say before insert on tags for each row execute function say('insert');
     create trigger say before insert or update on record_counts for each row execute function say('roll up');
     create constraint trigger say after insert on record_count_changes initially deferred
       for each row execute function say('commit')`,
  );
});
beforeEach(({ skip }) =>
  skip(inject('citus') !== null, 'on a cluster test/fault/cluster.test.ts kills workers in earnest'),
);
afterAll(() => server.stop());

/** Makes each insert or COMMIT fail with this message while `work` runs, or only the first `times` of them. */
async function whileSaying<T>(
  code: string,
  words: string,
  work: () => Promise<T>,
  { moment = 'insert', times = 1_000_000 } = {},
): Promise<T> {
  await queryDatabase(server.databaseUrl, 'alter sequence told restart');
  await queryDatabase(server.databaseUrl, 'insert into said values ($1, $2, $3, $4)', [
    moment,
    code,
    words,
    times,
  ]);
  return work().finally(() => queryDatabase(server.databaseUrl, 'delete from said'));
}

const stored = async (item_id: string) =>
  (await api.get(`/user-interactions?item_id=${item_id}`)).body.interactions;

/** Returns an interaction that refers to a stored tag. */
async function newInteraction() {
  const tag = newTag();
  await api.upload('tags', [tag]);
  return {
    interaction_type: 'SHARE',
    item_type: 'TAG',
    item_id: tag.tag_id as string,
    event_timestamp: 1,
  };
}

const prefix = 'connection to the remote node intake@worker:5432 failed with the following error: ';

describe.each([
  ['08006', `${prefix}Connection refused\n\tIs the server running on that host?`, 503],
  ['08006', `${prefix}timeout expired`, 503],
  ['08006', `${prefix}server closed the connection unexpectedly`, 500],
  ['XX000', 'server closed the connection unexpectedly', 500],
  ['XX000', 'could not receive data from server: Connection reset by peer', 500],
  ['XX000', 'failure on connection marked as essential: worker:5432', 503],
])('%s, "%s"', (code, words, status) => {
  it(`an interaction is answered ${status}`, async () => {
    const sent = await newInteraction();
    const answer = await whileSaying(code, words, () => api.post('/user-interactions', sent));
    expect(answer.status).toBe(status);
    expect(answer.body.code).toBe(status === 503 ? 'database_unavailable' : 'outcome_unknown');
    expect(answer.headers.get('retry-after')).not.toBeNull();
    expect(await stored(sent.item_id)).toEqual([]);
    expect((await api.post('/user-interactions', sent)).status).toBe(201);
  });

  it('an upload is answered 503, and nothing of it is stored', async () => {
    const tags = many(3, () => newTag());
    expect((await whileSaying(code, words, () => api.upload('tags', tags))).status).toBe(503);
    expect((await api.batch('tags', tags)).counts).toMatchObject({ created: 3 });
  });
});

describe('a worker that received a commit and did not answer', () => {
  const words = 'could not commit transaction for shard 102045 on at least one active node';
  const whileLost = <T>(work: () => Promise<T>) => whileSaying('XX000', words, work, { moment: 'commit' });

  it.each([
    ['without an Idempotency-Key', {}],
    ['with one', { 'idempotency-key': 'lost' }],
  ])('leaves the outcome of an interaction %s unknown', async (_which, headers) => {
    const sent = await newInteraction();
    const answer = await whileLost(() => api.post('/user-interactions', sent, headers));
    expect([answer.status, answer.body.code]).toEqual([500, 'outcome_unknown']);
    expect((await api.post('/user-interactions', sent, headers)).status).toBe(201);
    expect(await stored(sent.item_id)).toHaveLength(1);
  });

  it('leaves the outcome of an upload unknown', async () => {
    const tags = many(3, () => newTag());
    const { status, body } = await whileLost(() => api.upload('tags', tags));
    const codes = body.batches[0].data.errors.map(({ code }: { code: string }) => code);
    expect([status, new Set(codes)]).toEqual([500, new Set(['outcome_unknown'])]);
    expect((await api.upload('tags', tags)).status).toBe(200);
  });
});

it('a batch that hits a split shard is run again', async () => {
  const tags = many(3, () => newTag());
  const gone = 'could not find valid entry for shard 102045';
  const { status } = await whileSaying('XX000', gone, () => api.upload('tags', tags), { times: 1 });
  expect(status).toBe(200);
  expect((await api.batch('tags', tags)).counts).toMatchObject({ unchanged: 3 });
});

it('maintenance that fails because of it names the worker, and does not report the coordinator as unavailable', async () => {
  const words = `${prefix}server closed the connection unexpectedly`;
  const failed = () =>
    server.log.map((line) => JSON.parse(line)).filter(({ chore }) => chore === 'roll up counts');
  await whileSaying(
    '08006',
    words,
    async () => {
      await api.upload('tags', [newTag()]);
      await expect.poll(failed).not.toEqual([]);
    },
    { moment: 'roll up' },
  );
  expect(failed()[0].err).toMatchObject({ message: 'SQLSTATE 08006', worker: 'worker:5432' });
  expect(server.log.join('\n')).not.toContain('cannot be used');
});
