import { expect } from 'vitest';
import type { Answer, Api } from './api.ts';

/** An organisation's rejections, as a client lists them. */

export interface Rejection {
  readonly rejection_id: string;
  readonly type: string;
  readonly request_id: string;
  readonly index: number;
  readonly id: string | null;
  readonly rejected: string;
  readonly errors: { field: string | null; code: string; message: string }[];
  readonly record: unknown;
}

type Query = Record<string, string>;

export async function listRejections(api: Api, query: Query = {}): Promise<Rejection[]> {
  const { status, body } = await api.get(`/v1/rejections?${new URLSearchParams(query)}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  return body.rejections;
}

export async function summariseRejections(api: Api, query: Query = {}): Promise<Answer['body'][]> {
  const { status, body } = await api.get(`/v1/rejections/summary?${new URLSearchParams(query)}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  expect(Object.keys(body)).toEqual(['rejections']);
  return body.rejections;
}

export const replayRejections = (api: Api, query: Query = {}) =>
  api.send(`/v1/rejections/replay?${new URLSearchParams(query)}`, { method: 'POST' });

export const discardRejections = (api: Api, query: Query = {}) =>
  api.send(`/v1/rejections?${new URLSearchParams(query)}`, { method: 'DELETE' });
