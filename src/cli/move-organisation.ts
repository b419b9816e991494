import { parseArgs } from 'node:util';
import { type MoveConfig, readMoveConfig } from '../config.ts';
import { RequestError } from '../errors.ts';
import { exportOrganisation, type MovePools, type Report } from '../moving/export-organisation.ts';
import { importOrganisation } from '../moving/import-organisation.ts';
import { moveLimits } from '../moving/limits.ts';
import { type Manifest, MoveRefused } from '../moving/manifest.ts';
import { slugProblem } from '../operator/rules.ts';
import { createPool } from '../postgres/pool.ts';
import { CommitUnconfirmed } from '../postgres/transactions.ts';
import { commandError } from './arguments/help.ts';
import { operator } from './arguments/operator.ts';
import { checkAdminDatabase, checkDatabase } from './database/check-database.ts';
import { explainDatabase, explaining, type Target } from './database/explain-database.ts';
import { refuseWrongClock } from './database/with-pool.ts';

export async function runExport(args: string[]): Promise<void> {
  const { slug, folder } = readArguments(args, 'export', 'to');
  const config = readMoveConfig();
  const manifest = await withPools(config, (pools) =>
    exportOrganisation(pools, operator(), { slug, folder }, reporting('exported')),
  );
  console.log(`Exported ${slug} to ${folder}: ${sizeOf(manifest)} in ${manifest.files.length} files.`);
  console.log(
    'It contains personal data, and erasures do not affect it: delete it when it is no longer needed. Later changes are in the ' +
      `change feed of ${slug} after the cursor ${manifest.changes_cursor}`,
  );
}

export async function runImport(args: string[]): Promise<void> {
  const { slug, folder } = readArguments(args, 'import', 'from');
  if (slugProblem(slug) !== undefined) throw commandError(`the slug ${slugProblem(slug)}`);
  const config = readMoveConfig();
  const { manifest, wasDone, failed } = await withPools(config, (pools) =>
    importOrganisation(
      pools,
      operator(),
      { slug, folder, erasureKeys: config.erasureKeys },
      { onRows: reporting('imported'), onFile: (file) => console.error(`verifying ${file}`) },
    ),
  );
  if (wasDone) return console.log(`${folder} was already imported into ${slug}; nothing was done.`);
  console.log(`Imported ${sizeOf(manifest)} into ${slug}.`);
  if (failed > 0)
    throw commandError(
      `${failed} of them failed. They are kept as rejections of ${slug} if possible; its receipts have the reasons`,
    );
  console.log(`Next: intake-server keys issue --organisation ${slug}`);
}

function readArguments(
  args: string[],
  action: 'export' | 'import',
  flag: 'to' | 'from',
): { slug: string; folder: string } {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { [flag]: { type: 'string' } },
  });
  const [slug, ...rest] = positionals;
  const folder = values[flag];
  if (slug === undefined || rest.length > 0 || typeof folder !== 'string' || folder === '')
    throw commandError(`specify one slug and a folder: organisations ${action} acme --${flag} acme-export`);
  return { slug, folder };
}

/** Uses two logins, like a service with an admin API, so that neither login needs additional privileges. */
async function withPools<T>(config: MoveConfig, work: (pools: MovePools) => Promise<T>): Promise<T> {
  const connectTimeoutMs = config.databaseTimeoutMs;
  const serving = createPool(config, () => {}, { plansOnce: true, connectTimeoutMs });
  const { adminDatabaseUrl: adminUrl } = config;
  const admin = createPool({ ...config, databaseUrl: adminUrl }, () => {}, { connectTimeoutMs });
  const target = { setting: 'DATABASE_URL', url: config.databaseUrl, role: 'intake_serve' } as const;
  const adminTarget = { setting: 'ADMIN_DATABASE_URL', url: adminUrl, role: 'intake_admin' } as const;
  try {
    await explaining(target, async () => {
      const { away } = await checkDatabase(serving, target, config.databasePooler);
      if (away !== undefined) throw away;
    });
    await explaining(adminTarget, async () => {
      await checkAdminDatabase(admin, adminTarget);
      // The check accepts an unavailable database, because `serve` waits for it.
      await admin.query('select');
    });
    try {
      await refuseWrongClock(serving);
      return await work({ serving, admin });
    } catch (error) {
      throw explainMove(error, target);
    }
  } finally {
    await Promise.all([serving.end(), admin.end()]);
  }
}

function explainMove(error: unknown, target: Target): unknown {
  if (error instanceof MoveRefused || error instanceof RequestError) return commandError(error.message);
  const cause = error instanceof CommitUnconfirmed ? error.cause : error;
  const { code, syscall } = cause as NodeJS.ErrnoException;
  // The disk is full, or the folder is not writable.
  if (/^(open|write|fsync|mkdir|rename)$/.test(syscall ?? '') && !/^ECONN/.test(code ?? ''))
    return commandError(
      `${(cause as Error).message}; when that is fixed, run the command again: it continues`,
    );
  const explained = explainDatabase(cause, target);
  return explained === undefined ? error : commandError(`${explained}. Then run it again: it continues`);
}

function sizeOf({ counts }: Manifest): string {
  const { interactions = 0, ...records } = counts;
  const sum = Object.values(records).reduce((total, count) => total + count, 0);
  return `${sum.toLocaleString('en')} records and ${interactions.toLocaleString('en')} interactions`;
}

function reporting(done: string): Report {
  let [lastMs, lastType, lastRows] = [performance.now(), '', 0];
  return (type, rows) => {
    const nowMs = performance.now();
    if (type !== lastType) [lastType, lastRows] = [type, 0];
    if (nowMs - lastMs < moveLimits.progressMs) return;
    const perSecond = Math.round(((rows - lastRows) * 1_000) / (nowMs - lastMs));
    console.error(
      `${type}: ${rows.toLocaleString('en')} rows ${done}, ${perSecond.toLocaleString('en')} a second`,
    );
    [lastMs, lastRows] = [nowMs, rows];
  };
}
