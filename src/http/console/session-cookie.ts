import { RequestError } from '../../errors.ts';
import type { Call } from '../operation/operation.ts';

class SessionCookie {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  /**
   * Browsers accept a name that begins with `__Host-` only from the host itself, over HTTPS and for all its paths, so
   * another host of the same site cannot add a session. Over plain HTTP, which only works on loopback, some refuse it.
   */
  #nameFor(isEncrypted: boolean): string {
    return isEncrypted ? `__Host-${this.#name}` : this.#name;
  }

  /** Throws if there are two, because either could be forged. */
  tokenIn(cookie: string | undefined, isEncrypted: boolean): string | undefined {
    const prefix = `${this.#nameFor(isEncrypted)}=`;
    const pairs = (cookie ?? '').split(';').map((pair) => pair.trim());
    const [found, second] = pairs.filter((pair) => pair.startsWith(prefix));
    if (second !== undefined) throw new RequestError('two_sessions');
    return found?.slice(prefix.length);
  }

  tokenOf({ headers, client }: Call): string | undefined {
    return this.tokenIn(headers.cookie as string | undefined, client().isEncrypted);
  }

  /**
   * Scripts cannot read the cookie and other sites cannot send it. The second header removes the cookie of the previous
   * release, which over plain HTTP has the same name and another path.
   */
  set({ client }: Call, token: string, seconds: number): { readonly 'set-cookie': string[] } {
    const { isEncrypted } = client();
    const attributes = `HttpOnly; SameSite=Strict${isEncrypted ? '; Secure' : ''}`;
    return {
      'set-cookie': [
        `${this.#nameFor(isEncrypted)}=${token}; Path=/; Max-Age=${seconds}; ${attributes}`,
        `${this.#name}=; Path=/console; Max-Age=0; ${attributes}`,
      ],
    };
  }
}

/** Browsers send a cookie to every port of its host, so the two consoles use different names. */
export const consoleCookie = new SessionCookie('intake_console');
export const operatorCookie = new SessionCookie('intake_operator');
