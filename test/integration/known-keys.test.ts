import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { FailedKeys } from '../../src/admission/failed-keys.ts';
import { changedApiKeys } from '../../src/keys/api-keys.ts';
import { authenticate, KnownKeys, type Principal } from '../../src/keys/authenticate.ts';
import { keyIdOf, makeKey } from '../../src/keys/key-format.ts';
import { changeOrganisation, issueKey, revokeKey, rotateKey } from '../../src/operator/audited-actions.ts';
import type { Pool } from '../../src/postgres/pool.ts';
import { createTestApp, type TestApp } from '../support/app.ts';

let test: TestApp;
beforeAll(async () => {
  // Fake the clock, because cached keys expire after four seconds without a successful poll, and a machine may stall
  // for that long.
  vi.useFakeTimers({ toFake: ['performance'] });
  test = await createTestApp();
});
afterAll(async () => {
  await test.close();
  vi.useRealTimers();
});

const by = { actor: 'test' };
const failedKeys = new FailedKeys(1_000_000);
const idOf = (key: string) => keyIdOf(key) as string;

/** Returns the same pool with a query counter. */
function counting(): { pool: Pool; lookUps: () => number } {
  let count = 0;
  const pool = new Proxy(test.pool, {
    get(target, property) {
      const value = Reflect.get(target, property);
      if (property !== 'query') return value;
      return (...args: Parameters<Pool['query']>) => {
        if (JSON.stringify(args[0]).includes('look_up_key')) count++;
        return Reflect.apply(value, target, args);
      };
    },
  });
  return { pool, lookUps: () => count };
}

async function watched() {
  const { pool, lookUps } = counting();
  const keys = new KnownKeys(pool);
  let answers = 0;
  const stop = keys.watch(
    (error) => expect.fail(String(error)),
    () => void answers++,
  );
  onTestFinished(stop);
  /** Waits until this many more polls for changes have been answered. The first poll may already be running. */
  const answered = async (times: number) => {
    const wanted = answers + times;
    await expect.poll(() => answers).toBeGreaterThanOrEqual(wanted);
  };
  // The process caches nothing before the first poll has ended.
  await answered(1);
  const ask = (key: string): Promise<Principal> =>
    authenticate(keys, failedKeys, { authorization: `Bearer ${key}`, address: '127.0.0.1' });
  return { keys, ask, lookUps, answered };
}

it('a key is looked up once, however often it is used', async () => {
  const { key } = await test.organisation('once');
  const { ask, lookUps } = await watched();
  for (let use = 0; use < 1_000; use++) await ask(key);
  expect(lookUps()).toBe(1);
});

it('a changed key is forgotten with the next poll, and nothing else is', async () => {
  const [one, other, limited] = [
    await test.organisation('changed-key'),
    await test.organisation('unchanged'),
    await test.organisation('changed-organisation'),
  ];
  const { ask, lookUps, answered } = await watched();
  // While another transaction is open, a new key is reported as changed once.
  await answered(1);
  for (const { key } of [one, other, limited]) await ask(key);
  await revokeKey(test.pool, by, idOf(one.key));
  await changeOrganisation(test.pool, by, 'changed-organisation', { records_per_second_max: 7 });
  await answered(2);
  await expect(ask(one.key)).rejects.toMatchObject({ code: 'unauthorized' });
  expect((await ask(limited.key)).limits.records_per_second_max).toBe(7);
  const before = lookUps();
  await ask(other.key);
  expect(lookUps()).toBe(before);
});

it('a change is reported although a transaction that started before it ends after it', async () => {
  const { key } = await test.organisation('out-of-order');
  const late = await test.pool.connect();
  onTestFinished(() => late.release(true));
  await late.query('begin');
  await late.query('update api_keys set revoked_at = now() where key_id = $1', [idOf(key)]);
  const { key: another } = await test.organisation('in-between');
  const { upTo } = await changedApiKeys(test.pool, null);
  await revokeKey(test.pool, by, idOf(another));
  const first = await changedApiKeys(test.pool, upTo);
  expect([...first.keys.keys()]).toContain(idOf(another));
  await late.query('commit');
  const second = await changedApiKeys(test.pool, first.upTo);
  expect([...second.keys.keys()]).toContain(idOf(key));
});

it('a change is reported whichever statement makes it', async () => {
  const { key } = await test.organisation('by-hand');
  const { ask, answered } = await watched();
  await ask(key);
  await test.pool.query('update api_keys set revoked_at = now() where key_id = $1', [idOf(key)]);
  await answered(2);
  await expect(ask(key)).rejects.toMatchObject({ code: 'unauthorized' });
});

it('using a key does not count as a change', async () => {
  const { key } = await test.organisation('used');
  const row = async () => {
    const text = 'select changed_in, last_used_at from api_keys where key_id = $1';
    return (await test.pool.query(text, [idOf(key)])).rows[0];
  };
  const { changed_in, last_used_at } = await row();
  await test.pool.query('select note_api_keys_used($1)', [[idOf(key)]]);
  expect(last_used_at).toBe(null);
  expect(await row()).toEqual({ changed_in, last_used_at: expect.any(String) });
});

it('a change that is reported repeatedly while an old transaction is running is forgotten once', async () => {
  const [one, other, rotated] = [
    await test.organisation('told-again'),
    await test.organisation('told-not'),
    await test.organisation('rotated'),
  ];
  const old = await test.pool.connect();
  onTestFinished(() => old.release(true));
  await old.query('begin');
  await old.query('select pg_current_xact_id()');
  const { ask, lookUps, answered } = await watched();
  await ask(one.key);
  await changeOrganisation(test.pool, by, 'told-again', { records_per_second_max: 7 });
  await rotateKey(test.pool, by, idOf(rotated.key), { graceMs: 3_600_000, expiresAt: null });
  await answered(2);
  expect((await ask(one.key)).limits.records_per_second_max).toBe(7);
  for (const { key } of [other, rotated]) await ask(key);
  const before = lookUps();
  await answered(2);
  for (const { key } of [one, other, rotated]) await ask(key);
  expect(lookUps()).toBe(before);
  await changeOrganisation(test.pool, by, 'told-again', { records_per_second_max: 8 });
  await revokeKey(test.pool, by, idOf(rotated.key));
  await answered(2);
  expect((await ask(one.key)).limits.records_per_second_max).toBe(8);
  await expect(ask(rotated.key)).rejects.toMatchObject({ code: 'unauthorized' });
});

it('a thousand concurrent requests with an unknown key look it up once', async () => {
  const { key } = await test.organisation('herd');
  const { pool, lookUps } = counting();
  const keys = new KnownKeys(pool);
  await Promise.all(Array.from({ length: 1_000 }, () => keys.find(idOf(key))));
  expect(lookUps()).toBe(1);
});

it('a thousand keys of one address are all accepted at once', async () => {
  const { key, organisationId } = await test.organisation('crowd');
  const issued: { key: string }[] = [];
  const issue = async () => {
    const asked = { organisationId, permissions: [], label: null, expiresAt: null };
    while (issued.length < 1_000) issued.push(await issueKey(test.pool, by, asked));
  };
  // Do not exceed the number of connections, because waiting for a connection times out after five seconds.
  await Promise.all(Array.from({ length: 8 }, issue));
  const keys = new KnownKeys(test.pool);
  const few = new FailedKeys(10);
  const ask = (one: string) =>
    authenticate(keys, few, { authorization: `Bearer ${one}`, address: '192.0.2.1' });
  const principals = await Promise.all([key, ...issued.map((one) => one.key)].map(ask));
  expect(new Set(principals.map(({ keyId }) => keyId)).size).toBe(1 + issued.length);
});

it('a thousand wrong keys of one address at once are looked up at most as often as it may fail', async () => {
  const { pool, lookUps } = counting();
  const keys = new KnownKeys(pool);
  const few = new FailedKeys(10);
  const answers = await Promise.all(
    Array.from({ length: 1_000 }, () =>
      authenticate(keys, few, { authorization: `Bearer ${makeKey().key}`, address: '192.0.2.1' }).catch(
        ({ code }: { code: string }) => code,
      ),
    ),
  );
  const count = (code: string) => answers.filter((answer) => answer === code).length;
  expect([count('unauthorized'), count('too_many_failed_keys')]).toEqual([10, 990]);
  // Another lookup may be pending when the tenth key fails.
  expect(lookUps()).toBeLessThanOrEqual(12);
});

it('a key that is no longer looked up for one address is looked up for another', async () => {
  const { key } = await test.organisation('shared-look-up');
  const keys = new KnownKeys(test.pool);
  const few = new FailedKeys(10);
  const ask = (one: string, address: string) =>
    authenticate(keys, few, { authorization: `Bearer ${one}`, address }).then(
      () => 'let in',
      ({ code }: { code: string }) => code,
    );
  const wrong = Array.from({ length: 100 }, () => ask(makeKey().key, '192.0.2.1'));
  const refused = Array.from({ length: 5_000 }, () => ask(key, '192.0.2.1'));
  expect(await ask(key, '192.0.2.2')).toBe('let in');
  expect(new Set(await Promise.all(refused))).toEqual(new Set(['too_many_failed_keys']));
  await Promise.all(wrong);
});

it('a known key passes at an address that has failed too often, although it must be looked up again', async () => {
  const { key } = await test.organisation('found-before');
  const { key: neverFound } = await test.organisation('never-found');
  const few = new FailedKeys(10);
  const { keys, lookUps, answered } = await watched();
  const ask = (one: string, of = keys) =>
    authenticate(of, few, { authorization: `Bearer ${one}`, address: '192.0.2.1' }).then(
      () => 'let in',
      ({ code }: { code: string }) => code,
    );
  // This instance does not poll, so it never trusts a cached key.
  const unasked = new KnownKeys(test.pool);
  expect([await ask(key), await ask(key, unasked)]).toEqual(['let in', 'let in']);
  for (let at = 0; at < 10; at++) expect(await ask(makeKey().key)).toBe('unauthorized');
  await changeOrganisation(test.pool, by, 'found-before', { records_per_second_max: 7 });
  await answered(2);
  const before = lookUps();
  expect(await Promise.all(Array.from({ length: 5 }, () => ask(key)))).toEqual(Array(5).fill('let in'));
  expect(lookUps()).toBe(before + 1);
  for (let at = 0; at < 5; at++) expect(await ask(key, unasked)).toBe('let in');
  expect([await ask(neverFound), await ask(makeKey().key)]).toEqual(Array(2).fill('too_many_failed_keys'));
});

it('the poll for changes uses the indexes, with many keys', async () => {
  await test.organisation('many');
  await test.pool.query(
    `insert into api_keys (key_id, organisation_id, key_sha256, permissions, changed_in)
     select 'many-' || n, organisation_id, '\\x00', '{}', '3'::xid8
     from organisations, generate_series(1, 50000) n where slug = 'many'`,
  );
  await test.pool.query('analyze api_keys, organisations');
  const { rows } = await test.pool.query<{ 'QUERY PLAN': string }>(
    `explain (analyze, buffers)
     select k.key_id, null::uuid from api_keys k where k.changed_in >= pg_snapshot_xmin(pg_current_snapshot())`,
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toContain('api_keys_changed');
  expect(plan).not.toContain('Seq Scan');
});
