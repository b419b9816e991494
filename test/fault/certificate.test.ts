// @module-tag full

import { once } from 'node:events';
import { copyFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from 'node:tls';
import { afterAll, expect, it } from 'vitest';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { type Certificate, makeCertificate, makeDatedCertificate } from '../support/certificate.ts';
import { type Exchange, exchange } from '../support/exchange.ts';
import { expectInTime } from '../support/in-time.ts';
import { many } from '../support/new-records.ts';
import { runCommand } from '../support/run-command.ts';
import { untilPasses } from '../support/until-passes.ts';

/**
 * Tests replacing a certificate in a running process without any effect on clients. Each test has its own process, so
 * the tests run concurrently.
 */

const reachesMs = 5_000;
const folder = mkdtempSync(join(tmpdir(), 'intake-certificate-'));
const first = makeCertificate(folder, 'first');
const second = makeCertificate(folder, 'second');
const third = makeCertificate(folder, 'third');
const ca = [first, second, third].map(({ pem }) => pem);
afterAll(() => rmSync(folder, { recursive: true }));

interface Scene {
  readonly server: BuiltServer;
  readonly certFile: string;
  readonly keyFile: string;
  /** Requests `/v1/data` on a new connection, or with the given agent. */
  ask(agent?: Agent): Promise<Exchange>;
  /** Replaces each file atomically, as certificate renewal tools do. */
  install(certificate: Pick<Certificate, 'certFile' | 'keyFile'>): void;
  /** Returns the certificate that a new connection receives. */
  shown(): Promise<string>;
  untilShown(certificate: Certificate): Promise<void>;
  /** Returns a function that returns the log lines written since this call. */
  watchLog(): () => Line[];
}

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly err?: { readonly message: string };
}

async function inScene(installed: Certificate, play: (scene: Scene) => Promise<void>): Promise<void> {
  const own = mkdtempSync(join(folder, 'installed-'));
  const [certFile, keyFile] = [join(own, 'cert.pem'), join(own, 'key.pem')];
  const install: Scene['install'] = (certificate) => {
    put(certificate.keyFile, keyFile);
    put(certificate.certFile, certFile);
  };
  install(installed);
  const server = await startBuiltServer({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile });
  const shown = async () => {
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port), ca });
    await once(socket, 'secureConnect');
    const { fingerprint256 } = socket.getPeerCertificate();
    socket.destroy();
    return fingerprint256;
  };
  try {
    const key = await server.createKey('acme');
    await play({
      server,
      certFile,
      keyFile,
      ask: (agent) => exchange(`${server.url}/v1/data`, { key, ca, agent: agent ?? false }),
      install,
      shown,
      untilShown: ({ fingerprint }) => until(async () => expect(await shown()).toBe(fingerprint)),
      watchLog() {
        const lines = server.log.length;
        return () => server.log.slice(lines).map((line) => JSON.parse(line));
      },
    });
  } finally {
    await server.stop();
  }
}

function put(from: string, to: string): void {
  copyFileSync(from, `${to}.new`);
  renameSync(`${to}.new`, to);
}

/** Returns whether the process has looked between the replacements of the two files, when they were no pair. */
const isBetween = ({ err }: Line) =>
  /key values mismatch|key does not belong to the certificate/.test(err?.message ?? '');

/** Waits until the check passes. `expect.poll` does not know which of several concurrent tests it belongs to. */
const until = (check: () => void | Promise<void>) => untilPasses(async () => await check());

it('under load no request fails, open connections stay, and new ones see the new certificate within 5 s', () =>
  inScene(first, async ({ ask, install, shown, untilShown }) => {
    const agent = new Agent({ keepAlive: true, ca });
    let stopped = false;
    const lasting: Exchange[] = [];
    const fleeting: Exchange[] = [];
    const load = [
      ...many(8, async () => {
        for (; !stopped; await sleep(50)) lasting.push(await ask(agent));
      }),
      ...many(8, async () => {
        for (; !stopped; await sleep(100)) fleeting.push(await ask());
      }),
    ];
    // A failure is reported immediately, not when the load ends.
    const failed = Promise.all(load);
    const steps = async () => {
      await expect.poll(() => fleeting.length).toBeGreaterThan(8);
      expect(await shown()).toBe(first.fingerprint);
      let installed = 0;
      for (let round = 0; round < 2; round++)
        await expectInTime(async () => {
          const next = installed++ % 2 === 0 ? second : third;
          install(next);
          const began = performance.now();
          await untilShown(next);
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
    expect(lasting.filter(({ reused }) => !reused)).toHaveLength(8);
  }));

it.concurrent('a key of the same or another kind that does not belong to the certificate keeps the old one in use, with a line in the log', () =>
  inScene(first, async ({ ask, install, shown, untilShown, watchLog }) => {
    for (const other of [third, makeCertificate(folder, 'rsa', 'rsa')]) {
      const logged = watchLog();
      install({ certFile: second.certFile, keyFile: other.keyFile });
      const warnings = () => logged().filter(({ level, msg }) => level >= 40 && /certificate/i.test(msg));
      await until(() => expect(warnings().length).toBeGreaterThan(0));
      await sleep(2_500);
      expect(await shown()).toBe(first.fingerprint);
      expect((await ask()).status).toBe(200);
      expect(JSON.stringify(warnings())).not.toMatch(/PRIVATE KEY/);

      install(second);
      await untilShown(second);
      install(first);
      await untilShown(first);
    }
  }));

it.concurrent('files that are not a pair, or missing, change nothing until there is a pair again', () =>
  inScene(second, async ({ certFile, keyFile, install, shown, untilShown }) => {
    // The file that breaks the pair is replaced first, so a reader never finds another complete pair, even if it reads
    // one file before the change and the other after it.
    const spoils = [
      () => {
        writeFileSync(certFile, first.pem.subarray(0, first.pem.length / 2));
        put(first.keyFile, keyFile);
      },
      () => {
        writeFileSync(keyFile, '');
        put(third.certFile, certFile);
      },
      () => {
        rmSync(certFile);
        put(first.keyFile, keyFile);
      },
    ];
    for (const spoil of spoils) {
      spoil();
      await sleep(2_500);
      expect(await shown()).toBe(second.fingerprint);
    }
    install(third);
    await untilShown(third);
  }));

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
const dated = (name: string, from: number, to: number) =>
  makeDatedCertificate(folder, name, inDays(from), inDays(to));

it.concurrent.each([
  ['has expired', 'expired', -30, -1, /the certificate expired at \S+; renew it/],
  ['is not valid yet', 'early', 1, 30, /the certificate is not valid before \S+; use the current one/],
] as const)(
  'a certificate that %s is refused at the start, and later keeps the old one in use, with the reason in the log',
  (_what, name, from, to, reason) =>
    inScene(second, async ({ server, install, shown, untilShown, watchLog }) => {
      const refused = dated(name, from, to);
      const logged = watchLog();
      install(refused);
      const errors = () => logged().filter((line) => line.level >= 50 && !isBetween(line));
      await until(() =>
        expect(errors()).toMatchObject([
          {
            msg: 'the new certificate cannot be used; the old one stays',
            err: { message: expect.stringMatching(reason) },
          },
        ]),
      );
      await sleep(4_500);
      expect(await shown()).toBe(second.fingerprint);
      // The error is logged once, not every two seconds.
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
      await untilShown(third);
    }),
);

it.concurrent('a certificate is used when it becomes valid, and the log warns when it expires soon and when it has expired', () =>
  inScene(third, async ({ install, untilShown, watchLog }) => {
    const watched = watchLog();
    const at = (seconds: number) => new Date(Date.now() + seconds * 1_000);
    // The process looks every two seconds, also on a machine that stalls: before the certificate is valid, and in the last
    // quarter of its life.
    const brief = makeDatedCertificate(folder, 'brief', at(9), at(29));
    install(brief);
    const logged = () =>
      watched()
        .filter((line) => /certificate/.test(line.msg) && !isBetween(line))
        .map(({ level, msg }) => `${level} ${msg.split(/[,;]/)[0]}`);
    await until(() =>
      expect(logged()).toEqual([
        '50 the new certificate cannot be used',
        '30 the certificate was replaced',
        '40 the TLS certificate expires soon',
        '50 the TLS certificate has expired',
      ]),
    );
    install(third);
    await untilShown(third);
  }));
