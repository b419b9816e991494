import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import fastify from 'fastify';
import pg from 'pg';
import { commandError } from '../src/cli/arguments/help.ts';
import { startService } from '../src/cli/serve.ts';
import { startLake } from '../src/cli/serving/lake.ts';
import { type Config, ConfigError, readConfig } from '../src/config.ts';
import { loggerOf } from '../src/http/server/server.ts';
import { findApiKey } from '../src/keys/api-keys.ts';
import { hashKey, keyIdOf } from '../src/keys/key-format.ts';
import { allPermissions, type Permission, readingPermissions } from '../src/keys/permissions.ts';
import { limits } from '../src/limits.ts';
import { changeOrganisation, createOrganisation, issueKey } from '../src/operator/audited-actions.ts';
import { findOrganisation } from '../src/operator/organisations.ts';
import { grantRoles } from '../src/operator/roles.ts';
import { createPool, type Pool } from '../src/postgres/pool.ts';
import { migrate } from '../src/postgres/schema/migrate.ts';
import { UnreleasedSchema } from '../src/postgres/schema/migration-checksums.ts';
import { resources } from '../src/registry/resources.ts';
import { commandOf, embeddedBinaries, startLocalPostgres } from './local-postgres.ts';

/** Starts the service with everything it needs, for trying it out and for development. */

const folder = resolve('.intake');
const runningFile = join(folder, 'running');
const slug = 'demo';
const by = { actor: 'dev' };
/** Settings for development. The data is made up, so the hash key does not have to be secret. */
const fallbacks = {
  LOG_LEVEL: 'warn',
  ERASURE_KEYS: 'only for trying things out on this machine',
  LAKE_URL: pathToFileURL(join(folder, 'lake')).href,
  LAKE_DELAY_SECONDS: '5',
};

async function start(): Promise<void> {
  refuseArguments();
  refuseTwin();
  console.log('Starting PostgreSQL ...');
  const postgres = await startLocalPostgres(folder, embeddedBinaries());
  let service: Awaited<ReturnType<typeof startService>> | undefined;
  let lake: Awaited<ReturnType<typeof startLake>> | undefined;
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    await lake?.stop();
    await service?.stop();
    await postgres.stop();
    rmSync(runningFile, { force: true });
    // Exports to an unreachable collector would keep the process alive.
    setTimeout(() => process.exit(), limits.stopIntervalMs).unref();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop());
  try {
    await createDatabase(postgres.url('postgres'));
    await migrateFolder(postgres.url('intake'));
    const owner = readConfig({ DATABASE_URL: postgres.url('intake') }, fallbacks);
    const pool = createPool(owner, () => {});
    const keys = await demoKeys(pool);
    const databaseUrl = await servingLogin(pool, postgres.url('intake'));
    await pool.end();
    service = await startService({ ...owner, databaseUrl });
    const { log } = fastify({ logger: loggerOf(owner) });
    // The service already uses the metrics port.
    lake = await startLake({ ...owner, databaseUrl, metricsPort: 0 }, log);
    writeFileSync(runningFile, `${process.pid} ${service.address}`);
    console.log(welcome(service.address, keys, postgres.home, owner));
  } catch (error) {
    await stop();
    throw error;
  }
}

function refuseArguments(): void {
  if (process.argv.length === 2) return;
  throw commandError('settings come from the environment, for example PORT=8090 npm run dev');
}

async function migrateFolder(url: string): Promise<void> {
  try {
    await migrate(url, grantRoles);
  } catch (error) {
    if (!(error instanceof UnreleasedSchema)) throw error;
    throw commandError(
      `the data in ${folder} comes from a version before 0.1.0, which cannot be upgraded; delete that folder and start again`,
    );
  }
}

/** Refuses to start if another process is running, because the two would stop each other's PostgreSQL server. */
function refuseTwin(): void {
  const [pid = '', address] = existsSync(runningFile) ? readFileSync(runningFile, 'utf8').split(' ') : [];
  if (!/scripts\/dev\.ts$/m.test(commandOf(Number(pid)))) return;
  throw commandError(
    `already running at ${address}, as process ${pid}; use that one, or stop it with Ctrl-C first`,
  );
}

async function createDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rowCount } = await client.query(`select from pg_database where datname = 'intake'`);
  if (rowCount === 0) await client.query('create database intake');
  await client.end();
}

interface DemoKeys {
  readonly key: string;
  /** Has the permissions that must be granted explicitly, so that everything can be tried. */
  readonly privacyKey: string;
}

async function demoKeys(pool: Pool): Promise<DemoKeys> {
  const organisation =
    (await createOrganisation(pool, by, slug, 'Demo')) ?? (await findOrganisation(pool, slug));
  if (!organisation) throw new Error('the demo organisation was neither made nor found');
  await changeOrganisation(pool, by, slug, { recommendations_report: true, lake: true });
  const { organisation_id: organisationId } = organisation;
  const privacy: readonly Permission[] = [...readingPermissions, 'data:erase', 'data:access'];
  return {
    key: await keptKey(pool, 'key', { organisationId, permissions: allPermissions, label: 'demo' }),
    privacyKey: await keptKey(pool, 'privacy-key', {
      organisationId,
      permissions: privacy,
      label: 'privacy',
    }),
  };
}

/** Returns the key in this file next to the data, so it stays the same across restarts. If it is not in use, issues one. */
async function keptKey(
  pool: Pool,
  name: string,
  wanted: { organisationId: string; permissions: readonly Permission[]; label: string },
): Promise<string> {
  const file = join(folder, name);
  const kept = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  if (kept && (await isInUse(pool, kept))) return kept;
  const { key } = await issueKey(pool, by, { ...wanted, expiresAt: null });
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, key, { mode: 0o600 });
  return key;
}

/** Creates a login for the service. As in production, the service runs with minimal privileges. */
async function servingLogin(pool: Pool, ownerUrl: string): Promise<string> {
  const url = new URL(ownerUrl);
  url.username = 'intake_dev';
  const { rowCount } = await pool.query('select from pg_roles where rolname = $1', [url.username]);
  const [verb, membership] = rowCount === 0 ? ['create', 'in role intake_serve'] : ['alter', ''];
  // The password needs no escaping, because it consists of hexadecimal digits. This statement cannot take parameters.
  url.password = randomBytes(16).toString('hex');
  await pool.query(`${verb} role ${url.username} login password '${url.password}' ${membership}`);
  return url.href;
}

async function isInUse(pool: Pool, key: string): Promise<boolean> {
  const keyId = keyIdOf(key);
  const stored = keyId === undefined ? undefined : await findApiKey(pool, keyId);
  return stored !== undefined && !stored.revoked && stored.key_sha256.equals(hashKey(key));
}

function welcome(address: string, { key, privacyKey }: DemoKeys, home: string, config: Config): string {
  const { shop_id, name, region } = resources.shops.example;
  const pages = [
    ...(config.apiReference ? [`\n  Reference   ${address}/docs`] : []),
    ...(config.console ? [`\n  Console     ${address}/console`] : []),
  ];
  return `
Intake is ready.

  Address     ${address}${pages.join('')}
  Key         ${key}   (organisation "${slug}")
  Privacy key ${privacyKey}   (erasures and access requests)
  Lake        ${config.lakeUrl}

Upload a shop:

  curl -sS ${address}/v1/data/shops \\
    -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' \\
    -d '${JSON.stringify({ records: [{ shop_id, name, region }] })}'

Ctrl-C stops it; the data stays in ${home}.
`;
}

try {
  await start();
} catch (error) {
  const isExpected =
    error instanceof ConfigError ||
    (error instanceof Error && 'code' in error && error.code === 'INTAKE_COMMAND');
  console.error(isExpected ? error.message : error);
  process.exit(1);
}
