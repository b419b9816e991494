import type { Call } from '../operation/operation.ts';

/** The cookie that has the token of a session. */
class SessionCookie {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** The session's token among the cookies of a request. */
  tokenIn(cookie: string | undefined): string | undefined {
    const prefix = `${this.#name}=`;
    const found = (cookie ?? '').split(';').find((pair) => pair.trim().startsWith(prefix));
    return found?.trim().slice(prefix.length);
  }

  /** The header that sets it. No script can read it, no other site can send it, and it is sent to the console alone. */
  set({ client }: Call, token: string, seconds: number): { readonly 'set-cookie': string } {
    const attributes = `Path=/console; Max-Age=${seconds}; HttpOnly; SameSite=Strict`;
    return { 'set-cookie': `${this.#name}=${token}; ${attributes}${client().isEncrypted ? '; Secure' : ''}` };
  }
}

/** Browsers send a cookie to every port of its host, so the two have different names. */
export const consoleCookie = new SessionCookie('intake_console');
export const operatorCookie = new SessionCookie('intake_operator');
