// @module-tag full

import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
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
import { type PeerPostgres, startPeerPostgres } from '../support/peer-postgres.ts';
import { type Redis, redisIsInstalled, startRedis } from '../support/redis.ts';

/** Follows docs/operating.md on a PostgreSQL 15 as Debian installs it, with the service as an ordinary account. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/operating.md'), 'utf8');
const reachable = (path: string): boolean =>
  path === dirname(path) || ((statSync(dirname(path)).mode & 0o001) !== 0 && reachable(dirname(path)));
const missing = [
  ['PostgreSQL 15 of Debian', existsSync('/usr/lib/postgresql/15/bin/postgres')],
  ['the account postgres', spawnSync('id', ['postgres']).status === 0],
  ['root, to become another account', process.getuid?.() === 0],
  ['a Node and a checkout that others can reach', reachable(process.execPath) && reachable(root)],
].flatMap(([name, isThere]) => (isThere ? [] : [name]));
if (missing.length > 0) console.log(`docs/operating.md is not followed: it needs ${missing.join(', ')}`);

/** The blocks of a section, in order. */
function blocksOf(heading: string): { readonly kind: string; readonly text: string }[] {
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, kind = '', text = '']) => ({
    kind,
    text,
  }));
}

/** The block that has this in it. */
function block(heading: string, part: string): string {
  const found = blocksOf(heading).filter(({ text }) => text.includes(part));
  expect(found, part).toHaveLength(1);
  return found[0]?.text ?? '';
}

describe.skipIf(missing.length > 0)('docs/operating.md', { timeout: 240_000 }, () => {
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
  /** As it stands, but for the ports: 5432 and 8080 may be taken on this machine. */
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
      timeout: 100_000,
    });
    return stdout;
  }

  /** What begins with sudo is run by whoever may use it; here, root. */
  function pasteSudo(text: string): Promise<string> {
    const { env } = options();
    return paste({ env: { ...env, PATH: `${postgres.path}:${env.PATH}` } }, text);
  }

  /** Runs the block in a terminal of its own until it has logged so many lines; returns their messages. */
  async function serve(text: string, lineCount: number): Promise<string[]> {
    // The last command takes the place of the shell, so that a signal reaches it.
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
      // On a busy machine it may be late, and is told of then and again when it is there.
      if (msg.startsWith('Redis')) continue;
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
    const commands = blocksOf('Setup').filter(({ kind }) => kind === 'sh');
    const [build, roles, migrate, serving, organisation, upload, ...rest] = commands.map(({ text }) => text);
    expect(rest).toEqual([]);
    // The packages are there and the program is built: that is how this test came to run.
    expect(build).toBe('npm ci\nnpm run build\nnpm prune --omit=dev --omit=optional\n');
    await pasteSudo(roles ?? '');
    expect(await paste(ordinary(), migrate ?? '')).toBe(block('Setup', 'applied 0001'));
    const shown = block('Setup', '"msg"').trim().split('\n');
    const messages = await serve(serving ?? '', shown.length);
    expect(messages.toSorted()).toEqual(shown.map((line) => JSON.parse(line).msg).toSorted());
    const printed = await paste(ordinary(), organisation ?? '', upload ?? '');
    const withoutId = (text: string) => text.replace(/\([0-9a-f-]{36}\)/, '()');
    expect(withoutId(printed)).toContain(withoutId(block('Setup', 'Created the organisation')));
    expect(printed).toContain('"message":"1 record received: 1 created."');
    expect(printed.trimEnd().split('\n').at(-1)).toBe('200');
  });

  const list =
    "DATABASE_URL='postgres://intake_ops:change-me-3@localhost:5432/intake' node dist/main.js keys list\n";
  const remedies = 'Missing roles, memberships and rights';

  it('where the roles are missing, the statements and migrate bring them', async () => {
    for (const server of servers) await stop(server);
    await pasteSudo(`sudo -u postgres psql -v ON_ERROR_STOP=1 intake <<'SQL'
drop owned by intake_serve, intake_admin, intake_read_all;
drop role intake_serve, intake_admin, intake_read_all;
SQL
`);
    const migrate = block('Setup', 'main.js migrate');
    expect(await paste(ordinary(), migrate)).toContain('The role intake_serve does not exist');
    await pasteSudo(block(remedies, 'create role intake_serve'));
    expect(await paste(ordinary(), migrate)).toBe('The schema was up to date already.\n');
    expect(await serve(block('Setup', 'main.js serve'), 1)).toEqual([
      'Server listening at http://127.0.0.1:8080',
    ]);
    expect(await paste(ordinary(), list)).toContain('acme');
  });

  it('where a membership is missing, the statements alone bring it', async () => {
    await pasteSudo("sudo -u postgres psql -c 'revoke intake_admin from intake_ops'\n");
    await expect(paste(ordinary(), list)).rejects.toThrow('permission denied for table');
    await pasteSudo(block(remedies, "'SQL'\ngrant intake_serve"));
    expect(await paste(ordinary(), list)).toContain('acme');
  });

  it('Redis and the admin API are served and used as the page says', async () => {
    for (const server of servers) await stop(server);
    const commands = blocksOf('Admin API').filter(({ kind }) => kind === 'sh');
    const [serving = '', tokens = '', defined = '', organisations = '', keys = ''] = commands.map(
      ({ text }) => text,
    );
    const redisUrl = redis ? block('Several processes and Redis', 'export REDIS_URL') : '';
    const shown = block('Admin API', '"msg"').trim().split('\n');
    const messages = await serve(redisUrl + serving, shown.length);
    const expected = shown.map((line) => JSON.parse(line).msg);
    expect(messages.toSorted()).toEqual(expected.toSorted());

    const [login = ''] = block('Setup', "export DATABASE_URL='postgres://intake_ops:").split('\n');
    const issuedTokens = await paste(ordinary(), `${login}\n`, tokens);
    const secrets = issuedTokens.match(/intake_admin_\w+/g) ?? [];
    expect(secrets).toHaveLength(2);
    const withoutDetails = (text: string) =>
      text.replaceAll(/intake_admin_[\w…]+|20\d\d-[\d-]+T[\d:.]+Z|cli:\w+/g, '');
    expect(withoutDetails(issuedTokens)).toBe(withoutDetails(block('Admin API', 'Issued the full token')));
    const define = defined.replace('intake_admin_…', secrets[0] ?? '');

    const answered = (await paste(ordinary(), define, organisations)).trim().split('\n');
    const documented = JSON.parse(block('Admin API', '"suspended_at":null'));
    const { organisation_id, created_at, ...rest } = JSON.parse(answered.at(-1) ?? '');
    expect({ ...documented, organisation_id, created_at }).toEqual({ organisation_id, created_at, ...rest });

    const [issue = '', ...others] = keys.split(/^(?=admin )/m);
    const issued = JSON.parse(await paste(ordinary(), define, issue));
    expect(Object.keys(issued)).toEqual(Object.keys(JSON.parse(block('Admin API', '"key":"intake_'))));
    const lines = await paste(ordinary(), define, others.join('').replaceAll('HiEu85bOFoC', issued.key_id));
    expect(JSON.parse(lines.trim().split('\n').at(-1) ?? '')).toMatchObject({
      revoked_at: expect.any(String),
    });
  });

  it('HTTPS with a certificate is served as the page says', async () => {
    for (const server of servers) await stop(server);
    const { certFile, keyFile } = makeCertificate(folder, 'intake.example.com');
    cpSync(certFile, join(folder, 'cert.pem'));
    cpSync(keyFile, join(folder, 'key.pem'));
    chmodSync(join(folder, 'key.pem'), 0o644);
    const login = block('HTTPS', "export DATABASE_URL='postgres://intake_app:change-me-2@localhost");
    await serve(login + block('HTTPS', 'PORT=8443'), 1);
    const asked = block('HTTPS', 'https://intake.example.com:8443')
      .replace('intake.example.com:8443', `localhost:${port}`)
      .replace('curl', 'curl --cacert cert.pem');
    await expect.poll(() => paste(ordinary(), asked)).toBe('{"status":"ok"}');
  });

  it('two processes that are started as by the systemd unit share a port', async () => {
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
