import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf, everyPermission } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { many } from '../support/new-records.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Reads hide the people of open erasures, so an organisation can have only a limited number of these people. */

const openIdsMax = 50_000;
const idsPerErasure = 5_000;
let server: BuiltServer;
let api: Api;
let other: Api;
beforeAll(async () => {
  const DATABASE_URL = await createTestDatabase();
  // No process becomes the leader, so every erasure stays open.
  await queryDatabase(
    DATABASE_URL,
    `insert into leases (name, holder, ends_at) values ('maintenance', $1, now() + interval '1 day')`,
    [randomUUID()],
  );
  server = await startBuiltServer({ DATABASE_URL, NODE_OPTIONS: '--max-old-space-size=256' });
  api = apiOf(server.url, await server.createKey('evil', ...everyPermission));
  other = apiOf(server.url, await server.createKey('other', ...everyPermission));
});
afterAll(() => server.stop());

it('an organisation with 50,000 open ids gets 409, and reads still work', async () => {
  const answers: unknown[] = [];
  for (let at = 0; at < 17; at++) {
    const { status, body } = await api.post('/v1/erasures', {
      user_ids: many(idsPerErasure, () => randomUUID()),
    });
    answers.push([status, body.code]);
    if (status !== 202) break;
  }
  const accepted = many(openIdsMax / idsPerErasure, () => [202, undefined]);
  expect(answers).toEqual([...accepted, [409, 'too_many_erasures']]);
  const reads = await Promise.all(many(6, () => api.get('/v1/rejections?limit=1')));
  expect(reads.map(({ status }) => status)).toEqual(many(6, () => 200));
  const { status } = await other.post('/v1/erasures', { user_ids: ['somebody'] });
  expect(status).toBe(202);
});
