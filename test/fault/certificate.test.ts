// @module-tag full

import { once } from 'node:events';
import { copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { type Certificate, makeCertificate, makeDatedCertificate } from '../support/certificate.ts';
import { type Exchange, exchange } from '../support/exchange.ts';
import { expectInTime } from '../support/in-time.ts';
import { many } from '../support/new-records.ts';
import { runCommand } from '../support/run-command.ts';

/** A certificate is replaced in a running process, and nobody who uses it notices. */

const reachesMs = 5_000;
const folder = mkdtempSync(join(tmpdir(), 'intake-certificate-'));
const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
let first: Certificate;
let second: Certificate;
let third: Certificate;
let ca: Buffer[];
let server: BuiltServer;
let key: string;
beforeAll(async () => {
  first = makeCertificate(folder, 'first');
  second = makeCertificate(folder, 'second');
  third = makeCertificate(folder, 'third');
  ca = [first, second, third].map(({ pem }) => pem);
  install(first);
  server = await startBuiltServer({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });
  key = await server.createKey('acme');
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** Each file by itself, in one step, as a program that renews certificates does. */
function install(certificate: { certFile: string; keyFile: string }): void {
  put(certificate.keyFile, keyFile);
  put(certificate.certFile, certFile);
}

function put(from: string, to: string): void {
  copyFileSync(from, `${to}.new`);
  renameSync(`${to}.new`, to);
}

/** Which certificate a new connection is shown. */
async function shown(): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const socket = connect({ host: hostname, port: Number(port), ca });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}

const expectShown = ({ fingerprint }: Certificate) => expect.poll(shown).toBe(fingerprint);

it('under load no request fails, open connections stay, and new ones see the new certificate within 5 s', async () => {
  const agent = new Agent({ keepAlive: true, ca });
  const url = `${server.url}/v1/data`;
  let stopped = false;
  const lasting: Exchange[] = [];
  const fleeting: Exchange[] = [];
  const load = [
    ...many(25, async () => {
      for (; !stopped; await sleep(10)) lasting.push(await exchange(url, { agent, key }));
    }),
    ...many(25, async () => {
      for (; !stopped; await sleep(50)) fleeting.push(await exchange(url, { agent: false, ca, key }));
    }),
  ];
  // A failure is told at once, not when the load ends.
  const failed = Promise.all(load);
  const steps = async () => {
    await expect.poll(() => fleeting.length).toBeGreaterThan(25);
    expect(await shown()).toBe(first.fingerprint);
    let installed = 0;
    for (let round = 0; round < 2; round++)
      await expectInTime(async () => {
        const next = installed++ % 2 === 0 ? second : third;
        install(next);
        const began = performance.now();
        await expectShown(next);
        const ms = performance.now() - began;
        console.log(`the new certificate was in use after ${ms.toFixed(0)} ms`);
        await sleep(500);
        return [{ what: 'the new certificate', ms, promisedMs: reachesMs }];
      });
    await expect.poll(() => fleeting.length).toBeGreaterThan(100);
  };
  await Promise.race([steps(), failed.then(() => undefined)]);
  stopped = true;
  await failed;
  agent.destroy();
  console.log(`${lasting.length} requests over lasting connections, ${fleeting.length} over new ones`);
  expect([...lasting, ...fleeting].filter(({ status }) => status !== 200)).toEqual([]);
  expect(lasting.filter(({ reused }) => !reused)).toHaveLength(25);
});

it.each([
  ['a key', () => third],
  ['a key of another kind', () => makeCertificate(folder, 'rsa', 'rsa')],
])(
  '%s that does not belong to the certificate leaves the old one in use, and the log says so',
  async (_what, other) => {
    install(first);
    await expectShown(first);
    const linesBefore = server.log.length;
    install({ certFile: second.certFile, keyFile: other().keyFile });
    const warnings = () =>
      server.log
        .slice(linesBefore)
        .map((line) => JSON.parse(line))
        .filter(({ level, msg }) => level >= 40 && /certificate/i.test(msg));
    await expect.poll(() => warnings().length).toBeGreaterThan(0);
    await sleep(2_500);
    expect(await shown()).toBe(first.fingerprint);
    expect((await exchange(`${server.url}/v1/data`, { agent: false, ca, key })).status).toBe(200);
    expect(JSON.stringify(warnings())).not.toMatch(/PRIVATE KEY/);

    install(second);
    await expectShown(second);
  },
);

it('files that are no pair, or none, change nothing until there is a pair again', async () => {
  install(second);
  await expectShown(second);
  // What spoils the pair comes first: at no moment is there another whole one.
  const spoils = [
    () => {
      writeFileSync(certFile, first.pem.subarray(0, first.pem.length / 2));
      put(third.keyFile, keyFile);
    },
    () => {
      writeFileSync(keyFile, '');
      put(third.certFile, certFile);
    },
    () => {
      rmSync(certFile);
      put(third.keyFile, keyFile);
    },
  ];
  for (const spoil of spoils) {
    spoil();
    await sleep(2_500);
    expect(await shown()).toBe(second.fingerprint);
  }
  install(third);
  await expectShown(third);
});

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
const dated = (name: string, from: number, to: number) =>
  makeDatedCertificate(folder, name, inDays(from), inDays(to));

it.each([
  ['has expired', 'expired', -30, -1, /the certificate expired at \S+; renew it/],
  ['is not valid yet', 'early', 1, 30, /the certificate is not valid before \S+; use the current one/],
] as const)(
  'a certificate that %s is refused at the start, and later the old one stays in use and the log says why',
  async (_what, name, from, to, reason) => {
    install(second);
    await expectShown(second);
    const refused = dated(name, from, to);
    const linesBefore = server.log.length;
    install(refused);
    const errors = () =>
      server.log
        .slice(linesBefore)
        .map((line) => JSON.parse(line))
        .filter(({ level }) => level >= 50);
    await expect.poll(errors).toMatchObject([
      {
        msg: 'the new certificate cannot be used; the old one stays',
        err: { message: expect.stringMatching(reason) },
      },
    ]);
    await sleep(4_500);
    expect(await shown()).toBe(second.fingerprint);
    // Once, not every two seconds.
    expect(errors()).toHaveLength(1);
    const tls = { TLS_CERT_FILE: refused.certFile, TLS_KEY_FILE: refused.keyFile };
    const { exitCode, stderr } = await runCommand(['serve'], {
      DATABASE_URL: server.databaseUrl,
      PORT: '0',
      ...tls,
    });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(new RegExp(`TLS_CERT_FILE is ${refused.certFile}: ${reason.source}`));
    install(third);
    await expectShown(third);
  },
);

it('a certificate is taken when it becomes valid, and the log warns when it expires soon and when it has expired', async () => {
  install(third);
  await expectShown(third);
  const linesBefore = server.log.length;
  const at = (seconds: number) => new Date(Date.now() + seconds * 1_000);
  const brief = makeDatedCertificate(folder, 'brief', at(6), at(18));
  ca.push(brief.pem);
  install(brief);
  const logged = () =>
    server.log
      .slice(linesBefore)
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => /certificate/.test(msg))
      .map(({ level, msg }) => `${level} ${msg.split(/[,;]/)[0]}`);
  await expect
    .poll(logged, { timeout: 60_000 })
    .toEqual([
      '50 the new certificate cannot be used',
      '30 the certificate was replaced',
      '40 the TLS certificate expires soon',
      '50 the TLS certificate has expired',
    ]);
  install(third);
  await expectShown(third);
});
