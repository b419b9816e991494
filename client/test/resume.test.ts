// @module-tag full

import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { many, newShop } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { startHoldingProxy } from './support/http-proxy.ts';
import { runIntake, startIntake } from './support/run-intake.ts';

/** The number of kills. A higher number takes minutes: KILLS=30 npx vitest run client/test/resume.test.ts */
const kills = Number(process.env.KILLS ?? 2);

let server: BuiltServer;

beforeAll(async () => {
  server = await startBuiltServer();
});

afterAll(() => server.stop());

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').trimEnd().split('\n');
  } catch {
    return [];
  }
}

it(`an upload that is killed ${kills} times ends complete, and counts and keeps nothing twice`, async () => {
  const key = await server.createKey('resume');
  const intake = new Intake({ url: server.url, key });
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const rows = many(12_000 + kills * 12_000, (at) => {
    const shopId = at % 997 === 0 ? randomUUID() : shop.shop_id;
    const amount = at % 1009 === 0 ? 'nothing' : '22.49';
    return `${randomUUID()},${shopId},GB,2.5,${amount}\n`;
  });
  const wrong = rows.filter((_, at) => at % 997 === 0 || at % 1009 === 0);
  const cwd = mkdtempSync(join(tmpdir(), 'intake-resume-'));
  writeFileSync(
    join(cwd, 'transactions.csv'),
    `transaction_id,shop_id,region,savings,amount\n${rows.join('')}`,
  );
  const proxy = await startHoldingProxy(server.url);
  const place = { cwd, env: { INTAKE_URL: proxy.url, INTAKE_KEY: key } };
  const journal = join(cwd, 'transactions.csv.journal');
  for (let killed = 0; killed < kills; killed++) {
    const before = linesOf(journal).length;
    const running = startIntake(place, 'upload', 'transactions.csv', ...(killed === 0 ? [] : ['--resume']));
    while (running.exitCode === null && linesOf(journal).length < before + 2) await sleep(5);
    proxy.hold();
    await sleep(Math.random() * 40);
    expect(running.kill('SIGKILL')).toBe(true);
    expect(await running.ended).toMatchObject({ exitCode: null, stdout: '' });
    proxy.release();
  }
  const { exitCode, stdout } = await runIntake(place, 'upload', 'transactions.csv', '--resume', '--json');
  expect(exitCode).toBe(1);
  const [result] = JSON.parse(stdout).files;
  expect(result.counts.created).toBe(rows.length - wrong.length);
  expect(result.counts).toMatchObject({ updated: 0, unchanged: 0, stale: 0 });
  expect(result.counts.failed + result.unsent).toBe(wrong.length);
  const kept = linesOf(join(cwd, 'transactions.csv.failed.csv')).slice(1);
  expect(kept.map((line) => line.slice(0, 36))).toEqual(wrong.map((line) => line.slice(0, 36)));
  expect(linesOf(join(cwd, 'transactions.csv.failed.ndjson'))).toHaveLength(wrong.length);
  const overview = await intake.data.overview();
  expect(overview.find(({ type }) => type === 'transactions')?.records).toBe(rows.length - wrong.length);
  await proxy.close();
  rmSync(cwd, { recursive: true });
});
