import { expect } from 'vitest';
import type { Api } from './api.ts';

export interface TypeOverview {
  readonly type: string;
  readonly records: number;
  readonly newest_updated: string | null;
  readonly last_upload: string | null;
  readonly open_rejections: number;
}

/** Returns an organisation's result of GET /v1/data, by type. */
export async function overviewOf(api: Api): Promise<Record<string, TypeOverview>> {
  const { status, body } = await api.get('/v1/data');
  expect({ status, body }).toMatchObject({ status: 200 });
  expect(Object.keys(body)).toEqual(['types']);
  const types: string[] = body.types.map(({ type }: TypeOverview) => type);
  expect(new Set(types).size).toBe(types.length);
  return Object.fromEntries(body.types.map((one: TypeOverview) => [one.type, one]));
}
