import { expect } from 'vitest';
import type { Api } from './api.ts';

/** Requests an erasure, and returns its id. */
export async function requestErasure(api: Api, sent: object): Promise<string> {
  const { status, body } = await api.post('/v1/erasures', sent);
  expect({ status, body }).toMatchObject({ status: 202 });
  return body.erasure_id;
}

/** Waits until the erasure is swept, and its certificate can be issued. */
export async function expectSwept(api: Api, erasureId: string): Promise<void> {
  const state = async () => (await api.get(`/v1/erasures/${erasureId}`)).body.state;
  await expect.poll(state, { interval: 100 }).toBe('swept');
  expect((await api.get(`/v1/erasures/${erasureId}/certificate`)).status).toBe(200);
}

/** Erases people, and returns the erasure's id when they are swept. */
export async function erasePeople(api: Api, sent: object): Promise<string> {
  const erasureId = await requestErasure(api, sent);
  await expectSwept(api, erasureId);
  return erasureId;
}
