import { expect } from 'vitest';

/** Signs in to a console with a key, a link or an admin token, reads the session, and signs out. */
export async function signInAndOut(
  url: string,
  given: { key: string } | { link: string } | { token: string },
): Promise<void> {
  const path = `${url}/console/api/session`;
  const headers = { origin: url, 'content-type': 'application/json' };
  const signedIn = await fetch(path, { method: 'POST', headers, body: JSON.stringify(given) });
  expect(signedIn.status).toBe(201);
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';');
  expect((await fetch(path, { headers: { cookie } })).status).toBe(200);
  expect((await fetch(path, { method: 'DELETE', headers: { origin: url, cookie } })).status).toBe(204);
}
