// @module-tag full
// @module-tag long

import { afterAll, beforeAll, expect, it } from 'vitest';
import { type AdminServer, patch, startAdminServer } from '../support/admin-server.ts';
import { type Api, apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { expectError } from '../support/expect-error.ts';
import { many, newTag } from '../support/new-records.ts';

/** A quota takes effect in every process: the leader measures usage, and the other processes reload the affected keys. */

let server: AdminServer;
beforeAll(async () => {
  server = await startAdminServer();
});
afterAll(() => server.stop());

const path = '/admin/v1/organisations';
const tags = (count: number) => many(count, () => newTag());
const dryRun = (api: Api) => api.post('/v1/data/tags?dry_run=true', { records: tags(1) });

it('is enforced by all processes, shown to the operator, reported to clients, and ends when it is raised', async () => {
  const other = await startBuiltServer({ DATABASE_URL: server.databaseUrl });
  try {
    const key = await server.createKey('acme');
    const neighbour = apiOf(server.url, await server.createKey('neighbour'));
    const apis = [apiOf(server.url, key), apiOf(other.url, key)];
    const [api] = apis as [Api];
    await api.upload('tags', tags(10));
    await server.run('organisations', 'limit', 'acme', '--records-stored', '12', '--bytes-stored', '1000000');
    // A dry run stores nothing, but its response includes the header.
    for (const one of apis)
      await expect
        .poll(async () => (await dryRun(one)).headers.get('intake-quota'), { interval: 500 })
        .toBe('"records";used=10;max=12');
    await api.upload('tags', tags(3));
    for (const one of apis)
      await expect
        .poll(async () => (await dryRun(one)).headers.get('intake-quota'), { interval: 500 })
        .toBe('"records";used=13;max=12');
    for (const one of apis) {
      const refused = await one.upload('tags', tags(1));
      expectError(refused, 403);
      expect(refused.body.code).toBe('quota_exceeded');
      expect(refused.headers.get('retry-after')).toBeNull();
    }
    expect((await neighbour.upload('tags', tags(3))).status).toBe(200);

    const shown = await server.run('organisations', 'limit', 'acme');
    expect(shown).toContain('records-stored\t12\tset for this organisation, 13 stored');
    const { body } = await server.admin.get(`${path}/acme`);
    expect(body).toMatchObject({ records_stored_max: 12, records_stored: 13 });
    expect(body.bytes_stored).toBeGreaterThan(13 * 50);
    const { organisations } = (await server.admin.get(path)).body;
    expect(organisations.find(({ slug }: { slug: string }) => slug === 'acme')).toMatchObject(body);

    await patch(server.admin, `${path}/acme`, { records_stored_max: 100 });
    for (const one of apis) {
      await expect.poll(async () => (await one.upload('tags', tags(1))).status, { interval: 500 }).toBe(200);
      expect((await one.upload('tags', tags(1))).headers.get('intake-quota')).toBeNull();
    }
  } finally {
    await other.stop();
  }
});
