// @module-tag full

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { Intake } from '../src/index.ts';
import { deriveId } from '../src/parsing/values/derived-id.ts';
import { type Place, runIntake } from './support/run-intake.ts';

/** This file tests that a nightly job notices when a file has a record where it usually has its totals. */

let server: SharedServer;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await sharedServer();
});

let made = 0;
beforeEach(async () => {
  const key = await server.createKey(`skipped-rows-${++made}`);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-skipped-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd } };
  put('mapping.json', JSON.stringify({ shops: { id_from: ['Nr'], skip_top: 1, skip_bottom: 1 } }));
  return () => rmSync(cwd, { recursive: true });
});

const put = (name: string, text: string) => writeFileSync(join(place.cwd, name), text);
const run = (command: string, ...options: string[]) =>
  runIntake(place, command, 'shops.csv', '--mapping', 'mapping.json', ...options);
const shop = (key: string) => intake.data.get('shops', deriveId('shops', [key]));

const table = 'Shops of May\nNr;name;region;is_public\nK1;Eck;DE;no\nK2;Am Markt;DE;yes\n';

it('rows that are skipped are shown by check and upload', async () => {
  put('shops.csv', `${table}Total;2;;1\n`);
  const shown =
    /Rows that were not read, because of "skip_top" and "skip_bottom"\nFile +Rows +Beginning with\nshops\.csv +2 +1: Shops of May; 5: Total, 2, 1\n/;
  for (const command of ['check', 'upload']) {
    const { exitCode, stdout } = await run(command);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(shown);
  }
  const rows = [
    { line: 1, text: 'Shops of May' },
    { line: 5, text: 'Total, 2, 1' },
  ];
  expect(JSON.parse((await run('upload', '--json')).stdout)).toMatchObject({
    files: [{ skipped_rows: rows }],
  });
  const lines = (await run('check', '--json')).stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { line: 1, code: 'skipped_row', message: 'is skipped: Shops of May' },
    { line: 5, code: 'skipped_row' },
  ]);
});

it('a record is not skipped like a line of totals: the command stops, and continues once there is such a line', async () => {
  put('shops.csv', table);
  for (const command of ['check', 'upload']) {
    const { exitCode, stderr } = await run(command);
    expect(exitCode).toBe(2);
    expect(stderr).toContain('shops.csv: line 4 is a complete record, but "skip_bottom" in the mapping file');
  }
  expect(await shop('K1')).toMatchObject({ name: 'Eck' });
  await expect(shop('K2')).rejects.toMatchObject({ status: 404 });
  put('shops.csv', `${table}Total\n`);
  expect(await run('upload', '--resume')).toMatchObject({ exitCode: 0 });
  expect(await shop('K2')).toMatchObject({ name: 'Am Markt' });
});
