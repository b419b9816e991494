// @module-tag full
// @module-tag pooler

import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { many, newTag } from '../support/new-records.ts';
import { countWaiting, queryDatabase } from '../support/query-database.ts';
import { expectReady } from '../support/ready.ts';

/** If all of an organisation's connections wait for its own locks, other organisations still get connections. */

let server: BuiltServer;
let hostile: Api;
let neighbour: Api;
let holder: pg.Client;
beforeAll(async () => {
  server = await startBuiltServer({ DATABASE_CONNECTIONS_MAX: '4', DATABASE_TIMEOUT_MS: '120000' });
  hostile = apiOf(server.url, await server.createKey('hostile'));
  neighbour = apiOf(server.url, await server.createKey('neighbour'));
  holder = new pg.Client({ connectionString: server.databaseUrl });
  await holder.connect();
});
afterAll(async () => {
  await holder.end();
  await server.stop();
});

it('others are served meanwhile, and the error after waiting too long never blames the database', async () => {
  const tag = newTag();
  await hostile.upload('tags', [tag]);
  const [organisation] = await queryDatabase<{ organisation_id: string }>(
    server.databaseUrl,
    `select organisation_id from organisations where slug = 'hostile'`,
  );
  await holder.query('begin');
  await holder.query('select from tags where organisation_id = $1 and tag_id = $2 for update', [
    organisation?.organisation_id,
    tag.tag_id,
  ]);
  const stuck = many(12, (at) => hostile.upload('tags', [{ ...tag, name: `name ${at}` }]));
  // Two of the four connections wait for the lock, which is the organisation's share. The rest are for its readers
  // and for other organisations.
  const waiting = () => countWaiting(server.databaseUrl);
  await expect.poll(waiting).toBe(2);
  for (let round = 0; round < 20; round++) {
    expect((await neighbour.upload('tags', [newTag()])).status).toBe(200);
    // If the machine stalls, the process is not ready only briefly, but the lock is held during all rounds.
    await expectReady(server.url);
  }
  expect(await waiting()).toBe(2);
  const waited = await Promise.race(stuck);
  expectError(waited, 503);
  // The first two requests waited for the lock, and the others waited for a connection.
  expect(waited.body.message).toMatch(/is overloaded|held up by another session/i);
  expect(waited.body.message).not.toMatch(/cannot be reached/i);
  await holder.query('rollback');
  const statuses = (await Promise.all(stuck)).map(({ status }) => status);
  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
});
