import { expect } from 'vitest';
import type { BuiltServer } from './built-server.ts';

interface Sent {
  readonly method?: string;
  readonly cookie?: string | undefined;
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

export const session = '/console/api/session';
export const overview = '/console/api/v1/data';

/** Calls the console's API as its pages do. */
export class AskConsole {
  readonly #server: BuiltServer;

  constructor(server: BuiltServer) {
    this.#server = server;
  }

  readonly ask = async (path: string, { method = 'GET', cookie, body, headers = {} }: Sent = {}) => {
    const answer = await fetch(this.#server.url + path, {
      method,
      headers: {
        origin: this.#server.url,
        ...(cookie !== undefined && { cookie }),
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    const isJson = answer.headers.get('content-type')?.includes('json') && text !== '';
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text };
  };

  /** Signs in with a key or a link, and returns the cookie. */
  readonly signIn = async (given: object): Promise<string> => {
    const { status, headers } = await this.ask(session, { method: 'POST', body: given });
    expect(status).toBe(201);
    return cookieOf(headers);
  };

  readonly link = async (...options: string[]): Promise<{ token: string; keyId: string }> => {
    const said = await this.#server.run('console', 'link', '--organisation', 'acme', '--json', ...options);
    const { path, key_id } = JSON.parse(said);
    return { token: path.replace('/console/sign-in#', ''), keyId: key_id };
  };
}

export function cookieOf(headers: Headers): string {
  const [cookie = ''] = (headers.get('set-cookie') ?? '').split(';');
  expect(cookie).toMatch(/^intake_console=[\w-]{43}$/);
  return cookie;
}
