// @module-tag full

import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { makeCertificate } from '../support/certificate.ts';
import { createTestDatabase } from '../support/database.ts';
import { expectError } from '../support/expect-error.ts';
import { sendRaw } from '../support/raw-http.ts';
import { expectReady } from '../support/ready.ts';
import { runCommand } from '../support/run-command.ts';

/** All traffic is encrypted, by the service itself or by a proxy in front of it (row 39 of docs/api-behaviour.md). */

const folder = mkdtempSync(join(tmpdir(), 'intake-tls-'));
const { certFile, keyFile, pem: ca } = makeCertificate(folder, 'localhost');
let databaseUrl: string;
let key: string;
beforeAll(async () => {
  databaseUrl = await createTestDatabase();
  const run = (...args: string[]) => runCommand(args, { DATABASE_URL: databaseUrl });
  await run('organisations', 'create', 'acme');
  key = JSON.parse((await run('keys', 'issue', '--organisation', 'acme', '--json')).stdout).key;
});
afterAll(() => rmSync(folder, { recursive: true }));

describe('a service that serves TLS itself', () => {
  let server: BuiltServer;
  beforeAll(async () => {
    const tls = { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile };
    server = await startBuiltServer({ DATABASE_URL: databaseUrl, ...tls });
  });
  afterAll(() => server.stop());

  function get(path: string, options: object): Promise<number> {
    return new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}` };
      const sent = request(server.url + path, { headers, agent: false, ...options }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sent.on('error', reject).end();
    });
  }

  it('39: answers over HTTPS, with its certificate', async () => {
    expect(server.url).toMatch(/^https:/);
    expect(await get('/user-interactions', { ca })).toBe(200);
    expect(await get('/health/live', { ca })).toBe(200);
    await expect(get('/health/live', {})).rejects.toThrow(/self-signed/);
  });

  it('39: does not support TLS older than 1.2', async () => {
    const old = { ca, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' };
    await expect(get('/health/live', { ...old, ciphers: 'DEFAULT@SECLEVEL=0' })).rejects.toThrow();
  });

  it('39: does not answer without encryption, not even with a redirect', async () => {
    const clear = server.url.replace('https:', 'http:');
    await expect(sendRaw(clear, 'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n')).rejects.toThrow(
      /closed/,
    );
  });
});

describe('a service behind a proxy', () => {
  let server: BuiltServer;
  beforeAll(async () => {
    server = await startBuiltServer({ DATABASE_URL: databaseUrl, TRUSTED_PROXY: '127.0.0.1' });
  });
  afterAll(() => server.stop());

  it('39: answers requests that the proxy received over HTTPS', async () => {
    const answer = await apiOf(server.url, key).get('/user-interactions', { 'x-forwarded-proto': 'https' });
    expect(answer.status).toBe(200);
  });

  it.each([
    ['nothing', {}],
    ['http', { 'x-forwarded-proto': 'http' }],
    ['something else', { 'x-forwarded-proto': 'httpss' }],
    ['an empty word', { 'x-forwarded-proto': '' }],
  ] as [string, Record<string, string>][])(
    '39: refuses requests that the proxy received over %s',
    async (_what, headers) => {
      for (const path of ['/user-interactions', '/openapi.json', '/docs/', '/nowhere']) {
        expectError(await apiOf(server.url, key).get(path, headers), 403);
      }
    },
  );

  it('39: answers direct health probes', async () => {
    expect((await apiOf(server.url).get('/health/live')).status).toBe(200);
    await expectReady(server.url);
  });

  it('28: refuses them before it checks the key', async () => {
    const answer = await apiOf(server.url).get('/user-interactions');
    expectError(answer, 403);
    expect(answer.body.message).toMatch(/HTTPS/);
  });
});

describe('a service behind a proxy elsewhere', () => {
  let server: BuiltServer;
  beforeAll(async () => {
    server = await startBuiltServer({ DATABASE_URL: databaseUrl, TRUSTED_PROXY: '192.0.2.1' });
  });
  afterAll(() => server.stop());

  it('39: does not trust HTTPS headers from anyone else', async () => {
    const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.1' };
    expectError(await apiOf(server.url, key).get('/user-interactions', headers), 403);
  });
});
