import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type SharedServer, sharedServer } from '../support/built-server.ts';
import { newShop, newTag } from '../support/new-records.ts';

/** Runs the program in docs/uploading/feed.md the way a reader would. */

const text = readFileSync(fileURLToPath(new URL('../../docs/uploading/feed.md', import.meta.url)), 'utf8');
const program = /```js\n(.*?)```/s.exec(text)![1]!;
const folder = mkdtempSync(join(tmpdir(), 'intake-changes-'));
let server: SharedServer;
let api: Api;
let running: ChildProcess;
const printed: string[] = [];

beforeAll(async () => {
  server = await sharedServer();
  const key = await server.createKey('acme');
  api = apiOf(server.url, key);
  writeFileSync(join(folder, 'copy.mjs'), program);
  running = spawn(process.execPath, [join(folder, 'copy.mjs')], {
    env: { ...process.env, INTAKE_URL: server.url, INTAKE_KEY: key },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface({ input: running.stdout! }).on('line', (line) => printed.push(line));
});
afterAll(async () => {
  running?.kill();
  rmSync(folder, { recursive: true, force: true });
});

it('the program in docs/uploading/feed.md copies existing records, and then follows changes', async () => {
  const [shop, tag] = [newShop(), newTag()];
  await api.upload('shops', [shop]);
  await api.upload('tags', [tag]);
  await expect.poll(() => printed.join('\n')).toContain(`shops ${shop.shop_id}`);
  await expect.poll(() => printed.join('\n')).toContain(`tags ${tag.tag_id}`);
  await api.upload('tags', [{ ...tag, name: 'organic', is_deleted: true }]);
  await expect
    .poll(() => printed.join('\n'))
    .toMatch(new RegExp(`tags ${tag.tag_id} .*organic.*"is_deleted":true`));
});
