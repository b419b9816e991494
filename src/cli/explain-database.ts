import pg from 'pg';
import { isUnavailable } from '../postgres/pool.ts';
import { commandError } from './help.ts';

/** The database of a command, and the role it needs. */
export interface Target {
  /** The setting that has its address. */
  readonly setting: 'DATABASE_URL' | 'ADMIN_DATABASE_URL';
  readonly url: string;
  /** The role that the login must be a member of; undefined for migrate, which runs as the owner. */
  readonly role?: 'intake_serve' | 'intake_admin';
}

/** Runs it; turns a database error that an operator can fix into one sentence that says how. */
export async function explaining<T>(target: Target, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    const explained = explainDatabase(error, target);
    throw explained === undefined ? error : commandError(explained);
  }
}

/** What is wrong and what to do, without the password; undefined if settings and rights are not the cause. */
export function explainDatabase(error: unknown, target: Target): string | undefined {
  // The host has several addresses, and all of them failed.
  if (error instanceof AggregateError) return explainDatabase(error.errors[0], target);
  const { code = '', message = '', syscall, path } = error as NodeJS.ErrnoException;
  // The driver reads sslrootcert before it connects.
  if (syscall === 'open')
    return `${target.setting} names the file ${path}, which cannot be read (${code}); correct its name`;
  const { host, port, user, database } = new pg.Client({ connectionString: target.url });
  const server = `PostgreSQL at ${host}:${port}`;
  const { setting } = target;
  if (/password must be a (non-empty )?string/.test(message))
    return (
      `${setting} has no password, and ${server} asks for one; write it as ` +
      `postgres://${user}:<password>@${host}:${port}/${database}`
    );
  if (/^unsupported startup parameter/.test(message)) return explainPooler(target);
  if (code === '28P01') return `${server} refuses the user or the password; check both in ${setting}`;
  if (code.startsWith('28')) return `${server} refuses the login: ${message}; check the user in ${setting}`;
  if (code === '3D000')
    return `${server} has no database "${database}"; create it, or correct the name at the end of ${setting}`;
  if (/does not support SSL/.test(message))
    return `${server} does not serve TLS, which sslmode in ${setting} asks for; turn ssl on there`;
  if (/SELF_SIGNED|UNABLE_TO_(VERIFY|GET)|CERT_/.test(code))
    return `the certificate of ${server} cannot be verified (${message}); name its authority with sslrootcert in ${setting}`;
  if (code === '42501') return explainRights(message, target);
  if (code === '55P03')
    return `a table is in use by somebody else (${message}); nothing was changed, run it again`;
  if (code === '42P01') return 'the database has no tables yet; run intake-server migrate';
  return explainAway(error, target, server, host);
}

/** PgBouncer reports a startup parameter that it does not support. */
function explainPooler({ setting, role }: Target): string {
  return role === undefined
    ? `${setting} leads to a pooler, through which migrate cannot go; set it to PostgreSQL itself`
    : `${setting} leads to a pooler; set DATABASE_POOLER=on`;
}

function explainRights(message: string, target: Target): string {
  const { setting, role } = target;
  const remedy = role === undefined ? 'run migrate as the owner of the tables' : grantOf(target);
  return `the login in ${setting} may not do this: ${message}; ${remedy}`;
}

function explainAway(error: unknown, { setting }: Target, server: string, host: string): string | undefined {
  if (!isUnavailable(error)) return undefined;
  const { code, message } = error as { code?: string; message: string };
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `the host ${host} has no address (${code}); check the host in ${setting}`;
  // PgBouncer's code for an unknown login or database.
  if (code === '08P01') return `${server} refuses the connection: ${message}; check ${setting}`;
  // A message of Citus. To move a shard, the coordinator logs in on every node, including itself.
  if (message.startsWith('connection to the remote node'))
    return (
      `${server} cannot log in on a node of its cluster: ${message.split('\n')[0]}; check that the node is up and lets the ` +
      `user in ${setting} in (pg_hba.conf, .pgpass or pg_dist_authinfo)`
    );
  if (error instanceof pg.DatabaseError) return `${server} cannot be used now: ${message}; try again later`;
  return `${server} cannot be reached (${code ?? message}); check that it is running, and host and port in ${setting}`;
}

/** The statement that makes the login a member of its role. */
export function grantOf({ url, role }: Target): string {
  const { user = '' } = new pg.Client({ connectionString: url });
  const login = /^[a-z_][a-z0-9_]*$/.test(user) ? user : pg.escapeIdentifier(user);
  return `let a superuser run: grant ${role} to ${login}`;
}
