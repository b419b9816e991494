import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';

it('the token of the admin API and the keys it issues are in no log line and no audit entry', async () => {
  const token = `${randomUUID()}-planted-token`;
  const databaseUrl = await createTestDatabase();
  const server = await startBuiltServer({
    DATABASE_URL: databaseUrl,
    ADMIN_DATABASE_URL: databaseUrl,
    ADMIN_TOKEN: token,
    ADMIN_PORT: '0',
    LOG_LEVEL: 'trace',
  });
  try {
    const listening = /Admin API listening at (http[^"\s]+)/;
    await expect.poll(() => server.log.some((line) => listening.test(line))).toBe(true);
    const admin = apiOf(listening.exec(server.log.join('\n'))![1]!, token);
    await admin.post('/admin/v1/organisations', { slug: 'acme', name: 'Acme' });
    const issued = await admin.post('/admin/v1/keys', { organisation: 'acme', label: 'tills' });
    expect(issued.status).toBe(201);
    const rotated = await admin.post(`/admin/v1/keys/${issued.body.key_id}/rotate`, {});
    expect(rotated.status).toBe(201);
    const wrong = await apiOf(listening.exec(server.log.join('\n'))![1]!, `${token}x`).get('/admin/v1/keys');
    expect([wrong.status, JSON.stringify(wrong.body).includes(token)]).toEqual([401, false]);
    const inAddress = await admin.get(`/admin/v1/keys?organisation=${token}&${issued.body.key}=1`);
    expect(inAddress.status).toBe(400);
    const planted = [token, issued.body.key.split('_')[2], rotated.body.key.split('_')[2]];
    const listed = JSON.stringify((await admin.get('/admin/v1/keys')).body);
    const told = [...server.log, listed, await server.run('audit', '--json')];
    expect(told.filter((text) => planted.some((secret) => text.includes(secret)))).toEqual([]);
  } finally {
    await server.stop();
  }
});
