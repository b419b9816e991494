// @module-tag full

import { execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newShop, newTransaction } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { mainFile } from './support/run-intake.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [nightly = ''] = blocksOf('docs/uploading/library.md', 'sh');
const [, queue = ''] = blocksOf('docs/uploading/library.md', 'js');
const [browser = ''] = blocksOf('docs/uploading/interactions.md', 'js');

function blocksOf(page: string, kind: string): string[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(new RegExp(`^\`\`\`${kind}\n(.*?)^\`\`\`$`, 'gms'))].map(
    ([, block = '']) => block,
  );
}

let server: SharedServer;
let key: string;
let intake: Intake;
let folder: string;

beforeAll(async () => {
  server = await sharedServer();
  key = await server.createKey('recipes');
  intake = new Intake({ url: server.url, key });
  folder = mkdtempSync(join(tmpdir(), 'intake-recipes-'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(join(root, 'client'), join(folder, 'node_modules/intake-client'));
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
});

function putProgram(name: string, script: string): void {
  writeFileSync(join(folder, name), script);
  chmodSync(join(folder, name), 0o755);
}

it('the script for every night uploads changes, and continues after an interruption', async () => {
  const shops = many(3, () => newShop());
  const sales = shops.map(({ shop_id }) => newTransaction(shop_id));
  for (const [name, rows] of Object.entries({ shops, transactions: sales })) {
    const lines = [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))].map((row) =>
      row.join(),
    );
    writeFileSync(join(folder, `${name}.csv`), `${lines.join('\n')}\n`);
  }
  putProgram('intake', `#!/bin/sh\nexec '${process.execPath}' '${mainFile}' "$@"\n`);
  // psql is the only program that is faked. The fake prints what psql would print.
  putProgram(
    'psql',
    `#!/bin/bash\n[[ $4 =~ 'from '([a-z]+)' ' ]] && cat '${folder}'/"\${BASH_REMATCH[1]}.csv"\n`,
  );
  putProgram('nightly.sh', nightly);
  const env = {
    PATH: `${folder}:${process.env.PATH}`,
    INTAKE_URL: server.url,
    INTAKE_KEY: key,
    SOURCE_DATABASE: 'till',
  };
  for (const counts of [{ created: 3 }, { unchanged: 3 }]) {
    await promisify(execFile)('./nightly.sh', { cwd: folder, env });
    const { files } = JSON.parse(readFileSync(join(folder, 'last-upload.json'), 'utf8'));
    expect(files).toMatchObject([{ counts }, { counts }]);
    // A run was killed before the second file had its journal.
    const names = { reading: '', files: ['shops.csv', 'transactions.csv'] };
    writeFileSync(join(folder, 'export/shops.csv.journal'), `${JSON.stringify(names)}\n`);
  }
  await promisify(execFile)('./nightly.sh', { cwd: folder, env });
  expect(existsSync(join(folder, 'export/shops.csv.journal'))).toBe(false);
});

it('the program for a queue stores every message', async () => {
  writeFileSync(join(folder, 'queue.mjs'), queue);
  const env = { INTAKE_URL: server.url, INTAKE_KEY: key };
  const running = spawn(process.execPath, ['queue.mjs'], { cwd: folder, env });
  const tags = many(1_200, (at) => ({ tag_id: randomUUID(), name: at === 1_100 ? '' : 'vegan' }));
  running.stdin.end(tags.map((tag) => `${JSON.stringify(tag)}\n`).join(''));
  expect(await text(running.stdout)).toBe('1000 received, 0 failed\n200 received, 1 failed\n');
});

it('the program for a browser records clicks', async () => {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  // client/test/browser.test.ts tests the library in a browser, so this test covers only the rest of the recipe.
  const page = `const dataset = { intakeUrl: '${server.url}', intakeKey: '${key}' };
    globalThis.document = Object.assign(new EventTarget(), { documentElement: { dataset } });\n`;
  const click = `const event = new Event('click');
    Object.defineProperty(event, 'target', { value: { closest: () => ({ dataset: { shopId: '${shop.shop_id}' } }) } });
    document.dispatchEvent(event);\n`;
  writeFileSync(
    join(folder, 'browser.mjs'),
    browser.replace("intake-client';\n", `intake-client';\n${page}`) + click,
  );
  await promisify(execFile)(process.execPath, ['browser.mjs'], { cwd: folder });
  const recorded: string[] = [];
  for await (const { item_id } of intake.interactions.list()) recorded.push(item_id);
  expect(recorded).toEqual([shop.shop_id]);
});
