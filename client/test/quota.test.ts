import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { apiOf } from '../../test/support/api.ts';
import { type SharedServer, sharedServer } from '../../test/support/built-server.ts';
import { many, newTag } from '../../test/support/new-records.ts';
import { queryDatabase } from '../../test/support/query-database.ts';
import { untilPasses } from '../../test/support/until-passes.ts';
import { Intake } from '../src/index.ts';
import { startHttpProxy } from './support/http-proxy.ts';
import { runIntake } from './support/run-intake.ts';

/**
 * This file tests that neither the library nor the command retries when an organisation has reached its quota, because
 * waiting does not help.
 */

let server: SharedServer;
let key: string;
beforeAll(async () => {
  server = await sharedServer();
  key = await server.createKey('full');
  const api = apiOf(server.url, key);
  await api.upload(
    'tags',
    many(13, () => newTag()),
  );
  const organisation = `(select organisation_id from organisations where slug = '${server.slugOf('full')}')`;
  await queryDatabase(
    server.databaseUrl,
    `insert into quota_usage (organisation_id, records, row_sizes) values (${organisation}, 13, '{}');
     update organisations set records_stored_max = 12 where organisation_id = ${organisation}`,
  );
  const isKnown = async () => {
    const { headers } = await api.post('/v1/data/tags?dry_run=true', { records: [newTag()] });
    return headers.get('intake-quota');
  };
  const known = '"records";used=13;max=12';
  await untilPasses(async () => expect(await isKnown()).toBe(known));
});

async function counted() {
  const proxy = await startHttpProxy(server.url, () => 'pass');
  onTestFinished(() => proxy.close());
  return proxy;
}

it('the library throws at once, for uploads and interactions', async () => {
  const proxy = await counted();
  const intake = new Intake({ url: proxy.url, key });
  const refused = { code: 'quota_exceeded', status: 403 };
  await expect(intake.upload('tags', [newTag()]).finish()).rejects.toMatchObject(refused);
  expect(proxy.seen).toHaveLength(1);
  const interaction = {
    interaction_type: 'SHARE',
    item_type: 'TAG',
    item_id: randomUUID(),
    event_timestamp: 1,
  } as const;
  const recorded = many(3, () => intake.record(interaction));
  for (const one of recorded) await expect(one).rejects.toMatchObject(refused);
  await intake.close();
  expect(proxy.seen).toHaveLength(2);
});

it('the command ends, explains what to do, and reports that nothing was stored', async () => {
  const proxy = await counted();
  const cwd = mkdtempSync(join(tmpdir(), 'intake-quota-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  writeFileSync(join(cwd, 'tags.ndjson'), `${JSON.stringify(newTag())}\n`);
  const env = { INTAKE_URL: proxy.url, INTAKE_KEY: key, HOME: cwd };
  const { exitCode, stderr } = await runIntake({ cwd, env }, 'upload', 'tags.ndjson');
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain('The organisation may store 12 records and has 13; ');
  expect(stderr).toContain('ask the operator of the service for a larger quota');
  expect(stderr).toContain('Nothing in tags.ndjson was stored.');
  const uploads = proxy.seen.filter(({ method }) => method === 'POST');
  expect(uploads).toHaveLength(1);
});
