// @module-tag full

import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { freePort } from '../support/free-port.ts';
import { linesOf } from '../support/lines-of.ts';
import { type PeerPostgres, startPeerPostgres } from '../support/peer-postgres.ts';
import { type Redis, redisIsInstalled, startRedis } from '../support/redis.ts';

/** Follows docs/operating/ on PostgreSQL 15 as installed by Debian, with the service running as an ordinary account. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = {
  setup: 'docs/operating/setup.md',
  organisations: 'docs/operating/organisations.md',
  dayTwo: 'docs/operating/day-two.md',
  runbook: 'docs/operating/runbook.md',
};
type Page = keyof typeof pages;
const textOf = (page: Page) => readFileSync(join(root, pages[page]), 'utf8');
const reachable = (path: string): boolean =>
  path === dirname(path) || ((statSync(dirname(path)).mode & 0o001) !== 0 && reachable(dirname(path)));
const missing = [
  ['PostgreSQL 15 of Debian', existsSync('/usr/lib/postgresql/15/bin/postgres')],
  ['the account postgres', spawnSync('id', ['postgres']).status === 0],
  ['root, to become another account', process.getuid?.() === 0],
  ['a Node and a checkout that others can reach', reachable(process.execPath) && reachable(root)],
].flatMap(([name, isThere]) => (isThere ? [] : [name]));
if (missing.length > 0) console.log(`docs/operating/ is not followed: it needs ${missing.join(', ')}`);

/** Returns a section's blocks of commands and expected output, in order. */
function blocksOf(page: Page, heading: string): { readonly kind: string; readonly text: string }[] {
  const section = textOf(page)
    .split(/^## /m)
    .find((part) => part.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`${pages[page]} has no section ${heading}`);
  return [...section.matchAll(/^(<!-- not run: .* -->\n)?```(\w+)\n(.*?)^```$/gms)].flatMap(
    ([, notRun, kind = '', text = '']) => (notRun === undefined ? [{ kind, text }] : []),
  );
}

const commandsOf = (page: Page, heading: string): string[] =>
  blocksOf(page, heading).flatMap(({ kind, text }) => (kind === 'sh' ? [text] : []));

/** Returns the block that contains this text. */
function block(page: Page, heading: string, part: string): string {
  const found = blocksOf(page, heading).filter(({ text }) => text.includes(part));
  expect(found, part).toHaveLength(1);
  return found[0]?.text ?? '';
}

/** The login for the commands on the organisations page, from the page's first block. */
const [, operatorLogin = ''] = /^```sh\n(export DATABASE_URL=.*\n)```$/m.exec(textOf('organisations')) ?? [];

describe.skipIf(missing.length > 0)('docs/operating/', () => {
  let postgres: PeerPostgres;
  let folder: string;
  let port: number;
  let adminPort: number;
  let redis: Redis | undefined;
  const servers: ChildProcess[] = [];

  beforeAll(async () => {
    postgres = await startPeerPostgres();
    port = await freePort();
    adminPort = await freePort();
    redis = redisIsInstalled ? await startRedis() : undefined;
    folder = mkdtempSync(join(tmpdir(), 'intake-operating-'));
    // The commands write a token here.
    chmodSync(folder, 0o777);
    for (const name of ['dist', 'migrations', 'package.json', 'openapi.json'])
      cpSync(join(root, name), join(folder, name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  });

  afterAll(async () => {
    for (const server of servers) await stop(server);
    await redis?.stop();
    await postgres?.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const idOf = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  const ordinary = () => ({ uid: idOf('-u'), gid: idOf('-g') });
  const options = () => ({
    cwd: folder,
    env: {
      PATH: `${dirname(process.execPath)}:/usr/bin:/bin`,
      HOME: '/nonexistent',
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
    },
  });
  /** Returns the command unchanged, except for the ports, because 5432 and 8080 may be in use on this machine. */
  const command = (text: string) =>
    text
      .replaceAll('localhost:5432', `localhost:${postgres.port}`)
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
      .replaceAll('127.0.0.1:8081', `127.0.0.1:${adminPort}`)
      .replaceAll('redis://localhost:6379', redis?.url ?? 'redis://localhost:6379')
      .replaceAll('PORT=8443', `PORT=${port}`)
      .replaceAll('HOST=0.0.0.0', 'HOST=127.0.0.1');

  async function paste(account: object, ...commands: string[]): Promise<string> {
    const script = commands.map(command).join('');
    const { stdout } = await promisify(execFile)('bash', ['-eu', '-o', 'pipefail', '-c', script], {
      ...options(),
      ...account,
      timeout: 240_000,
    });
    return stdout;
  }

  /** Runs commands that use sudo under an account that may use it, which is root here. */
  function pasteSudo(text: string): Promise<string> {
    const { env } = options();
    return paste({ env: { ...env, PATH: `${postgres.path}:${env.PATH}` } }, text);
  }

  const psql = (text: string) =>
    pasteSudo(`sudo -u postgres psql -v ON_ERROR_STOP=1 intake <<'SQL'\n${text}SQL\n`);

  /** Runs the block in its own shell until it has logged this many lines, and returns their messages. */
  async function serve(text: string, lineCount: number): Promise<string[]> {
    // `exec` replaces the shell, so that a signal reaches the server.
    const script = command(text).replace(/^((?:[A-Z_]+=.*\n?)*.*node dist\/main\.js serve)$/m, 'exec env $1');
    const server = spawn('bash', ['-c', script], {
      ...options(),
      ...ordinary(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    servers.push(server);
    const messages: string[] = [];
    for await (const line of createInterface({ input: server.stdout })) {
      const { msg } = JSON.parse(line);
      // On a busy machine, Redis may respond late. The service then logs that Redis is unavailable, and later that it
      // is available again.
      // The cluster of the tests runs without fsync.
      if (/^(Redis|intake\.accepted_settings)/.test(msg)) continue;
      // A single line has to be about listening, but the process may be elected before it listens.
      if (lineCount === 1 && msg === 'this process does the maintenance from now on') continue;
      messages.push(msg.replace(`:${port}`, ':8080').replace(`:${adminPort}`, ':8081'));
      if (messages.length === lineCount) break;
    }
    server.stdout.resume();
    return messages;
  }

  async function stop(server: ChildProcess): Promise<void> {
    if (server.exitCode !== null || server.signalCode !== null) return;
    server.kill('SIGTERM');
    await once(server, 'exit');
  }

  it('the setup, pasted word for word, ends with an upload that is answered 200', async () => {
    const steps = ['Build', 'Create the roles and the database', 'Migrate', 'Serve'];
    steps.push('Create an organisation and a key', 'Upload');
    const commands = steps.flatMap((step) => commandsOf('setup', step));
    const [build, roles, migrate, serving, organisation, upload, ...rest] = commands;
    expect(rest).toEqual([]);
    // These commands are not run, because the packages are already installed and the program is already built.
    expect(build).toBe('npm ci\nnpm run build\nnpm prune --omit=dev --omit=optional\n');
    await pasteSudo(roles ?? '');
    const migrations = readdirSync(join(root, 'migrations')).toSorted();
    const applied = migrations.map((file) => `applied ${file.replace(/\.\w+$/, '')}\n`);
    expect(await paste(ordinary(), migrate ?? '')).toBe(
      applied.join('') + block('setup', 'Migrate', 'up to date'),
    );
    const shown = block('setup', 'Serve', '"msg"').trim().split('\n');
    const messages = await serve(serving ?? '', shown.length);
    expect(messages.toSorted()).toEqual(shown.map((line) => JSON.parse(line).msg).toSorted());
    const printed = await paste(ordinary(), organisation ?? '', upload ?? '');
    const withoutId = (text: string) => text.replace(/\([0-9a-f-]{36}\)/, '()');
    const created = block('setup', 'Create an organisation and a key', 'Created the organisation');
    expect(withoutId(printed)).toContain(withoutId(created));
    expect(printed).toContain('"message":"1 record received: 1 created."');
    expect(printed.trimEnd().split('\n').at(-1)).toBe('200');
  });

  const list = `${operatorLogin}node dist/main.js keys list\n`;
  const remedies = 'Missing roles, memberships and rights';

  it('if the roles are missing, the statements and migrate create them', async () => {
    for (const server of servers) await stop(server);
    await pasteSudo(`sudo -u postgres psql -v ON_ERROR_STOP=1 intake <<'SQL'
drop owned by intake_serve, intake_admin, intake_read_all;
drop role intake_serve, intake_admin, intake_read_all;
SQL
`);
    const migrate = block('setup', 'Migrate', 'main.js migrate');
    expect(await paste(ordinary(), migrate)).toContain('The role intake_serve does not exist');
    await pasteSudo(block('setup', remedies, 'create role intake_serve'));
    expect(await paste(ordinary(), migrate)).toBe('The schema was already up to date.\n');
    expect(await serve(block('setup', 'Serve', 'main.js serve'), 1)).toEqual([
      'Server listening at http://127.0.0.1:8080',
    ]);
    expect(await paste(ordinary(), list)).toContain('acme');
  });

  it('if a membership is missing, the statements alone restore it', async () => {
    await pasteSudo("sudo -u postgres psql -c 'revoke intake_admin from intake_ops'\n");
    await expect(paste(ordinary(), list)).rejects.toThrow('permission denied for table');
    await pasteSudo(block('setup', remedies, "'SQL'\ngrant intake_serve"));
    expect(await paste(ordinary(), list)).toContain('acme');
  });

  it('the other remedies run, and the logins still work', async () => {
    await pasteSudo(block('setup', remedies, 'alter database intake owner'));
    expect(await pasteSudo(block('setup', remedies, 'select tableowner'))).toMatch(/^ intake$/m);
    await pasteSudo(block('setup', remedies, 'revoke connect'));
    expect(await paste(ordinary(), list)).toContain('acme');
  });

  it('the commands for organisations and keys run in their order', async () => {
    const sections = [...textOf('organisations').matchAll(/^## (.*)$/gm)].map(([, heading = '']) => heading);
    const own = sections.slice(0, sections.indexOf('Admin API'));
    const keyIds: string[] = [];
    const printed = new Map<string, string>();
    for (const section of own)
      for (const text of commandsOf('organisations', section)) {
        const [first = 'IstoeZlVgh0', second = '2LduLI6aun2'] = keyIds;
        const known = text.replaceAll('IstoeZlVgh0', first).replaceAll('2LduLI6aun2', second);
        const answer = await paste(ordinary(), operatorLogin, known);
        keyIds.push(...[...answer.matchAll(/^Issued the key (\w+) for/gm)].map(([, id = '']) => id));
        printed.set(section, (printed.get(section) ?? '') + answer);
      }
    expect(printed.get('Issue and list keys')).toMatch(/^\w+\tacme\tdata:write:shops,interactions:write\t/m);
    expect(printed.get('Rotate a key')).toContain(`as the successor of ${keyIds[0]}`);
    expect(printed.get('Revoke a key')).toContain(`Revoked the key ${keyIds[1]}`);
    expect(printed.get('Suspend an organisation')).toMatch(/^acme\t.*\tsuspended /m);
    expect(printed.get('Rate limits')).toBe(block('organisations', 'Rate limits', 'LIMIT\t'));
    expect(printed.get('Retention')).toContain('interactions\t90d\t');
    expect(printed.get('Move an organisation to another service')).toContain('1 records');
    await psql(block('organisations', 'Switch the report on recommendations on or off', 'report_sums'));
    expect(printed.size).toBeGreaterThan(9);
  });

  it('every statement of the runbook runs', async () => {
    const runbook = textOf('runbook');
    const blocks = [...runbook.matchAll(/^```sql\n(.*?)^```$/gms)].map(([, text = '']) => text);
    const inline = [...runbook.matchAll(/`(select [^`<]*)`/g)].map(([, text = '']) => `${text};\n`);
    expect([blocks.length, inline.length].every((count) => count > 5)).toBe(true);
    await psql([...blocks, ...inline].join(''));
  });

  it('Redis and the admin API are served and used as the page says', async () => {
    for (const server of servers) await stop(server);
    const commands = commandsOf('organisations', 'Admin API');
    const [serving = '', tokens = '', defined = '', organisations = '', keys = ''] = commands;
    const redisUrl = redis ? block('setup', 'Several processes and Redis', 'export REDIS_URL') : '';
    const [, shown] = /`(Admin API listening at .*?)`/.exec(textOf('organisations')) ?? [];
    expect(await serve(redisUrl + serving, 3)).toContain(shown);

    const issuedTokens = await paste(ordinary(), operatorLogin, tokens);
    const secrets = issuedTokens.match(/intake_admin_\w+/g) ?? [];
    expect(secrets).toHaveLength(2);
    const define = defined.replace('intake_admin_…', secrets[0] ?? '');

    const answered = (await paste(ordinary(), define, organisations)).trim().split('\n');
    const documented = JSON.parse(block('organisations', 'Admin API', '"suspended_at":null'));
    const { organisation_id, created_at, ...rest } = JSON.parse(answered.at(-1) ?? '');
    expect({ ...documented, organisation_id, created_at }).toEqual({ organisation_id, created_at, ...rest });

    const [issue = '', ...others] = keys.split(/^(?=admin )/m);
    const issued = JSON.parse(await paste(ordinary(), define, issue));
    expect(issued).toMatchObject({ organisation: 'globex', key: expect.stringMatching(/^intake_/) });
    const lines = await paste(ordinary(), define, others.join('').replaceAll('HiEu85bOFoC', issued.key_id));
    const answers = lines
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(answers).toMatchObject([
      { keys: [{ key_id: issued.key_id }] },
      { successor_of: issued.key_id },
      { revoked_at: expect.any(String) },
      { deleted_at: expect.any(String) },
      { deleted_at: null },
    ]);

    const [audit = ''] = commandsOf('organisations', 'Audit log');
    const log = await paste(ordinary(), operatorLogin, define, audit);
    expect(log).toMatch(/\ttoken:deploy\tkey\.revoke\tglobex\t/);
  });

  it('the commands of day two run', async () => {
    await paste(ordinary(), operatorLogin, ...commandsOf('dayTwo', 'Backup'));
    expect(linesOf(readFileSync(join(folder, 'intake-log/audit.ndjson'), 'utf8')).length).toBeGreaterThan(10);
    const top = commandsOf('dayTwo', 'Find the busiest organisations');
    const [header = ''] = block('dayTwo', 'Find the busiest organisations', 'ORGANISATION').split('\n');
    expect(await paste(ordinary(), operatorLogin, ...top)).toContain(header);

    for (const server of servers) await stop(server);
    const metricsPort = await freePort();
    const watched = block('dayTwo', 'Monitoring', 'METRICS_PORT').replace('9464', String(metricsPort));
    const login = block('setup', 'HTTPS', "export DATABASE_URL='postgres://intake_app:change-me-2@localhost");
    await serve(login + watched, 1);
    expect(await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()).toContain('intake_ready');
  });

  it('HTTPS with a certificate works as on the page', async () => {
    for (const server of servers) await stop(server);
    const { certFile, keyFile } = makeCertificate(folder, 'intake.example.com');
    cpSync(certFile, join(folder, 'cert.pem'));
    cpSync(keyFile, join(folder, 'key.pem'));
    chmodSync(join(folder, 'key.pem'), 0o644);
    const login = block('setup', 'HTTPS', "export DATABASE_URL='postgres://intake_app:change-me-2@localhost");
    await serve(login + block('setup', 'HTTPS', 'PORT=8443'), 1);
    const asked = block('setup', 'HTTPS', 'https://intake.example.com:8443')
      .replace('intake.example.com:8443', `localhost:${port}`)
      .replace('curl', 'curl --cacert cert.pem');
    await expect.poll(() => paste(ordinary(), asked)).toBe('{"status":"ok"}');
  });

  it('two processes started like the systemd unit share a port', async () => {
    for (const server of servers) await stop(server);
    const unit = readFileSync(join(root, 'deploy/systemd/intake@.service'), 'utf8');
    const [, started = ''] = /^ExecStart=\/usr\/bin\/(node .*)$/m.exec(unit) ?? [];
    const [, environment = ''] = /^Environment=(.*)$/m.exec(unit) ?? [];
    const example = readFileSync(join(root, 'deploy/systemd/serve.env.example'), 'utf8');
    const settings = example.split('\n').filter((line) => /^[A-Z]/.test(line));
    for (const instance of ['1', '2']) {
      const own = environment.replace(`METRICS_PORT=946%i`, `METRICS_PORT=${await freePort()}`);
      expect(own).not.toBe(environment);
      const line = `${settings.join(' ')} ${own} ${started.replace('/opt/intake/', '')}\n`;
      expect(await serve(line, 1)).toEqual(['Server listening at http://127.0.0.1:8080']);
      const ready = () => paste(ordinary(), 'curl -sS http://127.0.0.1:8080/health/ready');
      await expect.poll(ready, { message: instance }).toBe('{"status":"ok"}');
    }
    expect(servers.slice(-2).map(({ exitCode }) => exitCode)).toEqual([null, null]);
  });
});
