import { hash, randomBytes } from 'node:crypto';
import type { Client, Pool } from '../postgres/pool.ts';
import { inTransaction } from '../postgres/transactions.ts';

export interface ConsoleSession {
  readonly keyId: string;
  readonly keyLabel: string | null;
  readonly keyExpiresAt: Date | null;
  readonly organisation: { readonly slug: string; readonly name: string };
  readonly expiresAt: Date;
}

/** A session's token is in a cookie, and a link's token in the URL fragment. The database stores only their hashes. */
export function makeConsoleToken(): string {
  return randomBytes(32).toString('base64url');
}

export function hashConsoleToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** A token has 256 bits. Text of any other form does not have to be looked up. */
export const isConsoleToken = (text: string) => /^[\w-]{43}$/.test(text);

/** Sessions are never cached, so signing out takes effect at once. Their keys are, so revoking one takes seconds. */
export class ConsoleSessions {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Returns undefined if the key is no longer valid. */
  async begin(keyId: string, database: Client | Pool = this.#pool): Promise<string | undefined> {
    const token = makeConsoleToken();
    const { rows } = await database.query<{ ends: Date | null }>({
      name: 'begin console session',
      text: 'select begin_console_session($1, $2) as ends',
      values: [hashConsoleToken(token), keyId],
    });
    return rows[0]?.ends ? token : undefined;
  }

  async find(token: string, database: Client | Pool = this.#pool): Promise<ConsoleSession | undefined> {
    if (!isConsoleToken(token)) return undefined;
    const { rows } = await database.query<{
      key_id: string;
      label: string | null;
      key_expires_at: Date | null;
      slug: string;
      name: string;
      expires_at: Date;
    }>({
      name: 'find console session',
      text: 'select * from find_console_session($1)',
      values: [hashConsoleToken(token)],
    });
    const [found] = rows;
    return (
      found && {
        keyId: found.key_id,
        keyLabel: found.label,
        keyExpiresAt: found.key_expires_at,
        organisation: { slug: found.slug, name: found.name },
        expiresAt: found.expires_at,
      }
    );
  }

  async end(token: string): Promise<void> {
    if (!isConsoleToken(token)) return;
    await this.#pool.query({
      name: 'end console session',
      text: 'select end_console_session($1)',
      values: [hashConsoleToken(token)],
    });
  }

  /** Returns undefined if the link is invalid, expired or already used. If `check` throws, the link can still be used. */
  async beginByLink(link: string, check: (begun: ConsoleSession) => void): Promise<string | undefined> {
    if (!isConsoleToken(link)) return undefined;
    return inTransaction(this.#pool, async (client) => {
      const { rows } = await client.query<{ key_id: string | null }>({
        name: 'use console link',
        text: 'select use_console_link($1) as key_id',
        values: [hashConsoleToken(link)],
      });
      const keyId = rows[0]?.key_id ?? undefined;
      const token = keyId === undefined ? undefined : await this.begin(keyId, client);
      const begun = token === undefined ? undefined : await this.find(token, client);
      if (begun) check(begun);
      return token;
    });
  }
}
