// @module-tag full

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ChangedCopy, Instructions } from '../support/changed-copy.ts';
import { queryDatabase } from '../support/query-database.ts';

const page = new Instructions('docs/adding-a-record-type.md');
const lastLineOfRegistry = '} satisfies Record<string, Resource>;';

let copy: ChangedCopy;
let migrationName: string;

beforeAll(async () => {
  copy = await ChangedCopy.make();
  expect(page.text).toContain(lastLineOfRegistry);
  copy.insertBefore('src/registry/resources.ts', lastLineOfRegistry, page.snippet('registry-entry'));
  migrationName = copy.addMigration('vouchers', page.snippet('migration'));
  await copy.generateAndBuild();
}, 300_000);
afterAll(() => copy.remove());

/** The bodies that the page sends, in order. */
function bodiesSent(): { type: string; records: Record<string, unknown>[] }[] {
  const commands = page.snippet('try-it').matchAll(/\/v1\/data\/(\S+) .*?-d '(.*?)'/gs);
  return [...commands].map(([, type = '', body = '']) => ({ type, ...JSON.parse(body) }));
}

it('a type is one entry and one migration, as the page says', async () => {
  expect(await copy.intake('migrate')).toContain(`applied ${migrationName}`);
  const api = await copy.serve('acme', 'data:write:shops', 'data:write:vouchers');
  const [shops, vouchers] = bodiesSent();
  expect([shops?.type, vouchers?.type]).toEqual(['shops', 'vouchers']);
  expect((await api.batch('shops', shops?.records ?? [])).counts).toMatchObject({ created: 1, failed: 0 });

  const answer = await api.batch('vouchers', vouchers?.records ?? []);
  expect(answer).toMatchObject({ http: 207, status: 'partial', counts: { created: 1, failed: 1 } });
  expect(answer.errors).toMatchObject([{ index: 1, field: 'shop_id', code: 'reference_not_found' }]);
  expect(page.text).toContain(`\n${answer.error}\n`);

  const [voucher] = vouchers?.records ?? [];
  const wrong = await api.batch('vouchers', [
    { ...voucher, value: 0 },
    { ...voucher, code: '' },
    { ...voucher, expires: '30 February' },
    { ...voucher, offer_id: '99999999-9999-4999-8999-999999999999' },
  ]);
  expect(wrong.errors).toMatchObject([
    { index: 0, field: 'value', code: 'out_of_range' },
    { index: 1, field: 'code', code: 'required' },
    { index: 2, field: 'expires', code: 'invalid_format' },
    { index: 3, field: 'offer_id', code: 'reference_not_found' },
  ]);
});

it('analysts have a view of the type without being told', async () => {
  const [row] = await queryDatabase<{ columns: string }>(
    copy.databaseUrl,
    `select string_agg(attname, ' ' order by attnum) as columns from pg_attribute
     where attrelid = 'analytics_all.vouchers'::regclass and has_table_privilege('intake_read_all', attrelid, 'select')`,
  );
  expect(row?.columns).toBe(
    'organisation_id voucher_id shop_id offer_id code value expires created updated is_deleted stored_at',
  );
});

it('the description of the API has the type without being told', () => {
  const { paths, components } = JSON.parse(readFileSync(join(copy.folder, 'openapi.json'), 'utf8'));
  expect(paths['/v1/data/vouchers'].post.operationId).toBe('upload-vouchers');
  expect(components.schemas.Voucher.required).toEqual(['voucher_id', 'shop_id', 'code', 'value']);
});
