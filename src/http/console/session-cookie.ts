import type { Call } from '../operation/operation.ts';

/** The cookie that holds a session token. */
class SessionCookie {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /** Returns the session token from the request's `Cookie` header. */
  tokenIn(cookie: string | undefined): string | undefined {
    const prefix = `${this.#name}=`;
    const found = (cookie ?? '').split(';').find((pair) => pair.trim().startsWith(prefix));
    return found?.trim().slice(prefix.length);
  }

  /**
   * Returns the header that sets the cookie. Scripts cannot read the cookie, other sites cannot send it, and the browser
   * sends it only to the console.
   */
  set({ client }: Call, token: string, seconds: number): { readonly 'set-cookie': string } {
    const attributes = `Path=/console; Max-Age=${seconds}; HttpOnly; SameSite=Strict`;
    return { 'set-cookie': `${this.#name}=${token}; ${attributes}${client().isEncrypted ? '; Secure' : ''}` };
  }
}

/** Browsers send a cookie to every port of its host, so the two consoles use different names. */
export const consoleCookie = new SessionCookie('intake_console');
export const operatorCookie = new SessionCookie('intake_operator');
