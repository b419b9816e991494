import { hash, randomBytes } from 'node:crypto';
import type { Pool } from '../postgres/pool.ts';

export interface ConsoleSession {
  readonly keyId: string;
  readonly keyLabel: string | null;
  readonly keyExpiresAt: Date | null;
  readonly organisation: { readonly slug: string; readonly name: string };
  readonly expiresAt: Date;
}

/** A session's token is in a cookie, a link's in its fragment; the database has only hashes of them. */
export function makeConsoleToken(): string {
  return randomBytes(32).toString('base64url');
}

export function hashConsoleToken(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}

/** A token has 256 bits; anything else need not be looked up. */
export const isConsoleToken = (text: string) => /^[\w-]{43}$/.test(text);

/**
 * Sessions are looked up for each request and never cached, so signing out takes effect in every process at once. The key of a session is
 * cached like any other, so a revoked one ends its sessions within seconds.
 */
export class ConsoleSessions {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Returns the token; undefined if the key has ended. */
  async begin(keyId: string): Promise<string | undefined> {
    const token = makeConsoleToken();
    const { rows } = await this.#pool.query<{ ends: Date | null }>({
      name: 'begin console session',
      text: 'select begin_console_session($1, $2) as ends',
      values: [hashConsoleToken(token), keyId],
    });
    return rows[0]?.ends ? token : undefined;
  }

  async find(token: string): Promise<ConsoleSession | undefined> {
    if (!isConsoleToken(token)) return undefined;
    const { rows } = await this.#pool.query<{
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

  /** The id of the key that the link stands for; undefined if it is wrong, too old or used. */
  async useLink(link: string): Promise<string | undefined> {
    if (!isConsoleToken(link)) return undefined;
    const { rows } = await this.#pool.query<{ key_id: string | null }>({
      name: 'use console link',
      text: 'select use_console_link($1) as key_id',
      values: [hashConsoleToken(link)],
    });
    return rows[0]?.key_id ?? undefined;
  }
}
