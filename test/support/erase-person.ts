import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Api } from './api.ts';

/** Erases a person without stored data, waits until the erasure is finished, and returns its id. */
export async function erasePerson(api: Api, more: object = {}): Promise<string> {
  const sent = { customer_ids: [randomUUID()], ...more };
  const { status, body } = await api.post('/v1/erasures', sent);
  expect([status, body.known]).toEqual([202, 0]);
  for (let state = ''; state !== 'swept'; await sleep(100))
    state = (await api.get(`/v1/erasures/${body.erasure_id}`)).body.state;
  return body.erasure_id;
}
