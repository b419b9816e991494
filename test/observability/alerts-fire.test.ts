// @module-tag full

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { makeCertificate } from '../support/certificate.ts';
import { freePort } from '../support/free-port.ts';
import { type FreezablePostgres, startFreezablePostgres } from '../support/freezable-postgres.ts';
import { holdUpload } from '../support/held-upload.ts';
import { badTag, many, newShop, newTag, newTransaction } from '../support/new-records.ts';
import {
  type Exporter,
  type Prometheus,
  prometheusIsInstalled,
  startNodeExporter,
  startPrometheus,
} from '../support/prometheus.ts';
import { queryDatabase } from '../support/query-database.ts';
import { scrapeMetrics } from '../support/scrape-metrics.ts';
import { type Disk, mountDisk } from './full-disk.ts';
import { type OpenLoad, startOpenLoad } from './open-load.ts';
import { shortenedRules } from './shortened-rules.ts';

/** Each alert fires in a real Prometheus when its cause is made real, and stops once that is mended. */

const folder = mkdtempSync(join(tmpdir(), 'intake-alerts-'));
const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
const bytesInFlightMax = 8 * 1024 * 1024;
let postgres: FreezablePostgres;
let ports: number[];
/** The first two are under load; the third has a certificate. */
const servers: BuiltServer[] = [];
const [one, two, three] = [0, 1, 2].map((at) => () => servers[at] as BuiltServer) as [Which, Which, Which];
type Which = () => BuiltServer;
let key: string;
let disk: Disk | undefined;
let node: Exporter;
let prometheus: Prometheus;
const loads: OpenLoad[] = [];

const settings = (at: number) => ({
  DATABASE_URL: postgres.url,
  METRICS_PORT: String(ports[at]),
  BODY_BYTES_MAX: String(bytesInFlightMax),
  BYTES_IN_FLIGHT_MAX: String(bytesInFlightMax),
  BYTES_IN_FLIGHT_PER_ORGANISATION_MAX: String(bytesInFlightMax),
  ...(at === 2 && { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile }),
});

function install(days: number): void {
  const made = makeCertificate(folder, `${days}-days`, 'ec', days);
  copyFileSync(made.keyFile, keyFile);
  copyFileSync(made.certFile, certFile);
}

/** Uploads one record of each kind 20 times a second, whether or not the uploads before are answered. */
const uploading = (server: Which, kinds: readonly (() => object)[]) =>
  startOpenLoad(20, () =>
    apiOf(server().url, key).upload(
      'tags',
      kinds.map((make) => make()),
    ),
  );

const patient = { timeout: 120_000, interval: 250 };
/** Where every wait takes as long as it may. */
const timeout = 400_000;

/** Waits until each of these alerts has fired since; others that the same cause has may fire too. */
async function untilFired(...alerts: string[]): Promise<void> {
  const beganMs = performance.now();
  const seconds = () => Math.max(1, Math.floor((performance.now() - beganMs) / 1_000));
  await expect.poll(() => prometheus.fired(seconds()), patient).toEqual(expect.arrayContaining(alerts));
}

const untilQuiet = () => expect.poll(() => prometheus.firing(), patient).toEqual([]);

/** Holds a lock that every upload needs, in a session that somebody forgot. */
async function lockUploads(): Promise<pg.Client> {
  const session = new pg.Client({ connectionString: postgres.url });
  await session.connect();
  await session.query('begin');
  await session.query('lock table record_count_changes');
  return session;
}

/** Makes uploads wait for two seconds, again and again, as a job does that locks the table often. */
function startDelaying(): { stop(): Promise<void> } {
  let stopped = false;
  const work = (async () => {
    while (!stopped) {
      const session = await lockUploads();
      await sleep(2_000);
      await session.end();
      await sleep(500);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await work;
    },
  };
}

/** Takes a process off the processor again and again, as a crowded machine does. */
function startInterrupting({ process: own }: BuiltServer): { stop(): Promise<void> } {
  let stopped = false;
  const work = (async () => {
    while (!stopped) {
      own.kill('SIGSTOP');
      await sleep(620);
      own.kill('SIGCONT');
      // Long enough for a slow machine to be scraped.
      await sleep(200);
    }
  })();
  return {
    async stop() {
      stopped = true;
      await work;
    },
  };
}

/** All days but three are gone, and the service has lost the right to make them. */
const losePartitions = `
  do $$ declare partition text; begin
    for partition in select name from interaction_partitions where first_id > uuid_floor(now() + interval '3 days') loop
      execute format('drop table %I', partition);
      delete from interaction_partitions where name = partition;
    end loop;
  end $$;
  revoke execute on function ensure_interaction_partitions from intake_serve`;

/** Three processes, a PostgreSQL and Prometheus start beside other tests. */
const startMs = 400_000;

describe.skipIf(!prometheusIsInstalled)("alerts (need Debian's prometheus and its exporters)", () => {
  beforeAll(async () => {
    postgres = await startFreezablePostgres();
    install(90);
    ports = await Promise.all(many(3, freePort));
    // The first is the leader.
    servers.push(await startBuiltServer(settings(0)));
    servers.push(...(await Promise.all([1, 2].map((at) => startBuiltServer(settings(at))))));
    key = await one().createKey('acme');
    disk = mountDisk();
    node = await startNodeExporter();
    const targets = ports.map((port) => `127.0.0.1:${port}`);
    prometheus = await startPrometheus({ intake: targets, node: [node.target] }, shortenedRules());
    loads.push(uploading(one, [newTag]), uploading(two, [newTag]));
  }, startMs);
  afterAll(async () => {
    postgres?.thaw();
    await Promise.all(loads.map((load) => load.stop()));
    await Promise.all([...servers, prometheus, node].map((started) => started?.stop()));
    await postgres?.stop();
    disk?.remove();
    rmSync(folder, { recursive: true });
  });

  it('under an ordinary load none fires', { timeout }, async () => {
    // Until every rule has had a window of numbers.
    const scraped = 'count_over_time(intake_batch_duration_seconds_count[1m])';
    await expect
      .poll(async () => (await prometheus.query(scraped)).map(({ value }) => value > 6), patient)
      .toEqual([true, true, true]);
    await untilQuiet();
    const created = 'sum(rate(intake_records_total{outcome="created"}[5s])) > 10';
    await expect.poll(() => prometheus.query(created), patient).toHaveLength(1);
  });

  it('failing records, refused requests, full memory, a slow thread, an old certificate and a full disk', {
    timeout,
  }, async () => {
    const [limited, ...holders] = await Promise.all(
      ['limited', 'holder-1', 'holder-2'].map((slug) => one().createKey(slug)),
    );
    await one().run('organisations', 'limit', 'limited', '--requests-per-second', '1');
    const causes = [
      uploading(one, [badTag, badTag]),
      startOpenLoad(20, () => apiOf(two().url, limited).get('/v1/data')),
    ];
    const inFlight = async () =>
      (await scrapeMetrics(`http://127.0.0.1:${ports[1]}/metrics`)).get('intake_bytes_in_flight');
    const held = [await holdUpload(two().url, holders[0] as string, bytesInFlightMax * 0.7)];
    // Behind the other, there would be no room for the larger one.
    await expect.poll(inFlight).toBeGreaterThanOrEqual(bytesInFlightMax * 0.7);
    held.push(await holdUpload(two().url, holders[1] as string, bytesInFlightMax * 0.18));
    const slow = startInterrupting(three());
    disk?.fill();
    install(5);
    await untilFired(
      'IntakeCertificateExpires',
      ...(disk ? ['IntakeDiskNearlyFull'] : []),
      'IntakeEventLoopSlow',
      'IntakeLimitsHit too_many_requests',
      'IntakeMemoryHeld',
      'IntakeRejectionsSurge',
    );
    await Promise.all(causes.map((cause) => cause.stop()));
    for (const { abort } of held) abort();
    await slow.stop();
    disk?.empty();
    install(60);
    await untilQuiet();
  });

  it('a lock that is not released: no connection is free, counts are not rolled up, and uploads are slow', {
    timeout,
  }, async () => {
    const session = await lockUploads();
    await untilFired('IntakeMaintenanceStuck roll up counts', 'IntakePoolExhausted', 'IntakeServerErrors');
    await session.end();
    const delaying = startDelaying();
    await untilFired('IntakeUploadsSlow');
    await delaying.stop();
    await untilQuiet();
  });

  it('a report that cannot be counted', { timeout }, async () => {
    const reported = apiOf(one().url, await one().createKey('reported'));
    await one().run('organisations', 'set-report', 'reported', 'on');
    const session = new pg.Client({ connectionString: postgres.url });
    await session.connect();
    await session.query('begin; lock table report_transactions');
    const shop = newShop();
    expect((await reported.upload('shops', [shop])).status).toBe(200);
    expect((await reported.upload('transactions', [newTransaction(shop.shop_id)])).status).toBe(200);
    await untilFired('IntakeReportLate');
    await session.end();
    // The leader would try again after a minute.
    await one().run('organisations', 'set-report', 'reported', 'off');
    await untilQuiet();
  });

  it('a process that is gone, and partitions that its successor cannot make', { timeout }, async () => {
    await queryDatabase(postgres.url, losePartitions);
    await one().stop();
    await untilFired('IntakeMaintenanceStuck make partitions', 'IntakePartitionsRunOut', 'IntakeProcessDown');
    servers[0] = await startBuiltServer(settings(0));
    // As the runbook says: migrate grants the right, and the owner does not wait for the chore to be tried again.
    await one().run('migrate');
    await queryDatabase(postgres.url, 'select ensure_interaction_partitions(35)');
    // Nor does the test, for the next count: the next leader begins with everything.
    const leaders = () => prometheus.query('intake_maintenance_leader == 1');
    await expect.poll(leaders, patient).toHaveLength(1);
    const [leading] = await leaders();
    const at = ports.findIndex((port) => leading?.labels.instance === `127.0.0.1:${port}`);
    await servers[at]?.stop();
    servers[at] = await startBuiltServer(settings(at));
    await untilQuiet();
  });

  it('a PostgreSQL that does not answer', { timeout }, async () => {
    postgres.freeze();
    await untilFired('IntakeDatabaseAway', 'IntakeMaintenanceStuck', 'IntakeServerErrors');
    postgres.thaw();
    await untilQuiet();
  });
});
