import { expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { startBuiltServer } from '../support/built-server.ts';
import { createTestDatabase } from '../support/database.ts';
import { runCommand } from '../support/run-command.ts';

it('the token of the admin API and the keys it issues are in no log line and no audit entry', async () => {
  const databaseUrl = await createTestDatabase();
  const run = await runCommand(['tokens', 'issue', 'planted', '--json'], { DATABASE_URL: databaseUrl });
  const { token } = JSON.parse(run.stdout);
  const server = await startBuiltServer({
    DATABASE_URL: databaseUrl,
    ADMIN_DATABASE_URL: databaseUrl,
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
    const planted = [token.slice(-49), issued.body.key.split('_')[2], rotated.body.key.split('_')[2]];
    const listed = JSON.stringify((await admin.get('/admin/v1/keys')).body);
    const log = JSON.stringify((await admin.get('/admin/v1/audit')).body);
    expect(log).toContain('"actor":"token:planted"');
    const commands = [await server.run('audit', '--json'), await server.run('tokens', 'list', '--json')];
    const told = [...server.log, listed, log, ...commands];
    expect(told.filter((text) => planted.some((secret) => text.includes(secret)))).toEqual([]);
  } finally {
    await server.stop();
  }
});
