import { mayAdminister, mayServe, roleSettings, surplusRights } from '../../operator/roles.ts';
import { explainUnsafe, readServerState } from '../../postgres/health/server-state.ts';
import { nameOfWorker, readWorkers } from '../../postgres/health/workers.ts';
import { isRefusedLogin, isUnavailable, type Pool } from '../../postgres/pool.ts';
import { schemaState } from '../../postgres/schema/schema-state.ts';
import { commandError } from '../arguments/help.ts';
import { otherLogin, type Target } from './explain-database.ts';

/** An unavailable database is returned as an error and not thrown, because the process can wait for it. */
export async function checkDatabase(
  pool: Pool,
  target: Target,
  isPooled: boolean,
): Promise<{ readonly warnings: readonly string[]; readonly away?: unknown }> {
  try {
    const ofSchema = await refuseOtherSchema(pool);
    await refuseOtherRole(target, () => mayServe(pool));
    const warnings = [...ofSchema, ...(await refuseUnsafe(pool)), ...(await warnOfRights(pool))];
    return { warnings: isPooled ? [...warnings, ...(await checkRoleSettings(pool))] : warnings };
  } catch (error) {
    if (mayComeBack(error)) return { warnings: [], away: error };
    throw error;
  }
}

export async function checkAdminDatabase(pool: Pool, target: Target): Promise<void> {
  try {
    await refuseOtherRole(target, () => mayAdminister(pool));
    await refuseUnsafeLogin(pool, target);
  } catch (error) {
    if (!mayComeBack(error)) throw error;
  }
}

/** Otherwise a crash could undo an operator's action that was confirmed, such as a revocation. */
export async function refuseUnsafeLogin(pool: Pool, { setting }: Target): Promise<void> {
  const { refused } = await readServerState(pool);
  if (refused.length > 0)
    throw commandError(explainUnsafe(refused, `PostgreSQL, with the login in ${setting},`));
}

/** Only the operator can fix a refused login, a wrong database name or a pooler's configuration. */
function mayComeBack(error: unknown): boolean {
  const isPooler = /^unsupported startup parameter/.test((error as Error).message);
  return isUnavailable(error) && !isRefusedLogin(error) && !isPooler;
}

async function refuseOtherRole(target: Target, may: () => Promise<boolean>): Promise<void> {
  if (!(await may()))
    throw commandError(
      `the login in ${target.setting} is not a member of ${target.role}; ${otherLogin(target)}`,
    );
}

/** A newer schema that supports this version is accepted: a process that crashes during an upgrade must restart. */
async function refuseOtherSchema(pool: Pool): Promise<string[]> {
  const state = await schemaState(pool);
  if (state === 'behind')
    throw commandError('the database schema is behind this program; run intake-server migrate');
  if (state === 'ahead')
    throw commandError(
      'the database schema is ahead of this program and no longer works with it; run a newer intake-server',
    );
  if (state === 'current') return [];
  return [
    'the database has the schema of a newer version, which this one works with; finish the upgrade by restarting ' +
      'every process with the newer version',
  ];
}

/** Refuses settings with which a crash undoes what was confirmed. Warns about those that the operator has accepted. */
async function refuseUnsafe(pool: Pool): Promise<string[]> {
  const workers = (await readWorkers(pool)).map(({ node, ...state }) => ({
    ...state,
    name: nameOfWorker(node),
  }));
  const servers = [{ ...(await readServerState(pool)), name: 'PostgreSQL' }, ...workers];
  for (const { name, refused } of servers)
    if (refused.length > 0) throw commandError(explainUnsafe(refused, name));
  return servers
    .filter(({ accepted }) => accepted.length > 0)
    .map(
      ({ name, accepted }) =>
        `intake.accepted_settings accepts ${accepted.join(' and ')} in ${name}: a crash may lose data`,
    );
}

/** Surplus privileges increase the damage if the service has a vulnerability. */
async function warnOfRights(pool: Pool): Promise<string[]> {
  const rights = await surplusRights(pool);
  if (rights.length === 0) return [];
  return [
    `the role in DATABASE_URL has more rights than serving needs: it ${rights.join(', ')}; serve as a member of the ` +
      'role intake_serve instead',
  ];
}

/** Behind a pooler, these settings come from the role. */
async function checkRoleSettings(pool: Pool): Promise<string[]> {
  const { roundsDoubles, missingTimeouts } = await roleSettings(pool);
  if (roundsDoubles)
    throw commandError(
      'the role in DATABASE_URL has extra_float_digits below 1, so numbers would be read rounded; set it to 1 with ' +
        'alter role, then let the pooler reconnect',
    );
  if (missingTimeouts.length === 0) return [];
  return [
    `the role in DATABASE_URL has no ${missingTimeouts.join(' and no ')}: a statement that hangs is not ended, and ` +
      'keeps its locks; set a timeout with alter role',
  ];
}
