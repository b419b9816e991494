import { readDatabaseConfig } from '../config.ts';
import { noteNew } from '../operator/after-restore.ts';
import { distributionSteps, isDistributed, lockDistribution } from '../operator/distribute.ts';
import { grantRoles } from '../operator/roles.ts';
import type { Client } from '../postgres/pool.ts';
import { migrate } from '../postgres/schema/migrate.ts';
import { commandError, refuseArguments } from './arguments/help.ts';
import { onCoordinator } from './database/coordinator.ts';
import { explaining } from './database/explain-database.ts';

export async function run(args: string[]): Promise<void> {
  refuseArguments('migrate', args);
  const { databaseUrl, databasePooler } = readDatabaseConfig();
  // The migration's advisory lock belongs to a session. A pooler shares sessions between clients, so the lock would
  // have no effect or would never be released.
  if (databasePooler)
    throw commandError(
      'migrate cannot use a pooler; set DATABASE_URL to PostgreSQL itself, and DATABASE_POOLER=off',
    );
  const target = { setting: 'DATABASE_URL', url: databaseUrl } as const;
  let isReadByAnalysts = false;
  const grant = async (client: Client, isNew: boolean) => {
    if (isNew) await noteNew(client);
    isReadByAnalysts = await hasAnalysts(client);
    return grantRoles(client);
  };
  const { applied, missingRoles } = await explaining(target, () => migrate(databaseUrl, grant));
  for (const name of applied) console.log(`applied ${name}`);
  console.log(applied.length > 0 ? 'The schema is up to date.' : 'The schema was already up to date.');
  if (applied.length > 0 && isReadByAnalysts)
    console.log(
      'Members of intake_read_all read the views in analytics_all, which 0.3.0 removes. Let them read the lake instead: see ' +
        'docs/analytics.md.',
    );
  await distributeNew();
  for (const role of missingRoles) {
    const purpose =
      role === 'intake_read_all'
        ? 'For analysts to read the database'
        : 'To serve with no more rights than needed';
    console.log(
      `The role ${role} does not exist, and this login may not create it. ${purpose}, let a superuser run: ` +
        `create role ${role}; and then run migrate again.`,
    );
  }
}

/** The login that created the role can be a member too, and reads nothing. */
async function hasAnalysts(client: Client): Promise<boolean> {
  const { rows } = await client.query(
    `select from pg_auth_members where roleid = to_regrole('intake_read_all') and member <> quote_ident(current_user)::regrole limit 1`,
  );
  return rows.length > 0;
}

/** Without this, every statement on a table that a migration has added to a distributed database would fail. */
async function distributeNew(): Promise<void> {
  await onCoordinator('migrate', async (coordinator) => {
    if (!(await isDistributed(coordinator))) return;
    await lockDistribution(coordinator);
    for (const step of await distributionSteps(coordinator)) {
      await coordinator.query(step);
      console.log(`ran ${step}`);
    }
  });
}
