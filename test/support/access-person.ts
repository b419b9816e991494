import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Api } from './api.ts';

/** A line in the download. */
export interface Collected {
  readonly type: string;
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests check the shape, which a type would only assume.
  readonly record: any;
}

/** Requests a person's data, waits until it is collected, and returns the request's id. The default person is unknown. */
export async function accessPerson(
  api: Api,
  sent: object = { customer_ids: [randomUUID()] },
): Promise<string> {
  const { status, body } = await api.post('/v1/access-requests', sent);
  expect(status).toBe(202);
  for (let state = ''; state !== 'done'; await sleep(100))
    state = (await api.get(`/v1/access-requests/${body.access_request_id}`)).body.state;
  return body.access_request_id;
}

export async function downloadAccess(api: Api, id: string): Promise<Collected[]> {
  const { status, body, headers } = await api.get(`/v1/access-requests/${id}/records`);
  expect([status, headers.get('content-type')]).toEqual([200, 'application/x-ndjson']);
  return linesOf(body);
}

export function linesOf(text: string): Collected[] {
  const lines = text.split('\n');
  expect(lines.pop()).toBe('');
  return lines.map((line) => JSON.parse(line));
}
