import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { invalidRequest } from '../errors.ts';
import type { Pool } from '../postgres/pool.ts';

/** A cursor from another organisation or for another purpose does not verify. */
export class CursorSigner {
  readonly #key: KeyObject;
  readonly #scope: string;

  constructor(key: KeyObject, scope: string) {
    this.#key = key;
    this.#scope = scope;
  }

  /** 22 characters of base64url hold the first 132 bits. */
  sign(text: string): string {
    return createHmac('sha256', this.#key).update(`${this.#scope} ${text}`).digest('base64url').slice(0, 22);
  }

  isSigned(text: string, signature: string): boolean {
    const [expected, given] = [Buffer.from(this.sign(text)), Buffer.from(signature)];
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  write(position: string): string {
    return `${position}.${this.sign(position)}`;
  }

  /** Returns the position, or throws with the message if the cursor does not verify. */
  read(cursor: string, message: string): string {
    const [, position = '', signature = ''] = /^(.+)\.(.{22})$/s.exec(cursor) ?? [];
    if (this.isSigned(position, signature)) return position;
    throw invalidRequest({ field: 'cursor', code: 'invalid_format', message });
  }
}

/**
 * Only the server may create these cursors, because they contain numbers that a query trusts. The key is stored in the
 * database, so all processes share it. It is read only once, so a forged cursor costs no query.
 */
export class SignedCursors {
  readonly #pool: Pool;
  #key: Promise<KeyObject> | undefined;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** In the admin API, the organisation may be 'all'. `list` is one of several lists that have the same purpose. */
  async for(
    organisationId: string,
    purpose: 'feed' | 'replay' | 'report' | 'lake' | 'audit',
    ...list: readonly string[]
  ): Promise<CursorSigner> {
    this.#key ??= this.#read();
    return new CursorSigner(await this.#key, [purpose, organisationId, ...list].join(' '));
  }

  /** Called when another server responds, because its database may have a different key. */
  forget(): void {
    this.#key = undefined;
  }

  async #read(): Promise<KeyObject> {
    try {
      const { rows } = await this.#pool.query<{ key: Buffer }>('select key from cursor_key');
      const [row] = rows;
      if (!row) throw new Error('the table cursor_key is empty; restore its row from a backup');
      return createSecretKey(row.key);
    } catch (error) {
      this.#key = undefined;
      throw error;
    }
  }
}
