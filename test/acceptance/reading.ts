import { expect } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { fieldsOf, idFieldOf, makeRecord, type TestRecord } from './record-types.ts';

/** Helpers for tests that read records back. */

export const tagOf = (fields: TestRecord = {}): TestRecord => makeRecord('tags', {}, fields);

export async function store(to: Api, type: string, records: TestRecord[]): Promise<void> {
  const { status, body } = await to.upload(type, records);
  expect({ status, body }).toMatchObject({ status: 200 });
}

export const list = (from: Api, type: string, query: Record<string, string> = {}): Promise<Answer> =>
  from.get(`/v1/data/${type}?${new URLSearchParams(query)}`);

export const pathOf = (type: string, record: TestRecord): string =>
  `/v1/data/${type}/${record[idFieldOf(type)]}`;

export const idsOf = (type: string, records: readonly TestRecord[]): string[] =>
  records.map((record) => record[idFieldOf(type)] as string);

export const listedIds = (type: string, { body }: Answer): string[] => idsOf(type, body.records);

export const sortedById = (type: string, records: readonly TestRecord[]): TestRecord[] =>
  records.toSorted((one, other) => (String(one[idFieldOf(type)]) < String(other[idFieldOf(type)]) ? -1 : 1));

/** Returns a record as the API returns it: omitted fields are null, except is_deleted. */
export const asRead = (type: string, record: TestRecord): TestRecord =>
  Object.fromEntries(
    fieldsOf(type).map(([name]) => [name, record[name] ?? (name === 'is_deleted' ? false : null)]),
  );
