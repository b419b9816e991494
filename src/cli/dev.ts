import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import pg from 'pg';
import { type Config, readConfig } from '../config.ts';
import { findApiKey } from '../keys/api-keys.ts';
import { hashKey, keyIdOf } from '../keys/key-format.ts';
import { allPermissions } from '../keys/permissions.ts';
import { limits } from '../limits.ts';
import { changeOrganisation, createOrganisation, issueKey } from '../operator/audited-actions.ts';
import { findOrganisation } from '../operator/organisations.ts';
import { grantRoles } from '../operator/roles.ts';
import { createPool, type Pool } from '../postgres/pool.ts';
import { migrate } from '../postgres/schema/migrate.ts';
import { UnreleasedSchema } from '../postgres/schema/migration-checksums.ts';
import { resources } from '../registry/resources.ts';
import { commandError, refuseArguments } from './arguments/help.ts';
import { commandOf, embeddedBinaries, startLocalPostgres } from './database/local-postgres.ts';
import { startService } from './serve.ts';

/** In the current folder: the folder of an installed package is replaced by the next install. */
const folder = resolve('.intake');
const runningFile = join(folder, 'running');
const slug = 'demo';

/** Everything in one command, for trying the service out and for working on it. */
export async function run(args: string[]): Promise<void> {
  refuseArguments('dev', args);
  refuseTwin();
  console.log('Starting PostgreSQL ...');
  const postgres = await startLocalPostgres(folder, embeddedBinaries());
  let service: Awaited<ReturnType<typeof startService>> | undefined;
  let isStopping = false;
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    await service?.stop();
    await postgres.stop();
    rmSync(runningFile, { force: true });
    // Exports to a collector that is away would keep the process alive.
    setTimeout(() => process.exit(), limits.stopIntervalMs).unref();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stop());
  try {
    await createDatabase(postgres.url('postgres'));
    await migrateFolder(postgres.url('intake'));
    const owner = readConfig({ DATABASE_URL: postgres.url('intake') }, fallbacks);
    const pool = createPool(owner, () => {});
    const key = await demoKey(pool);
    const databaseUrl = await servingLogin(pool, postgres.url('intake'));
    await pool.end();
    service = await startService({ ...owner, databaseUrl });
    writeFileSync(runningFile, `${process.pid} ${service.address}`);
    console.log(welcome(service.address, key, postgres.home, owner));
  } catch (error) {
    await stop();
    throw error;
  }
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

/** Two of them would stop each other's PostgreSQL. */
function refuseTwin(): void {
  const [pid = '', address] = existsSync(runningFile) ? readFileSync(runningFile, 'utf8').split(' ') : [];
  if (!/(main\.[jt]s|intake-server) dev$/m.test(commandOf(Number(pid)))) return;
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

/** The key is kept beside the data, so it stays the same across restarts. */
async function demoKey(pool: Pool): Promise<string> {
  const file = join(folder, 'key');
  const by = { actor: 'dev' };
  const organisation =
    (await createOrganisation(pool, by, slug, 'Demo')) ?? (await findOrganisation(pool, slug));
  if (!organisation) throw new Error('the demo organisation was neither made nor found');
  await changeOrganisation(pool, by, slug, { recommendations_report: true });
  const kept = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  if (kept && (await isInUse(pool, kept))) return kept;
  const { organisation_id: organisationId } = organisation;
  const wanted = { organisationId, permissions: allPermissions, label: 'demo', expiresAt: null };
  const { key } = await issueKey(pool, by, wanted);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, key, { mode: 0o600 });
  return key;
}

/** The service runs with minimal rights here too. */
async function servingLogin(pool: Pool, ownerUrl: string): Promise<string> {
  const url = new URL(ownerUrl);
  url.username = 'intake_dev';
  const { rowCount } = await pool.query('select from pg_roles where rolname = $1', [url.username]);
  const [verb, membership] = rowCount === 0 ? ['create', 'in role intake_serve'] : ['alter', ''];
  // Hexadecimal digits, because this statement takes no parameters.
  url.password = randomBytes(16).toString('hex');
  await pool.query(`${verb} role ${url.username} login password '${url.password}' ${membership}`);
  return url.href;
}

async function isInUse(pool: Pool, key: string): Promise<boolean> {
  const keyId = keyIdOf(key);
  const stored = keyId === undefined ? undefined : await findApiKey(pool, keyId);
  return stored !== undefined && !stored.revoked && stored.key_sha256.equals(hashKey(key));
}

/** The data is made up, so the key of the hashes need not be secret. */
const fallbacks = { LOG_LEVEL: 'warn', ERASURE_KEYS: 'only for trying things out on this machine' };

function welcome(address: string, key: string, home: string, config: Config): string {
  const { shop_id, name, region } = resources.shops.example;
  const pages = [
    ...(config.apiReference ? [`\n  Reference   ${address}/docs`] : []),
    ...(config.console ? [`\n  Console     ${address}/console`] : []),
  ];
  return `
Intake is ready.

  Address     ${address}${pages.join('')}
  Key         ${key}   (organisation "${slug}")

Upload a shop:

  curl -sS ${address}/v1/data/shops \\
    -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' \\
    -d '${JSON.stringify({ records: [{ shop_id, name, region }] })}'

Ctrl-C stops it; the data stays in ${home}.
`;
}
