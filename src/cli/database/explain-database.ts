import pg from 'pg';
import { isUnavailable } from '../../postgres/pool.ts';
import { commandError } from '../arguments/help.ts';

export interface Target {
  readonly setting: 'DATABASE_URL' | 'ADMIN_DATABASE_URL';
  readonly url: string;
  /** The role that the login must be a member of. Undefined for a command that runs as the owner. */
  readonly role?: keyof typeof loginOf;
  /** The name of a command that runs as the owner, by default `migrate`. */
  readonly command?: string;
}

/** For each role, the login in docs/operating/setup.md that is a member of the role. */
const loginOf = { intake_serve: 'intake_app', intake_admin: 'intake_ops' } as const;

/** Replaces a database error that an operator can fix with one sentence that explains the remedy. */
export async function explaining<T>(target: Target, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const explained = explainDatabase(error, target);
    throw explained === undefined ? error : commandError(explained);
  }
}

/** Never contains the password. Undefined if settings and privileges are not the cause. */
export function explainDatabase(error: unknown, target: Target): string | undefined {
  // The host has several addresses, and connecting to each of them failed.
  if (error instanceof AggregateError) return explainDatabase(error.errors[0], target);
  const { code = '', message = '', syscall, path } = error as NodeJS.ErrnoException;
  // The driver reads sslrootcert before it connects.
  if (syscall === 'open')
    return `${target.setting} refers to the file ${path}, which cannot be read (${code}); correct its name`;
  const { host, port, user, database } = new pg.Client({ connectionString: target.url });
  const server = `PostgreSQL at ${host}:${port}`;
  const { setting } = target;
  if (/password must be a (non-empty )?string/.test(message))
    return (
      `${setting} has no password, and ${server} requires one; write it as ` +
      `postgres://${user}:<password>@${host}:${port}/${database}`
    );
  if (/^unsupported startup parameter/.test(message))
    return target.role === undefined
      ? `${setting} points at a pooler, which migrate cannot use; set it to PostgreSQL itself`
      : `${setting} points at a pooler; set DATABASE_POOLER=on`;
  if (code === '28P01') return `${server} refuses the user or the password; check both in ${setting}`;
  if (/pg_hba\.conf/.test(message))
    return (
      `${server} does not accept this user from this machine: ${message}; check user, host and sslmode in ${setting}, ` +
      'and pg_hba.conf of PostgreSQL'
    );
  if (code.startsWith('28')) return `${server} refuses the login: ${message}; check the user in ${setting}`;
  if (code === '3D000')
    return `${server} has no database "${database}"; create it, or correct the name at the end of ${setting}`;
  if (/does not support SSL/.test(message))
    return `${server} does not serve TLS, which sslmode in ${setting} requires; turn ssl on there`;
  if (/SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|CERT_/.test(code))
    return `the certificate of ${server} cannot be verified (${message}); specify its certificate authority with sslrootcert in ${setting}`;
  if (code === '42501') return explainRights(message, target);
  if (code === '55P03')
    return `a table is locked by another session (${message}); nothing was changed, run it again`;
  if (code === '42P01') return 'the database has no tables yet; run intake-server migrate';
  return explainUnavailable(error, target, server, host);
}

function explainRights(message: string, target: Target): string {
  const { setting, role, command = 'migrate' } = target;
  const remedy =
    role === undefined
      ? `run ${command} as the owner of the tables, with the address of that login in ${setting}`
      : otherLogin(target);
  return `the login in ${setting} may not do this: ${message}; ${remedy}`;
}

function explainUnavailable(
  error: unknown,
  { setting }: Target,
  server: string,
  host: string,
): string | undefined {
  if (!isUnavailable(error)) return undefined;
  const { code, message } = error as { code?: string; message: string };
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `the host ${host} has no address (${code}); check the host in ${setting}`;
  // PgBouncer uses this code for an unknown login or database.
  if (code === '08P01') return `${server} refuses the connection: ${message}; check ${setting}`;
  // This is a Citus error message. To move a shard, the coordinator logs in to every node, including itself.
  if (message.startsWith('connection to the remote node')) return explainNode(message, server, setting);
  if (error instanceof pg.DatabaseError) return `${server} cannot be used now: ${message}; try again later`;
  return `${server} cannot be reached (${code ?? message}); check that it is running, and host and port in ${setting}`;
}

function explainNode(message: string, server: string, setting: string): string {
  if (workerAway.test(message))
    return `${server} cannot reach a node of its cluster: ${message.replace(/\s+/g, ' ')}; check that the node is up`;
  return (
    `${server} cannot log in on a node of its cluster: ${message.split('\n')[0]}; check that the node accepts the ` +
    `user in ${setting} (pg_hba.conf, .pgpass or pg_dist_authinfo)`
  );
}

const workerAway = /connection refused|timeout|timed out|could not translate|no route to host|unreachable/i;

/** Most likely the wrong login was used. A grant could give privileges to a login that should not have them. */
export function otherLogin({ url, setting, role = 'intake_admin' }: Target): string {
  const { user = '' } = new pg.Client({ connectionString: url });
  return (
    `"${user}" is probably not the login you meant: set ${setting} to one that is a member of ${role}, such as ${loginOf[role]}. ` +
    'See docs/operating/setup.md, "Missing roles, memberships and rights"'
  );
}
