// @module-tag full

import { randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { Intake } from '../src/index.ts';
import { deriveId } from '../src/parsing/values/derived-id.ts';
import { startHostileServer } from './support/hostile-server.ts';
import { type Place, runIntake } from './support/run-intake.ts';

let server: BuiltServer;
let intake: Intake;
let place: Place;

beforeAll(async () => {
  server = await startBuiltServer();
});
afterAll(() => server?.stop());

beforeEach(async () => {
  const key = await server.createKey(`access-${randomUUID()}`, 'data:write', 'data:read', 'data:access');
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-access-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd, NO_COLOR: '1' } };
  return () => rmSync(cwd, { recursive: true });
});

async function storeCustomer(): Promise<string> {
  const customer_id = randomUUID();
  await intake.upload('customers', [{ customer_id, user_id: randomUUID(), region: 'GB' }]).finish();
  await intake.upload('customers', [{ customer_id, region: 7 } as never]).finish();
  return customer_id;
}

it('the library requests, waits and reads the collected records', async () => {
  const customerId = await storeCustomer();
  const { access_request_id: id } = await intake.accessRequests.request({ customerIds: [customerId] });
  await expect.poll(async () => (await intake.accessRequests.get(id)).state).toBe('done');
  const types = [];
  for await (const { type } of intake.accessRequests.records(id)) types.push(type);
  expect(types).toEqual(['customers', 'receipts', 'rejections']);
  const listed = [];
  for await (const one of intake.accessRequests.list()) listed.push(one.access_request_id);
  expect(listed).toEqual([id]);
  for (const people of [
    {},
    { customerIds: [] },
    { customerIds: ['x'] },
    {
      userIds: Array(5_001)
        .fill('x')
        .map((x, at) => x + at),
    },
  ])
    await expect(intake.accessRequests.request(people)).rejects.toThrow(TypeError);
});

it('the command writes a file that only its owner can read, and prints no id', async () => {
  const id = await storeCustomer();
  const run = () => runIntake(place, 'access', '--customer', id, '--output', 'person.ndjson');
  const { exitCode, stdout, stderr } = await run();
  expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
  expect(stderr).toMatch(/^Access request [\da-f-]{36} has begun\.\nRecords: 3\n$/);
  expect(stderr).not.toContain(id);
  const path = join(place.cwd, 'person.ndjson');
  const lines = readFileSync(path, 'utf8').split('\n');
  expect(lines.map((line) => line && JSON.parse(line).type)).toEqual([
    'customers',
    'receipts',
    'rejections',
    '',
  ]);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  writeFileSync(path, 'mine');
  expect((await run()).stderr).toBe('Error: person.ndjson: The file already exists. Specify a new one.\n');
  expect(readFileSync(path, 'utf8')).toBe('mine');
  const request = stderr.split(' ')[2] ?? '';
  const again = await runIntake(place, 'access', '--request', request);
  expect(again).toEqual({ exitCode: 0, stdout: lines.join('\n'), stderr: 'Records: 3\n' });
});

it('keys collect what is stored about the people whose ids upload derives from them', async () => {
  const rows = ['1,100500', '2,100501'].map((row) => `${row},GB\n`).join('');
  writeFileSync(join(place.cwd, 'customers.csv'), `Nr,user_id,region\n${rows}`);
  await runIntake(place, 'upload', 'customers.csv', '--id-from', 'Nr');
  for (const [option, key, found] of [
    ['--customer-key', '2', '2'],
    ['--user-key', '100500', '1'],
  ] as const) {
    const { exitCode, stdout, stderr } = await runIntake(place, 'access', option, key);
    expect(exitCode).toBe(0);
    const id = deriveId('customers', [found]);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).id),
    ).toEqual([id]);
    expect(stderr).not.toContain(id);
  }
});

it('a request can be cancelled, and its records are gone', async () => {
  const customerIds = [await storeCustomer()];
  const [one, other] = [
    await intake.accessRequests.request({ customerIds }),
    await intake.accessRequests.request({ customerIds }),
  ];
  expect(await intake.accessRequests.cancel(one.access_request_id)).toMatchObject({ state: 'cancelled' });
  const id = other.access_request_id;
  expect(await runIntake(place, 'access', '--cancel', id)).toEqual({
    exitCode: 0,
    stdout: '',
    stderr: 'The access request is cancelled.\n',
  });
  expect(await intake.accessRequests.get(id)).toMatchObject({ state: 'cancelled' });
  const { exitCode, stderr } = await runIntake(place, 'access', '--request', id, '--output', 'person.ndjson');
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('was cancelled')]);
  expect(existsSync(join(place.cwd, 'person.ndjson'))).toBe(false);
});

it('for a person who is not stored the file is empty, and the command reports it', async () => {
  const args = ['access', '--user', 'nobody', '--customer', randomUUID(), '--output', 'person.ndjson'];
  const { exitCode, stderr } = await runIntake(place, ...args);
  expect([exitCode, stderr]).toEqual([0, expect.stringContaining('Nothing is stored about this person.\n')]);
  expect(readFileSync(join(place.cwd, 'person.ndjson'), 'utf8')).toBe('');
});

it.each([
  [[], 'Use --customer or --user'],
  [['--customer', 'jane'], '--customer is not a UUID. Use --customer-key for a key from an uploaded file.'],
  [['--customer-key', '[]'], '--customer-key is not a key; write it as in the file, or as'],
  [['--user-key', ' '], '--user-key is not a key; write it as in the file.'],
  [['--user-key', '["DE","7"]'], '--user-key is not a key; write it as in the file.'],
  [['--request', '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f', '--user-key', 'x'], 'Use --customer or --user'],
  [['--user', ''], '--user is empty or too long.'],
  [['jane'], 'Specify the person with --customer or --user.'],
  [['--request', 'c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11'], '--request is not the id of an access request.'],
  [['--request', '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f', '--user', 'x'], 'Use --customer or --user'],
  [['--cancel', 'c1d6a7f0-3b52-4e8f-9a64-0d2f5b7e8a11'], '--cancel is not the id of an access request.'],
  [['--cancel', '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f', '--user', 'x'], 'Use --customer or --user'],
])('%j is a mistake, and nothing is requested', async (args, message) => {
  const { exitCode, stderr } = await runIntake(place, 'access', ...args, '--output', 'person.ndjson');
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
  expect(stderr).not.toContain('jane');
  expect(existsSync(join(place.cwd, 'person.ndjson'))).toBe(false);
  for await (const _ of intake.accessRequests.list()) expect.unreachable();
});

it('leaves no file if the download breaks off or the key lacks the permission', async () => {
  const request = '019ced6c-5a2b-7c3d-8e4f-5a6b7c8d9e0f';
  const hostile = await startHostileServer((outgoing, { url = '' }) => {
    if (!url.endsWith('/records'))
      return void outgoing
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ access_request_id: request, state: 'done', records: {} }));
    outgoing.writeHead(200, { 'content-type': 'application/x-ndjson' });
    outgoing.write('{"type":"customers","id":"1","record":{}}\n{"type":', () => outgoing.destroy());
  });
  onTestFinished(hostile.close);
  const there = { ...place, env: { ...place.env, INTAKE_URL: hostile.url } };
  const broken = await runIntake(there, 'access', '--request', request, '--output', 'person.ndjson');
  expect([broken.exitCode, broken.stderr]).toEqual([2, expect.stringContaining('The download broke off')]);
  const plain = await server.createKey('plain', 'data:read');
  const elsewhere = { ...place, env: { ...place.env, INTAKE_KEY: plain } };
  const refused = await runIntake(elsewhere, 'access', '--user', 'nobody', '--output', 'person.ndjson');
  expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining('data:access')]);
  expect(existsSync(join(place.cwd, 'person.ndjson'))).toBe(false);
});
