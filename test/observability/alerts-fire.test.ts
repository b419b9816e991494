// @module-tag full

import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { apiOf } from '../support/api.ts';
import type { BuiltServer } from '../support/built-server.ts';
import { makeDatedCertificate } from '../support/certificate.ts';
import { createTestDatabase } from '../support/database.ts';
import { startFreezablePostgres } from '../support/freezable-postgres.ts';
import { badTag, newShop, newTag, newTransaction } from '../support/new-records.ts';
import {
  type Prometheus,
  prometheusIsInstalled,
  startNodeExporter,
  startPostgresExporter,
} from '../support/prometheus.ts';
import { queryDatabase } from '../support/query-database.ts';
import { startRedis } from '../support/redis.ts';
import { untilPasses } from '../support/until-passes.ts';
import { killServer, lock, lockTable, startArchivingPostgres } from './drills.ts';
import { mountDisk } from './full-disk.ts';
import { startOpenLoad } from './open-load.ts';
import { rowOf, runDrill } from './run-drill.ts';
import { startStand } from './stand.ts';

/**
 * Each alert fires in a real Prometheus when its cause is present, and ends when the cause is fixed. The alert delays
 * are seconds instead of minutes. The outages happen on separate databases and run concurrently.
 */

/** Waits until each of these alerts has fired since the call. Other alerts with the same cause may fire too. */
async function untilFired(prometheus: Prometheus, ...alerts: string[]): Promise<void> {
  const beganMs = performance.now();
  await untilPasses(async () => {
    const seconds = Math.max(1, Math.floor((performance.now() - beganMs) / 1_000));
    expect(await prometheus.fired(seconds)).toEqual(expect.arrayContaining(alerts));
  });
}

const untilQuiet = (prometheus: Prometheus) =>
  untilPasses(async () => expect(await prometheus.firing()).toEqual([]), 1_000);

/** This many uploads and requests per second are enough for every rule, and few enough for five concurrent outages. */
const perSecond = 6;

/** Uploads one record of each kind repeatedly, without waiting for earlier responses. */
const uploading = (server: () => BuiltServer | undefined, key: string, kinds: readonly (() => object)[]) =>
  startOpenLoad(perSecond, () =>
    apiOf(server()?.url ?? '', key).upload(
      'tags',
      kinds.map((make) => make()),
    ),
  );

describe
  .skipIf(!prometheusIsInstalled)
  .concurrent("alerts (need Debian's prometheus and its exporters)", () => {
    it('failing records, refused requests, an old certificate, a full disk, no Redis, no archive', async () => {
      const parts = await startParts();
      try {
        await expectCalm(parts);
        await causeAndRepair(parts);
      } finally {
        await parts.stop();
      }
    });

    it('a PostgreSQL that does not answer', async () => {
      const postgres = await startFreezablePostgres();
      const stand = await startStand(postgres.url, 'shortened', { settings: [{}] });
      const load = uploading(() => stand.servers[0], stand.key, [newTag]);
      try {
        const created = 'sum(rate(intake_records_total{outcome="created"}[5s])) > 3';
        await untilPasses(async () => expect(await stand.prometheus.query(created)).toHaveLength(1), 1_000);
        await untilQuiet(stand.prometheus);
        postgres.freeze();
        await untilFired(
          stand.prometheus,
          'IntakeDatabaseAway',
          'IntakeMaintenanceStuck',
          'IntakeServerErrors',
        );
        postgres.thaw();
        await untilQuiet(stand.prometheus);
      } finally {
        postgres.thaw();
        await load.stop();
        await stand.stop();
        await postgres.stop();
      }
    });

    it('a drill: a lock that is not released', async () => {
      const outage = await runDrill(lock, 'shortened');
      const fired = [...(outage?.alerts ?? [])].map(([name]) => name);
      expect(fired).toEqual(expect.arrayContaining(['IntakeStalled uploads']));
      // The database still answers, so it is available.
      expect(fired).not.toContain('IntakeDatabaseAway');
      expect([...(outage?.unready ?? [])].map(([said]) => said)).toContain('503 stalled');
      expect(rowOf(lock, outage as NonNullable<typeof outage>)).toMatch(
        /^\| A session .* × 503.*503 stalled after \d+ s.*IntakeStalled after \d+ s, until (the repair|\d+ s after)/,
      );
    });

    it('locks: counts are not rolled up, uploads are slow, a report is not counted, a request for access waits, a lake is not written', async () => {
      const databaseUrl = await createTestDatabase();
      const backedUp = (age: string) =>
        queryDatabase(databaseUrl, `update log_backups set written_at = now() - interval '${age}'`);
      await backedUp('2 days');
      const stand = await startStand(databaseUrl, 'shortened');
      const { prometheus } = stand;
      const first = stand.servers[0] as BuiltServer;
      const loads = [0, 1].map((at) => uploading(() => stand.servers[at], stand.key, [newTag]));
      try {
        const reported = apiOf(first.url, await first.createKey('reported'));
        await first.run('organisations', 'set-report', 'reported', 'on');
        // Switch on the lake, although no process writes to it.
        await first.run('organisations', 'set-lake', 'reported', 'on');
        await queryDatabase(
          databaseUrl,
          `insert into lake_progress (organisation_id, number, epoch)
           select organisation_id, 0, '00000000' from organisations where lake`,
        );
        const shop = newShop();
        const report = await lockTable(databaseUrl, 'report_transactions');
        const access = await lockTable(databaseUrl, 'access_request_ids');
        await queryDatabase(databaseUrl, oldAccessRequest);
        expect((await reported.upload('shops', [shop])).status).toBe(200);
        expect((await reported.upload('transactions', [newTransaction(shop.shop_id)])).status).toBe(200);
        const session = await lockTable(databaseUrl, 'record_count_changes');
        await untilFired(prometheus, 'IntakeMaintenanceStuck roll up counts', 'IntakeServerErrors');
        await session.end();
        const delaying = startDelaying(databaseUrl);
        await Promise.all([
          untilFired(prometheus, 'IntakeUploadsSlow').finally(() => delaying.stop()),
          untilFired(
            prometheus,
            'IntakeWorkLate report',
            'IntakeWorkLate access requests',
            'IntakeWorkLate lake',
            'IntakeLogBackupLate',
          ),
        ]);
        await Promise.all([report.end(), access.end(), backedUp('0 s')]);
        // If the report and the lake stayed on, the leader would retry only after a minute.
        await first.run('organisations', 'set-report', 'reported', 'off');
        await first.run('organisations', 'set-lake', 'reported', 'off');
        await untilQuiet(prometheus);
      } finally {
        await Promise.all(loads.map((load) => load.stop()));
        await stand.stop();
      }
    });

    it('a key that expires; the leader is killed, and its successor cannot create partitions', async () => {
      const databaseUrl = await createTestDatabase();
      await queryDatabase(databaseUrl, expiringKey);
      const stand = await startStand(databaseUrl, 'shortened');
      const { prometheus, ports } = stand;
      try {
        await untilFired(prometheus, 'IntakeKeysExpire');
        // A new leader runs all chores immediately, so the test does not wait for the next count of keys.
        await queryDatabase(databaseUrl, `${losePartitions}; update api_keys set expires_at = null`);
        await killServer(stand, 0);
        await untilFired(prometheus, 'IntakeMaintenanceStuck make partitions', 'IntakeProcessDown');
        await stand.replace(0);
        // These steps follow the runbook: migrate grants the privilege, and the owner creates the partitions without
        // waiting.
        await stand.servers[0]?.run('migrate');
        await queryDatabase(databaseUrl, 'select ensure_interaction_partitions(35)');
        const [leading] = await untilPasses(async () => {
          const leaders = await prometheus.query('intake_maintenance_leader == 1');
          expect(leaders).toHaveLength(1);
          return leaders;
        }, 1_000);
        const at = ports.findIndex((port) => leading?.labels.instance === `127.0.0.1:${port}`);
        await stand.servers[at]?.stop();
        await stand.replace(at);
        await untilQuiet(prometheus);
      } finally {
        await stand.stop();
      }
    });
  });

/**
 * Starts three processes that share a Redis server. The third one uses TLS. Their PostgreSQL server archives its WAL
 * and has a disk that the test can fill.
 */
async function startParts() {
  const folder = mkdtempSync(join(tmpdir(), 'intake-alerts-'));
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const install = (days: number) => {
    const [from, to] = [new Date(Date.now() - 86_400_000), new Date(Date.now() + days * 86_400_000)];
    const made = makeDatedCertificate(folder, `${days}-days`, from, to);
    copyFileSync(made.keyFile, keyFile);
    copyFileSync(made.certFile, certFile);
  };
  install(90);
  const [postgres, redis] = await Promise.all([startArchivingPostgres(), startRedis()]);
  const settings = { REDIS_URL: redis.url };
  const stand = await startStand(postgres.url, 'shortened', {
    settings: [settings, settings, { ...settings, TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile }],
    exporters: { node: await startNodeExporter(), postgres: await startPostgresExporter(postgres.url) },
  });
  const [one, two] = stand.servers as [BuiltServer, BuiltServer];
  const loads = [one, two].map((server) => uploading(() => server, stand.key, [newTag]));
  const disk = mountDisk(16);
  return {
    postgres,
    redis,
    disk,
    stand,
    servers: [one, two] as const,
    install,
    async stop() {
      await Promise.all(loads.map((load) => load.stop()));
      await stand.stop();
      await Promise.all([postgres.stop(), redis.stop()]);
      disk?.remove();
      rmSync(folder, { recursive: true });
    },
  };
}

type Parts = Awaited<ReturnType<typeof startParts>>;

/** Checks that no alert fires under ordinary load. */
async function expectCalm({ stand: { prometheus } }: Parts): Promise<void> {
  // Wait until every rule has a full window of data.
  const scraped = 'min(count_over_time(intake_batch_duration_seconds_count[1m])) > 6';
  const created = 'sum(rate(intake_records_total{outcome="created"}[5s])) > 3';
  for (const query of [scraped, created])
    await untilPasses(async () => expect(await prometheus.query(query)).toHaveLength(1), 1_000);
  await untilQuiet(prometheus);
}

/** Causes all problems that can occur at the same time, and fixes them. */
async function causeAndRepair({ postgres, redis, disk, stand, servers, install }: Parts): Promise<void> {
  const { prometheus } = stand;
  const [one, two] = servers;
  const limited = await one.createKey('limited');
  await one.run('organisations', 'limit', 'limited', '--requests-per-second', '1');
  const causes = [
    uploading(() => one, stand.key, [badTag, badTag]),
    startOpenLoad(perSecond, () => apiOf(two.url, limited).get('/v1/data')),
  ];
  disk?.fill(0.04);
  await postgres.breakArchive();
  await redis.kill();
  install(5);
  const expired = untilFired(prometheus, 'IntakeCertificateExpires').then(() => {
    install(0.5);
    const page = 'ALERTS{alertname="IntakeCertificateExpires",severity="page",alertstate="firing"}';
    return untilPasses(async () => expect(await prometheus.query(page)).toHaveLength(1), 1_000);
  });
  await untilFired(
    prometheus,
    'IntakeArchivingFails',
    ...(disk ? ['IntakeDiskNearlyFull'] : []),
    'IntakeLimitsHit too_many_requests',
    'IntakeRedisAway',
    'IntakeRejectionsSurge',
  );
  await expired;
  await Promise.all(causes.map((cause) => cause.stop()));
  disk?.empty();
  postgres.repairArchive();
  await redis.restart();
  install(60);
  await untilQuiet(prometheus);
}

/** Delays uploads repeatedly by two seconds, as a job that often locks the table would. */
function startDelaying(databaseUrl: string): { stop(): Promise<void> } {
  let stopped = false;
  const work = (async () => {
    while (!stopped) {
      const session = await lockTable(databaseUrl, 'record_count_changes');
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

const expiringKey = `
  insert into organisations (organisation_id, slug, name) values (gen_random_uuid(), 'old', 'old');
  insert into api_keys (key_id, organisation_id, key_sha256, permissions, created_at, expires_at, last_used_at)
  select 'old', organisation_id, '', '{}', now() - interval '1 year', now() + interval '1 day', now() from organisations`;

const oldAccessRequest = `
  insert into access_requests (organisation_id, access_request_id, key_id, people)
  select organisation_id, uuid_floor(now() - interval '2 days'), 'gone', 1 from organisations where slug = 'reported'`;

/** Drops all partitions beyond the next three days, and revokes the service's privilege to create more. */
const losePartitions = `
  do $$ declare partition text; begin
    for partition in select name from interaction_partitions where first_id > uuid_floor(now() + interval '3 days') loop
      execute format('drop table %I', partition);
      delete from interaction_partitions where name = partition;
    end loop;
  end $$;
  revoke execute on function ensure_interaction_partitions from intake_serve`;
