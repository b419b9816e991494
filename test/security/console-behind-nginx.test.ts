// @module-tag full

import { once } from 'node:events';
import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { many } from '../support/new-records.ts';
import { type Nginx, nginxIsInstalled, startNginx } from '../support/nginx.ts';

/** Tests signing in to the console through nginx with the configuration in deploy/, on a port other than 443. */

describe.skipIf(!nginxIsInstalled)('the console behind nginx (needs nginx)', () => {
  let server: BuiltServer;
  let nginx: Nginx;
  let key: string;
  beforeAll(async () => {
    server = await startBuiltServer({ TRUSTED_PROXY: '127.0.0.1' });
    key = await server.createKey('acme');
    nginx = await startNginx(many(4, () => Number(new URL(server.url).port)));
  });
  afterAll(async () => {
    await nginx?.stop();
    await server?.stop();
  });

  async function ask(method: string, headers: Record<string, string>, body = '') {
    const sent = request(`${nginx.url}/console/api/session`, { method, headers, ca: nginx.ca }).end(body);
    const [answer] = await once(sent, 'response');
    answer.resume();
    return { status: answer.statusCode as number, cookie: String(answer.headers['set-cookie'] ?? '') };
  }

  const signIn = (origin: string) =>
    ask('POST', { origin, 'content-type': 'application/json' }, JSON.stringify({ key }));

  it('its own pages can sign in, with a cookie that is only sent over HTTPS', async () => {
    const { status, cookie } = await signIn(nginx.url);
    expect(status).toBe(201);
    expect(cookie).toMatch(/^__Host-intake_console=[\w-]+; Path=\/; .*; HttpOnly; SameSite=Strict; Secure,/);
    expect((await ask('GET', { cookie: cookie.split(';')[0] as string })).status).toBe(200);
  });

  it('refuses pages that name themselves in X-Forwarded-Host, and pages without HTTPS', async () => {
    const body = JSON.stringify({ key });
    const forge = (headers: Record<string, string>) =>
      ask('POST', { 'content-type': 'application/json', ...headers }, body);
    const host = 'evil.example';
    expect((await forge({ origin: `https://${host}`, 'x-forwarded-host': host })).status).toBe(403);
    expect((await forge({ origin: nginx.url, 'x-forwarded-host': host })).status).toBe(201);
    expect((await forge({ origin: nginx.url.replace('https:', 'http:') })).status).toBe(403);
  });

  it('refuses pages of another host, and of another port of the same host', async () => {
    for (const origin of ['https://elsewhere.example', 'https://127.0.0.1', server.url])
      expect([origin, (await signIn(origin)).status]).toEqual([origin, 403]);
  });
});
