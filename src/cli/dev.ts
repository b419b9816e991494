import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { readConfig } from '../config.ts';
import { authenticate } from '../keys/authenticate.ts';
import { issueKey } from '../keys/issue-key.ts';
import { KnownKeys } from '../keys/known-keys.ts';
import { allPermissions } from '../keys/permissions.ts';
import { resources } from '../registry/resources.ts';
import { migrate } from '../store/migrate.ts';
import { createOrganisation, findOrganisation } from '../store/organisations.ts';
import { createPool, type Pool } from '../store/pool.ts';
import { commandError } from './help.ts';
import { commandOf, embeddedBinaries, startLocalPostgres } from './local-postgres.ts';
import { startService } from './serve.ts';

const folder = fileURLToPath(new URL('../../.intake', import.meta.url));
const runningFile = join(folder, 'running');
const slug = 'demo';

/** Everything in one command, for trying the service out and for working on it. */
export async function run(): Promise<void> {
  refuseTwin();
  console.log('Starting PostgreSQL ...');
  const postgres = await startLocalPostgres(folder, embeddedBinaries());
  let service: Awaited<ReturnType<typeof startService>> | undefined;
  const stop = async () => {
    await service?.stop();
    await postgres.stop();
    rmSync(runningFile, { force: true });
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => void stop());
  try {
    await createDatabase(postgres.url('postgres'));
    await migrate(postgres.url('intake'));
    const config = readConfig({ DATABASE_URL: postgres.url('intake') }, { LOG_LEVEL: 'warn' });
    const pool = createPool(config, () => {});
    const key = await demoKey(pool);
    await pool.end();
    service = await startService(config);
    writeFileSync(runningFile, `${process.pid} ${service.address}`);
    console.log(welcome(service.address, key, postgres.home));
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Two of them would take each other's PostgreSQL away. */
function refuseTwin(): void {
  const [pid = '', address] = existsSync(runningFile) ? readFileSync(runningFile, 'utf8').split(' ') : [];
  if (!commandOf(Number(pid)).includes('main.ts dev')) return;
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

/** The key is kept beside the data, so that it stays the same from one start to the next. */
async function demoKey(pool: Pool): Promise<string> {
  const file = join(folder, 'key');
  const organisation = (await createOrganisation(pool, slug, 'Demo')) ?? (await findOrganisation(pool, slug));
  if (!organisation) throw new Error('the demo organisation was neither made nor found');
  const kept = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  if (kept && (await authenticate(new KnownKeys(pool), `Bearer ${kept}`).catch(() => undefined))) return kept;
  const { key } = await issueKey(pool, organisation.organisation_id, allPermissions);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, key, { mode: 0o600 });
  return key;
}

function welcome(address: string, key: string, home: string): string {
  const { shop_id, name, region } = resources.shops.example;
  return `
Intake is ready.

  Address     ${address}
  Reference   ${address}/docs
  Key         ${key}   (organisation "${slug}")

Upload a shop:

  curl -sS ${address}/v1/data/shops \\
    -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' \\
    -d '${JSON.stringify({ records: [{ shop_id, name, region }] })}'

Ctrl-C stops it; the data stays in ${home}.
`;
}
