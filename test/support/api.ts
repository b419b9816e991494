/** The API as a client sees it: HTTP and JSON. This file imports nothing from src/. */

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests check the shape, which a type would only assume.
  readonly body: any;
}

export interface Api {
  upload(type: string, records: unknown): Promise<Answer>;
  /** Uploads one batch. Returns the `data` of its result with the HTTP status. Throws if the response has no batches. */
  // biome-ignore lint/suspicious/noExplicitAny: tests check the shape, which a type would only assume.
  batch(type: string, records: unknown[]): Promise<any>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  send(path: string, init: RequestInit): Promise<Answer>;
}

/** All scopes that a key can have. */
export const everyPermission: readonly string[] = [
  'data:write',
  'data:read',
  'interactions:write',
  'interactions:read',
  'data:erase',
  'data:access',
];

export function apiOf(url: string, key?: string): Api {
  const authorization: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const send = async (path: string, init: RequestInit): Promise<Answer> => {
    const response = await fetch(url + path, {
      redirect: 'manual',
      ...init,
      headers: { ...authorization, ...init.headers },
    });
    const text = await response.text();
    const json = response.headers.get('content-type')?.startsWith('application/json');
    return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text };
  };
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const upload = (type: string, records: unknown) => post(`/v1/data/${type}`, { records });
  return {
    send,
    post,
    upload,
    get: (path, headers = {}) => send(path, { headers }),
    async batch(type, records) {
      const { status, body } = await upload(type, records);
      return { http: status, ...body.batches[0].data };
    },
  };
}
