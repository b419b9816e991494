import { mayAdminister, mayServe, roleSettings, surplusRights } from '../operator/roles.ts';
import { isRefusedLogin, isUnavailable, type Pool } from '../postgres/pool.ts';
import { schemaState } from '../postgres/schema-state.ts';
import { grantOf, type Target } from './explain-database.ts';
import { commandError } from './help.ts';

/**
 * Refuses to start on a database that serving would only fail on, request by request. Returns what should be better, or
 * the error of a database that is away: it may come back, so it is waited for.
 */
export async function checkDatabase(
  pool: Pool,
  target: Target,
  isPooled: boolean,
): Promise<{ readonly warnings: readonly string[]; readonly away?: unknown }> {
  try {
    const ofSchema = await refuseOtherSchema(pool);
    await refuseOtherRole(target, () => mayServe(pool));
    const warnings = [...ofSchema, ...(await warnOfRights(pool))];
    return { warnings: isPooled ? [...warnings, ...(await checkRoleSettings(pool))] : warnings };
  } catch (error) {
    if (mayComeBack(error)) return { warnings: [], away: error };
    throw error;
  }
}

export async function checkAdminDatabase(pool: Pool, target: Target): Promise<void> {
  await refuseOtherRole(target, () => mayAdminister(pool)).catch((error: unknown) => {
    if (!mayComeBack(error)) throw error;
  });
}

/** Not what will not change by itself: the login, the name of the database, a pooler in between. */
function mayComeBack(error: unknown): boolean {
  const isPooler = /^unsupported startup parameter/.test((error as Error).message);
  return isUnavailable(error) && !isRefusedLogin(error) && !isPooler;
}

async function refuseOtherRole(target: Target, may: () => Promise<boolean>): Promise<void> {
  if (!(await may()))
    throw commandError(`the login in ${target.setting} is no member of ${target.role}; ${grantOf(target)}`);
}

/** Starts on the schema of a newer version too, while that says it can: a crash in mid-upgrade must not stay down. */
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

/** Serving needs little; what it is given beyond that is what a flaw in it would give away. */
async function warnOfRights(pool: Pool): Promise<string[]> {
  const rights = await surplusRights(pool);
  if (rights.length === 0) return [];
  return [
    `the role in DATABASE_URL has more rights than serving needs: it ${rights.join(', ')}; serve as a member of the ` +
      'role intake_serve instead',
  ];
}

/** A pooler leaves these settings to the role. */
async function checkRoleSettings(pool: Pool): Promise<string[]> {
  const { roundsDoubles, missingTimeouts } = await roleSettings(pool);
  if (roundsDoubles)
    throw commandError(
      'the role in DATABASE_URL has extra_float_digits below 1, so numbers would be read rounded; set it to 1 with ' +
        'alter role, then let the pooler connect anew',
    );
  if (missingTimeouts.length === 0) return [];
  return [
    `the role in DATABASE_URL has no ${missingTimeouts.join(' and no ')}: a statement that hangs is not ended, and ` +
      'keeps its locks; set a timeout with alter role',
  ];
}
