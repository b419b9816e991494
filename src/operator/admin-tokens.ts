// operator/: what an operator can do to organisations and keys, for the command line and the admin API.

import { hashKey, isToken, makeToken } from '../keys/key-format.ts';
import { isoTime } from '../postgres/iso-time.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';
import { audit, type Operator } from './audit-log.ts';

/** `read-only` permits every GET of the admin API, `full` everything. */
export type TokenRole = 'full' | 'read-only';

/** A token as the operator sees it. */
export interface ListedToken {
  readonly name: string;
  readonly role: TokenRole;
  readonly created_at: string;
  readonly created_by: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
}

/** A token with its details; the only time it is shown. */
export interface IssuedToken extends ListedToken {
  readonly token: string;
}

const columns = `name, role, ${isoTime('created_at')} as created_at, created_by,
  ${isoTime('expires_at')} as expires_at, ${isoTime('revoked_at')} as revoked_at`;

/**
 * The name and role of a token that is in use. Asked for every request, so that a revocation counts from its commit; a text
 * without the form of a token costs no query.
 */
export async function findToken(
  pool: Pool,
  token: string,
): Promise<Pick<ListedToken, 'name' | 'role'> | undefined> {
  if (!isToken(token)) return undefined;
  const { rows } = await pool.query<Pick<ListedToken, 'name' | 'role'>>({
    name: 'find admin token',
    text: `select name, role from admin_tokens
      where token_sha256 = $1 and revoked_at is null and (expires_at > now()) is not false and keys_can_be_trusted()`,
    values: [hashKey(token)],
  });
  return rows[0];
}

/** Undefined if the name is taken, also by a token that is revoked. */
export async function issueToken(
  pool: Pool,
  by: Operator,
  { name, role, expiresAt }: { name: string; role: TokenRole; expiresAt: Date | null },
): Promise<IssuedToken | undefined> {
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

/** A page, ordered by name. */
export async function listTokens(pool: Pool, after: string | null, count: number): Promise<ListedToken[]> {
  const { rows } = await pool.query<ListedToken>(
    `select ${columns} from admin_tokens where $1::text is null or name > $1 order by name limit $2`,
    [after, count],
  );
  return rows;
}

/** False if there is no such token. Revoking it twice changes nothing. */
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
