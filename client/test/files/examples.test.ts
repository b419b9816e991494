import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { findFiles } from '../../src/files/find-files.ts';
import { readMapping } from '../../src/files/mapping.ts';
import { resources, resourceTypes } from '../../src/generated/resources.ts';
import type { FileOptions } from '../../src/parsing/opened-file.ts';
import { checkerOf } from '../../src/parsing/values/check-record.ts';
import { readAll } from './support.ts';

const folder = (name: string) => fileURLToPath(new URL(`../../../examples/${name}`, import.meta.url));

/** Simulates an upload without a service by remembering the valid records. References must point to one of them. */
async function check(
  name: string,
  known: Set<unknown>,
  optionsOf: (type: never) => FileOptions = () => ({}),
) {
  const problems: string[] = [];
  const { files } = await findFiles([folder(name)]);
  for (const { path, type } of files) {
    const file = path.slice(path.lastIndexOf('/') + 1);
    const { records, failures } = await readAll(path, { type, ...optionsOf(type as never) });
    const checkRecord = checkerOf(type);
    for (const { line, problems: found } of failures)
      problems.push(...found.map(({ column, code }) => `${file}:${line} ${column} ${code}`));
    for (const { line, record } of records) {
      const found = checkRecord(record).map(({ field, code }) => `${file}:${line} ${field} ${code}`);
      for (const field of Object.keys(resources[type].references))
        if (!known.has(record[field])) found.push(`${file}:${line} ${field} reference_not_found`);
      problems.push(...found);
      if (found.length === 0) known.add(record[resources[type].idField]);
    }
  }
  return { types: files.map(({ type }) => type), problems };
}

describe('the examples', () => {
  it('have every type and pass', async () => {
    const { types, problems } = await check('', new Set());
    expect(new Set(types)).toEqual(new Set(resourceTypes));
    expect(problems).toEqual([]);
  });

  it('of broken records fail, each in its own way', async () => {
    const known = new Set<unknown>();
    await check('', known);
    const shopsAside = { map: { 'Shop ID': 'shop_id', Name: 'name', Country: 'region' } };
    await expect(check('broken', known)).rejects.toThrow(
      `column "Shop ID" is not a field of shops; did you mean shop_id?`,
    );
    const { problems } = await check('broken', known, (type) => (type === 'shops' ? shopsAside : {}));
    expect(problems.sort()).toEqual(
      [
        'customers.ndjson:2 birthdate invalid_format',
        'customers.ndjson:3 null malformed_json',
        'customers.ndjson:4 user_id required',
        'customers.ndjson:5 is_deleted wrong_type',
        'student-favourites.ndjson:1 student_id reference_not_found',
        'transactions.csv:10 amount required',
        'transactions.csv:11 null malformed_row',
        'transactions.csv:12 null malformed_row',
        'transactions.csv:3 amount wrong_type',
        'transactions.csv:4 shop_id reference_not_found',
        'transactions.csv:5 region invalid_format',
        'transactions.csv:6 savings out_of_range',
        'transactions.csv:7 created invalid_format',
        'transactions.csv:8 amount wrong_type',
        'transactions.csv:8 is_deleted wrong_type',
        'transactions.csv:9 transaction_id invalid_format',
      ].sort(),
    );
  });

  it('of a till pass with their mapping: the keys of shops and transactions match', async () => {
    const optionsOf = await readMapping(folder('till-export/mapping.json'));
    const { types, problems } = await check('till-export', new Set(), optionsOf);
    expect(types).toEqual(['shops', 'transactions']);
    expect(problems).toEqual([]);
    const { sent } = await readAll(folder('till-export/transactions.csv'), optionsOf('transactions'));
    expect(sent[0]).toMatchObject({
      created: expect.stringMatching(/^2026-03-\d\dT\d\d:\d\d:00Z$/),
      amount: expect.any(Number),
    });
  });
});
