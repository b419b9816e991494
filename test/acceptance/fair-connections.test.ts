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

/** An organisation that waits for its own locks with everything it may have does not take connections from another. */

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

it('others are served meanwhile, and whoever waited too long is told so, and never that the database is away', {
  timeout: 120_000,
}, async () => {
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
  // A share of four connections waits for the lock, and no more; the rest is for its readers and for others.
  const waiting = () => countWaiting(server.databaseUrl);
  await expect.poll(waiting).toBe(2);
  for (let round = 0; round < 20; round++) {
    expect((await neighbour.upload('tags', [newTag()])).status).toBe(200);
    // A machine that pauses for seconds makes a process unready for a moment; the lock does so for as long as it is held.
    await expectReady(server.url);
  }
  expect(await waiting()).toBe(2);
  const waited = await Promise.race(stuck);
  expectError(waited, 503);
  // The first two waited for the lock, the others for a connection.
  expect(waited.body.message).toMatch(/more is arriving|held up by another session/i);
  expect(waited.body.message).not.toMatch(/cannot be reached/i);
  await holder.query('rollback');
  const statuses = (await Promise.all(stuck)).map(({ status }) => status);
  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
});
