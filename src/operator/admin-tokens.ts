// operator/: the operator's actions on organisations and keys, for the command line and the admin API.

import { RequestError } from '../errors.ts';
import { hashConsoleToken, isConsoleToken, makeConsoleToken } from '../keys/console-sessions.ts';
import { hashKey, isToken, makeToken } from '../keys/key-format.ts';
import { limits } from '../limits.ts';
import { isoTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { audit, type Operator } from './audit-log.ts';

/** `read-only` allows every GET request to the admin API, and `full` allows all requests. */
type TokenRole = 'full' | 'read-only';

export interface ListedToken {
  readonly name: string;
  readonly role: TokenRole;
  readonly created_at: string;
  readonly created_by: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
}

export type ActiveToken = Pick<ListedToken, 'name' | 'role'>;

const columns = `name, role, ${isoTime('created_at')} as created_at, created_by,
  ${isoTime('expires_at')} as expires_at, ${isoTime('revoked_at')} as revoked_at`;

/** Throws as long as a restored database may contain tokens that had been revoked. */
const isUsable = `t.revoked_at is null and (t.expires_at > now()) is not false and keys_can_be_trusted()`;

/** Every request runs this query, so that a revocation takes effect as soon as it is committed. */
export async function findToken(pool: Pool, token: string): Promise<ActiveToken | undefined> {
  if (!isToken(token)) return undefined;
  const { rows } = await pool.query<ActiveToken>({
    name: 'find admin token',
    text: `select name, role from admin_tokens t where token_sha256 = $1 and ${isUsable}`,
    values: [hashKey(token)],
  });
  return rows[0];
}

/** Returns undefined if the name is taken, even by a revoked token. */
export async function issueToken(
  pool: Pool,
  by: Operator,
  { name, role, expiresAt }: { name: string; role: TokenRole; expiresAt: Date | null },
): Promise<(ListedToken & { readonly token: string }) | undefined> {
  return inTransaction(pool, async (client) => {
    const token = makeToken();
    const { rows } = await client.query<ListedToken>(
      `insert into admin_tokens (name, token_sha256, role, created_by, expires_at) values ($1, $2, $3, $4, $5)
       on conflict (name) do nothing returning ${columns}`,
      [name, hashKey(token), role, by.actor, expiresAt],
    );
    const [issued] = rows;
    if (!issued) return undefined;
    await audit(client, by, 'token.issue', { name, role, expires_at: issued.expires_at });
    return { ...issued, token };
  });
}

export async function listTokens(pool: Pool, after: string | null, count: number): Promise<ListedToken[]> {
  const { rows } = await pool.query<ListedToken>(
    `select ${columns} from admin_tokens where $1::text is null or name > $1 order by name limit $2`,
    [after, count],
  );
  return rows;
}

/** Returns false if there is no such token. Revoking a token twice changes nothing. */
export async function revokeToken(pool: Pool, by: Operator, name: string): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    const { rowCount } = await client.query(
      'update admin_tokens set revoked_at = now() where name = $1 and revoked_at is null',
      [name],
    );
    if (rowCount === 1) await audit(client, by, 'token.revoke', { name });
    return rowCount === 1 || (await isTokenThere(client, name));
  });
}

export async function isTokenThere(client: Client | Pool, name: string): Promise<boolean> {
  const { rows } = await client.query('select from admin_tokens where name = $1', [name]);
  return rows.length > 0;
}

/** Removes expired sessions, and keeps at most a hundred sessions per admin token. */
export async function beginOperatorSession(pool: Pool, adminToken: string): Promise<string> {
  const session = makeConsoleToken();
  await pool.query({
    name: 'begin operator session',
    text: `with removed as (
        delete from operator_sessions where expires_at <= now() or token_sha256 in (
          select token_sha256 from operator_sessions where admin_token = $2 order by expires_at desc offset $4)
      )
      insert into operator_sessions (token_sha256, admin_token, expires_at)
      select $1::bytea, name, least(expires_at, now() + make_interval(secs => $3)) from admin_tokens where name = $2`,
    values: [
      hashConsoleToken(session),
      adminToken,
      limits.consoleSessionSeconds,
      limits.operatorSessionsMax - 1,
    ],
  });
  return session;
}

/** Like `findToken`, queries for every request, so that signing out and revoking take effect immediately. */
export async function authenticateOperator(pool: Pool, session: string | undefined) {
  if (session === undefined || !isConsoleToken(session)) throw new RequestError('not_signed_in');
  const { rows } = await pool.query<ListedToken & { session_expires_at: string }>({
    name: 'find operator session',
    text: `select name, role, ${isoTime('t.expires_at')} as expires_at, ${isoTime('s.expires_at')} as session_expires_at
      from operator_sessions s join admin_tokens t on t.name = s.admin_token
      where s.token_sha256 = $1 and s.expires_at > now() and ${isUsable}`,
    values: [hashConsoleToken(session)],
  });
  const [found] = rows;
  if (!found) throw new RequestError('not_signed_in');
  const { name, role, expires_at, session_expires_at } = found;
  return { token: { name, role, expires_at }, expires_at: session_expires_at };
}

export async function endOperatorSession(pool: Pool, session: string | undefined): Promise<void> {
  if (session === undefined || !isConsoleToken(session)) return;
  await pool.query({
    name: 'end operator session',
    text: 'delete from operator_sessions where token_sha256 = $1',
    values: [hashConsoleToken(session)],
  });
}
