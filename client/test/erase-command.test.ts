// @module-tag full

import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished } from 'vitest';
import { everyPermission } from '../../test/support/api.ts';
import { type BuiltServer, startBuiltServer } from '../../test/support/built-server.ts';
import { many, newShop, newTransaction } from '../../test/support/new-records.ts';
import { Intake } from '../src/index.ts';
import { deriveId } from '../src/parsing/values/derived-id.ts';
import { json, startHostileServer } from './support/hostile-server.ts';
import { hasTerminal, runInTerminal } from './support/run-in-terminal.ts';
import { feedIntake, mainFile, type Place, runIntake, startIntake } from './support/run-intake.ts';

let server: BuiltServer;
let intake: Intake;
let place: Place;
let made = 0;

beforeAll(async () => {
  server = await startBuiltServer({ ERASURE_KEYS: 'a key of 32 characters or more for tests' });
});
afterAll(() => server?.stop());

beforeEach(async () => {
  const key = await server.createKey(`erase-command-${++made}`, ...everyPermission);
  intake = new Intake({ url: server.url, key });
  const cwd = mkdtempSync(join(tmpdir(), 'intake-erase-'));
  place = { cwd, env: { INTAKE_URL: server.url, INTAKE_KEY: key, XDG_CONFIG_HOME: cwd, NO_COLOR: '1' } };
  return () => rmSync(cwd, { recursive: true });
});

const put = (name: string, text: string | Buffer) => writeFileSync(join(place.cwd, name), text);

async function storeCustomers(count: number): Promise<string[]> {
  const customers = many(count, () => ({
    customer_id: randomUUID(),
    user_id: randomUUID(),
    region: 'GB',
  }));
  await intake.upload('customers', customers).finish();
  return customers.map(({ customer_id }) => customer_id);
}

async function storedCustomers(): Promise<number> {
  let count = 0;
  for await (const _ of intake.data.list('customers')) count++;
  return count;
}

async function listed() {
  const all = [];
  for await (const one of intake.erasures.list()) all.push(one);
  return all;
}

it('erases the customers of a file, waits for the sweep, and prints no id of theirs', async () => {
  const ids = await storeCustomers(3);
  const stranger = randomUUID();
  put('people.txt', `\ufeff${ids[0]}\r\n${ids[1]?.toUpperCase()}\r\n\r\n${stranger}\r\n${stranger}`);
  const { exitCode, stdout, stderr } = await runIntake(place, 'erase', '--file', 'people.txt', '--yes');
  const [erasure] = await listed();
  expect({ exitCode, stderr }).toEqual({
    exitCode: 0,
    stderr: `Erasure ${erasure?.erasure_id} of 3 customers has begun.\n`,
  });
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['Erasure', 'Ids', 'Unknown', 'Rows', 'State'],
    [erasure?.erasure_id, '3', '1', '2', 'swept'],
    [''],
  ]);
  for (const id of [...ids, stranger]) expect(stdout + stderr).not.toContain(id);
  expect(erasure).toMatchObject({ mode: 'anonymise', state: 'swept' });
  expect(await storedCustomers()).toBe(1);
});

it('accepts arguments and standard input, users and --delete; JSON is a line for each erasure', async () => {
  const [customer = ''] = await storeCustomers(1);
  const typed = await runIntake(place, 'erase', customer, '--delete', '--yes', '--json');
  expect({ ...typed, stdout: JSON.parse(typed.stdout) }).toMatchObject({
    exitCode: 0,
    stdout: { mode: 'delete', state: 'swept', people: 1, known: 1, unknown_customers: 0 },
  });
  const users = many(5_001, (at) => `visitor ${at}`).join('\n');
  const args = ['erase', '--users', '--file', '-', '--yes', '--no-wait', '--json'];
  const { exitCode, stdout, stderr } = await feedIntake(place, users, ...args);
  const lines = stdout.trim().split('\n');
  expect(exitCode).toBe(0);
  expect(lines.map((line) => JSON.parse(line).people)).toEqual([5_000, 1]);
  expect(stderr).toMatch(/^Erasure \S+ of 5,000 users has begun\.\nErasure \S+ of 1 user has begun\.\n$/);
  expect(stdout + stderr).not.toContain('visitor');
  const table = await feedIntake(place, 'visitor 0', ...args.slice(0, -1));
  expect(table.stdout.split('\n')[1]).toMatch(/^\S+ +1 +0 +pending$/);
});

it('lists erasures, shows one, and lifts its suppression', async () => {
  expect((await runIntake(place, 'erasures')).stdout).toBe('There are no erasures.\n');
  const ids = await storeCustomers(2);
  for (const id of ids) await runIntake(place, 'erase', id, '--yes');
  const [newest, oldest] = await listed();
  const { stdout } = await runIntake(place, 'erasures');
  expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
    ['Requested', 'Mode', 'State', 'Ids', 'Known', 'Rows', 'Erasure'],
    [newest?.requested, 'anonymise', 'swept', '1', '1', '1', newest?.erasure_id],
    [oldest?.requested, 'anonymise', 'swept', '1', '1', '1', oldest?.erasure_id],
    [''],
  ]);
  const one = await runIntake(place, 'erasures', '--limit', '1', '--json');
  expect(JSON.parse(one.stdout)).toEqual(newest);
  const id = oldest?.erasure_id ?? '';
  expect(JSON.parse((await runIntake(place, 'erasures', 'show', id)).stdout)).toEqual(oldest);
  expect((await runIntake(place, 'erasures', 'lift', id)).stderr).toBe(
    'Error: This accepts records of erased people again. Add --yes to do it.\n',
  );
  // The erasure has two ids: the customer's and the user's.
  expect((await runIntake(place, 'erasures', 'lift', id, '--yes')).stdout).toBe(
    '2 ids are accepted again.\n',
  );
  expect((await runIntake(place, 'erasures', 'lift', id, '--yes', '--json')).stdout).toBe('{"lifted":0}\n');
  for (const args of [['show'], ['list', id], ['remove', id], ['lift', id, id]])
    expect((await runIntake(place, 'erasures', ...args)).stderr).toContain(
      'Error: Use list, or show, certificate or lift with the id of an erasure.',
    );
  const away = { ...place, env: { ...place.env, INTAKE_URL: 'http://127.0.0.1:9' } };
  expect((await runIntake(away, 'erasures', 'show', ids[0] ?? '')).stderr).toBe(
    'Error: That is not the id of an erasure. See intake erasures.\n',
  );
});

it('a wrong line erases nobody, and is reported by its number', async () => {
  const [id = ''] = await storeCustomers(1);
  const said = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runIntake(place, 'erase', ...args, '--yes');
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    return stderr;
  };
  put('people.csv', `customer_id\n${id}\njane@example.com\n`);
  expect(await said('--file', 'people.csv', id, 'jane')).toBe(
    [
      'Error: Nothing was erased, because some ids are invalid.',
      '  Argument 2 is not a UUID.',
      '  Line 1 is not a UUID.',
      '  Line 3 is not a UUID.',
      'Use --customer-key for a key from an uploaded file, or --keys if the arguments and the file are keys.\n',
    ].join('\n'),
  );
  expect(await said('100500')).toContain('Argument 1 is not a UUID.\nUse --customer-key for a key');
  expect(await said('--customer', '100500')).toContain('no option --customer. Did you mean --customer-key?');
  for (const key of ['', ' ', '[]', '[1', '["DE",100500]', '["DE"," "]'])
    expect(await said('--customer-key', id, '--customer-key', key)).toContain(
      `  --customer-key is not a key; write it as in the file, or as '["DE","100500"]' if "id_from" has several columns.\n`,
    );
  put('keys.txt', '100500\n["DE"]]\n');
  expect(await said('--file', 'keys.txt', '--keys')).toMatch(/invalid\.\n {2}Line 2 is not a key; .*\n$/);
  put('users.txt', `visitor-1 \n${'x'.repeat(256)}\n`);
  expect(await said('--file', 'users.txt', '--users')).toContain(
    '  Line 1 begins or ends with a space.\n  Line 2 is longer than the id of a user can be.\n',
  );
  put('latin.txt', Buffer.from('Ren\xe9e', 'latin1'));
  expect(await said('--file', 'latin.txt', '--users')).toContain('latin.txt: It is not UTF-8.');
  put('many.txt', 'x\n'.repeat(30));
  expect(await said('--file', 'many.txt')).toMatch(
    / {2}Line 20 is not a UUID\.\n {2}and 10 more\nUse --customer-key /,
  );
  put('empty.txt', '\n');
  expect(await said('--file', 'empty.txt')).toContain('Error: There are no ids.');
  expect(await said('--file', 'missing.txt')).toBe('Error: missing.txt: There is no such file.\n');
  expect(await listed()).toEqual([]);
});

it('keys erase the customers and users whose ids upload derives from them, and nobody else', async () => {
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  put('customers.csv', 'Nr,user_id,region\n1,100500,GB\n2,100501,GB\n3,100502,GB\n');
  put('germans.csv', 'Land,Nr,user_id,region\nDE,1,200500,DE\nDE,2,200501,DE\n');
  const seen = ['100500', '100501', '200500', 'guest'];
  const rows = seen.map((user) => `SHARE,SHOP,${shop.shop_id},${user},1\n`).join('');
  put('interactions.csv', `interaction_type,item_type,item_id,user_id,event_timestamp\n${rows}`);
  const uploads = [
    ['customers.csv', 'Nr'],
    ['germans.csv', 'Land,Nr', '--type', 'customers'],
    ['interactions.csv', 'Nr'],
  ] as const;
  for (const [file, idFrom, ...type] of uploads)
    expect(await runIntake(place, 'upload', file, '--id-from', idFrom, ...type)).toMatchObject({
      exitCode: 0,
    });
  const [one, two] = [deriveId('customers', ['1']), deriveId('customers', ['DE', '1'])];
  const erase = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runIntake(
      place,
      'erase',
      ...args,
      '--delete',
      '--yes',
      '--json',
    );
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    for (const key of [...seen, one, two]) expect(stdout + stderr).not.toContain(key);
    const { people, known, unknown_customers } = JSON.parse(stdout);
    return [people, known, unknown_customers];
  };
  const left = async () => {
    const [customers, users]: [string[], (string | null)[]] = [[], []];
    for await (const { customer_id } of intake.data.list('customers')) customers.push(customer_id);
    for await (const { user_id } of intake.interactions.list()) users.push(user_id);
    return { customers: customers.toSorted(), users: users.toSorted() };
  };
  const customersOf = (...keys: string[][]) => keys.map((key) => deriveId('customers', key)).toSorted();
  const usersOf = (...keys: string[]) => keys.map((key) => deriveId('users', [key])).toSorted();

  expect(await erase('--customer-key', ' 1 ', '--customer-key', '["DE","1"]')).toEqual([2, 2, 0]);
  expect(await left()).toEqual({
    customers: customersOf(['2'], ['3'], ['DE', '2']),
    users: usersOf('100501', 'guest'),
  });
  put('keys.txt', '2\r\n["DE","2"]\n["D","E2"]\n');
  expect(await erase('--file', 'keys.txt', '--keys', '--user-key', 'guest')).toEqual([4, 2, 1]);
  expect(await left()).toEqual({ customers: customersOf(['3']), users: [] });
});

it('shows on a terminal which id each key has, before it asks', async () => {
  if (!hasTerminal) return console.info('there is no script: the terminal was not tried');
  const input = { ...place, input: 'no\n' };
  const shown = await runInTerminal(input, 'erase', '--customer-key', '100500', '--user-key', '7');
  expect(shown.replaceAll(/\s+/g, ' ')).toContain(
    `Key 100500 is id ${deriveId('customers', ['100500'])}. Key 7 is id ${deriveId('users', ['7'])}. ` +
      'Erase 1 customer and 1 user? Nothing is stored about these people. 1 customer id is not stored.',
  );
  put('keys.txt', many(25, (at) => `${at}\n`).join(''));
  const args = ['--keys', '--file', 'keys.txt'];
  expect(await runInTerminal(input, 'erase', ...args)).toMatch(/Key 19 is .*\s+and 5 more keys\s+Erase 25/);
  const done = await runInTerminal({ ...place, input: 'yes\n' }, 'erase', '--customer-key', '100500');
  expect(done).toContain(`${deriveId('customers', ['100500'])}, from the key 100500`);
});

it('asks first, and lists unknown ids, only on a terminal', async () => {
  const [id = ''] = await storeCustomers(1);
  expect((await runIntake(place, 'erase', id)).stderr).toBe(
    'Error: This erases 1 customer, and cannot be undone. Add --yes to do it.\n',
  );
  expect((await feedIntake(place, id, 'erase', '--file', '-')).stderr).toContain('Add --yes.');
  if (!hasTerminal) return console.info('there is no script: the terminal was not tried');
  const declined = await runInTerminal({ ...place, input: 'y\n' }, 'erase', id, '--delete');
  expect(declined.replaceAll(/\s+/g, ' ')).toContain(
    'Erase 1 customer? This deletes 1 customer. This cannot be undone. Type yes:',
  );
  expect(declined).toContain('Nothing was erased.');
  expect(await listed()).toEqual([]);
  const stranger = randomUUID();
  const shown = await runInTerminal({ ...place, input: 'yes\n' }, 'erase', id, stranger);
  expect(shown).toContain('0 of 1 swept, rows changed or deleted: 0');
  expect(shown).toContain(`Customers that are not stored\r\n${stranger}`);
  expect(await storedCustomers()).toBe(0);
});

it('--dry-run shows what would be erased, also of a list on standard input, and erases nothing', async () => {
  const [id = '', other = ''] = await storeCustomers(2);
  const shop = newShop();
  await intake.upload('shops', [shop]).finish();
  const sale = newTransaction(shop.shop_id, { student_id: id });
  await intake.upload('transactions', [sale, newTransaction(shop.shop_id, { student_id: id })]).finish();
  const { user_id } = await intake.data.get('customers', id);
  const view = { interaction_type: 'PAGE_VIEW', item_type: 'SHOP', item_id: shop.shop_id } as const;
  for (const student_id of [id, other])
    await intake.record({ ...view, student_id, user_id, event_timestamp: 1_700_000_000 });
  const dry = await feedIntake(place, `${id}\n${randomUUID()}`, 'erase', '--file', '-', '--dry-run');
  expect(dry).toMatchObject({ exitCode: 0, stderr: '' });
  expect(dry.stdout.replaceAll(/\s+/g, ' ')).toBe(
    'This erases 1 customer, 2 transactions and 1 interaction, and removes the user id from 1 interaction of other ' +
      'students. Transactions and interactions are kept without the person. 1 customer id is not stored. ' +
      'Nothing was erased. ',
  );
  const asJson = await runIntake(place, 'erase', id, '--delete', '--dry-run', '--yes', '--json');
  expect(JSON.parse(asJson.stdout)).toMatchObject({
    dry_run: true,
    mode: 'delete',
    rows: { transactions: 2, interactions_unlinked: 1 },
    unknown_customers: 0,
  });
  expect(await listed()).toEqual([]);
  expect(await storedCustomers()).toBe(2);
});

it('says that it waits if too many ids are being erased', async () => {
  const [erasure] = await intake.erase({ customerIds: [randomUUID()] });
  const refusal = { error: 'Conflict', code: 'too_many_erasures', message: 'Wait.' };
  let count = 0;
  const busy = await startHostileServer((...exchange) =>
    (++count <= 2 ? json(409, refusal, { 'retry-after': '1' }) : json(202, erasure))(...exchange),
  );
  onTestFinished(busy.close);
  const there = { ...place, env: { ...place.env, INTAKE_URL: busy.url } };
  const { exitCode, stderr } = await runIntake(there, 'erase', randomUUID(), '--yes', '--no-wait');
  expect([exitCode, count]).toEqual([0, 3]);
  expect(stderr.replaceAll(/\s+/g, ' ')).toBe(
    'Warning: The service is still carrying out earlier erasures, so the next one waits and is sent again. To see their state: ' +
      `intake erasures. Erasure ${erasure?.erasure_id} of 1 customer has begun. `,
  );
});

it('an erasure continues after a timeout or an interruption of the command', async () => {
  const ids = await storeCustomers(2);
  // An open transaction delays the sweep.
  const other = new Client({ connectionString: server.databaseUrl });
  await other.connect();
  onTestFinished(() => other.end());
  await other.query('begin');
  await other.query('select 1');
  const late = runIntake(place, 'erase', ids[0] ?? '', '--yes', '--timeout', '1');
  const stopped = startIntake(place, 'erase', ids[1] ?? '', '--yes');
  const begun = new Promise((resolve) => stopped.stderr?.once('data', resolve));
  await expect.poll(async () => (await listed()).length).toBe(2);
  await begun;
  stopped.kill('SIGINT');
  const continues = 'The erasure continues on the server. intake erasures shows its state.';
  const { exitCode, stderr } = await stopped.ended;
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 2 });
  expect(stderr).toContain(`${continues}\nError: Interrupted.\n`);
  const { exitCode: lateCode, stdout, stderr: lateError } = await late;
  expect(lateCode).toBe(1);
  // The sweep may not have started yet.
  expect(stdout).toMatch(/ (pending|running)\n$/);
  expect(lateError).toContain('The sweep is not finished, and continues on the server.');
  await other.query('rollback');
  await expect.poll(async () => (await listed()).map(({ state }) => state)).toEqual(['swept', 'swept']);
});

it('explains what the operator has to do if the service cannot erase', async () => {
  const error = { error: 'Not Implemented', code: 'erasure_not_configured', message: 'Ask the operator.' };
  const away = await startHostileServer(json(501, error));
  onTestFinished(away.close);
  const there = { ...place, env: { ...place.env, INTAKE_URL: away.url } };
  const { exitCode, stderr } = await runIntake(there, 'erase', randomUUID(), '--yes');
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: 'Error: Ask the operator.\n' });
});

it('the examples of docs/uploading/privacy.md do what the page says', async () => {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const page = readFileSync(join(root, 'docs/uploading/privacy.md'), 'utf8');
  const blocks = [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, kind, text = '']) => ({
    kind,
    text,
  }));
  const [start = '', access = '', request = '', command = '', certificate = '', verify = '', lift = ''] =
    blocks.filter(({ kind }) => kind === 'sh').map(({ text }) => text);
  const [line = '', answer = '', lifted = ''] = blocks
    .filter(({ kind }) => kind === 'json')
    .map(({ text }) => text);
  const env = { ...place.env, PATH: process.env.PATH ?? '' };
  mkdirSync(join(place.cwd, '.intake'));
  for (const name of ['key', 'privacy-key']) put(`.intake/${name}`, place.env.INTAKE_KEY ?? '');
  const [exports = '', ...upload] = start.replace('http://127.0.0.1:8080', server.url).split('\n');
  const run = async (text: string) => {
    const script = `intake() { '${process.execPath}' '${mainFile}' "$@"; }\n${exports}\n${text}`;
    return (await promisify(execFile)('bash', ['-euc', script], { cwd: place.cwd, env })).stdout;
  };
  const storeCustomer = () => run(upload.join('\n'));
  expect(JSON.parse(await storeCustomer()).batches[0].data.counts).toMatchObject({ created: 1 });

  await run(access);
  expect(JSON.parse(readFileSync(join(place.cwd, 'person.ndjson'), 'utf8'))).toMatchObject(JSON.parse(line));

  const answered = JSON.parse(await run(request));
  const shown = JSON.parse(answer);
  expect(Object.keys(answered)).toEqual(Object.keys(shown));
  const { erasure_id, requested, key_id, ...same } = shown;
  expect(answered).toMatchObject(same);
  await expect.poll(async () => (await listed())[0]?.state).toBe('swept');
  expect(JSON.parse(await run(certificate)).certificate.erasure.state).toBe('swept');
  expect(await run(verify)).toBe('true\n');
  const file = join(place.cwd, 'certificate.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/"jws": ?"(.{80})./, '"jws": "$1A'));
  expect(await run(verify)).toBe('false\n');
  expect(JSON.parse(await run(lift))).toEqual(JSON.parse(lifted));

  await storeCustomer();
  expect(await run(command)).toMatch(/ swept\n(.|\n)*Requested(.|\n)* anonymise {2}swept /);
});
