// @module-tag full
// @module-tag postgres-15

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { listRejections } from '../support/rejections.ts';
import { makeRecord, recordTypes, type StoredIds, storeReferenced } from './record-types.ts';

/**
 * On Citus, a statement runs in a worker's session, which the service's own session settings do not affect. Here, the
 * options in DATABASE_URL override the service's settings, and every response must stay the same.
 */

const odd = '-c timezone=Asia/Kathmandu -c datestyle=German -c intervalstyle=sql_standard';

// PgBouncer refuses such options. On Citus, the coordinator would send times to the workers in a format that they
// cannot parse, and every test on Citus already covers worker sessions.
describe.skipIf(inject('poolerPort') !== null || process.env.CITUS_URL)(
  'whatever the settings of a session',
  () => {
    let usual: BuiltServer;
    let other: BuiltServer;
    let api: Api;
    let otherApi: Api;
    let stored: StoredIds;
    const times = { created: '2026-03-04T20:06:07.123456Z', updated: '0001-01-01T00:00:00Z' };

    beforeAll(async () => {
      usual = await startBuiltServer();
      const url = new URL(usual.databaseUrl);
      url.searchParams.set('options', odd);
      other = await startBuiltServer({ DATABASE_URL: url.href });
      const key = await usual.createKey('acme');
      api = apiOf(usual.url, key);
      otherApi = apiOf(other.url, key);
      stored = await storeReferenced(api);
      await usual.createKey('unused');
    });
    afterAll(async () => {
      await usual?.stop();
      await other?.stop();
    });

    it('its options do replace the ones of the service', async () => {
      const { default: pg } = await import('pg');
      const url = new URL(usual.databaseUrl);
      url.searchParams.set('options', odd);
      const client = new pg.Client({ connectionString: url.href, options: '-c timezone=UTC' });
      await client.connect();
      const { rows } = await client.query("select current_setting('timezone') as timezone");
      await client.end();
      expect(rows).toEqual([{ timezone: 'Asia/Kathmandu' }]);
    });

    it.each(Object.keys(recordTypes))('%s are stored and read the same', async (type) => {
      const one = makeRecord(type, stored, times);
      const two = makeRecord(type, stored, times);
      expect((await api.upload(type, [one])).status).toBe(200);
      expect((await otherApi.upload(type, [two])).status).toBe(200);
      // Each service finds that the record stored by the other is unchanged.
      expect((await otherApi.batch(type, [one])).counts).toMatchObject({ unchanged: 1 });
      expect((await api.batch(type, [two])).counts).toMatchObject({ unchanged: 1 });
      const exported = (from: Api) => from.get(`/v1/data/${type}`, { accept: 'application/x-ndjson' });
      const { body } = await exported(api);
      expect(body).toContain('2026-03-04T20:06:07.123456Z');
      expect((await exported(otherApi)).body).toBe(body);
      const since = `/v1/data/${type}?stored_since=${new Date(Date.now() - 3_600_000).toISOString()}`;
      expect((await otherApi.get(since)).body).toEqual((await api.get(since)).body);
    });

    it('a rejection keeps the same text', async () => {
      const dangling = makeRecord('branches', { ...stored, shops: randomUUID() }, times);
      await api.upload('branches', [dangling]);
      const [kept] = await listRejections(api);
      await otherApi.upload('branches', [dangling]);
      const [keptByOther] = await listRejections(otherApi);
      expect(keptByOther?.request_id).not.toBe(kept?.request_id);
      expect(JSON.stringify(keptByOther?.record)).toBe(JSON.stringify(kept?.record));
      expect(kept?.record).toMatchObject(times);
    });

    it('receipts, rejections, counts and interactions are read the same', async () => {
      const item = { item_type: 'SHOP', item_id: stored.shops, event_timestamp: '2026-03-04T20:06:07Z' };
      const sent = { interaction_type: 'SHARE', ...item };
      expect((await otherApi.post('/user-interactions', sent)).status).toBe(201);
      for (const path of ['/v1/data', '/v1/requests', '/v1/rejections', '/user-interactions']) {
        const { status, body } = await api.get(path);
        expect(status).toBe(200);
        expect((await otherApi.get(path)).body).toEqual(body);
      }
    });

    it.each([
      ['organisations', 'list', '--json'],
      // This key is never used, because a key's last use is saved only from time to time.
      ['keys', 'list', '--organisation', 'unused', '--json'],
      ['audit', '--json'],
    ])('%s %s prints the same', async (...command) => {
      expect(await other.run(...command)).toBe(await usual.run(...command));
    });
  },
);
