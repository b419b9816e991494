// @module-tag full

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ChangedCopy, Instructions } from '../support/changed-copy.ts';
import { queryDatabase } from '../support/query-database.ts';

/** Follows the guides for adding a record type and a capability, both in the same copy of the project. */

const typeGuide = new Instructions('docs/adding-a-record-type.md');
const capabilityGuide = new Instructions('docs/adding-a-capability.md');
const lastLineOfRegistry = '} satisfies Record<string, Resource>;';

let copy: ChangedCopy;
let migrationName: string;
let migrated: string;

beforeAll(async () => {
  copy = await ChangedCopy.make();
  addRecordType();
  addCapability();
  await copy.generateAndBuild();
  migrated = await copy.intake('migrate');
  await copy.serve();
});
afterAll(() => copy.remove());

function addRecordType(): void {
  expect(typeGuide.text).toContain(lastLineOfRegistry);
  copy.insertBefore('src/registry/resources.ts', lastLineOfRegistry, typeGuide.snippet('registry-entry'));
  migrationName = copy.addMigration('vouchers', typeGuide.snippet('migration'));
}

function addCapability(): void {
  copy.addMigration('bookmarks', capabilityGuide.snippet('migration'));
  copy.insertBefore(
    'src/operator/roles.ts',
    `    'select, update (deleted_below) on retention_progress',\n`,
    capabilityGuide.snippet('grant'),
  );
  copy.write('src/bookmarks/bookmarks.ts', capabilityGuide.snippet('capability'));
  copy.write('src/http/routes/bookmarks.ts', capabilityGuide.snippet('operations'));
  const operations = 'src/http/operations.ts';
  copy.insertBefore(operations, '  ...healthOperations,\n', capabilityGuide.snippet('line'));
  copy.insertBefore(operations, `import { healthOperations }`, capabilityGuide.snippet('import'));
}

describe('adding a record type', () => {
  /** Returns the request bodies on the page, in order. */
  function bodiesSent(): { type: string; records: Record<string, unknown>[] }[] {
    const commands = typeGuide.snippet('try-it').matchAll(/\/v1\/data\/(\S+) .*?-d '(.*?)'/gs);
    return [...commands].map(([, type = '', body = '']) => ({ type, ...JSON.parse(body) }));
  }

  it('a type is one entry and one migration, as on the page', async () => {
    expect(migrated).toContain(`applied ${migrationName}`);
    const api = await copy.apiFor('data:write:shops', 'data:write:vouchers');
    const [shops, vouchers] = bodiesSent();
    expect([shops?.type, vouchers?.type]).toEqual(['shops', 'vouchers']);
    expect((await api.batch('shops', shops?.records ?? [])).counts).toMatchObject({ created: 1, failed: 0 });

    const answer = await api.batch('vouchers', vouchers?.records ?? []);
    expect(answer).toMatchObject({ http: 207, status: 'partial', counts: { created: 1, failed: 1 } });
    expect(answer.errors).toMatchObject([{ index: 1, field: 'shop_id', code: 'reference_not_found' }]);
    expect(typeGuide.snippet('answer')).toBe(`${answer.error}\n`);

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

  it('analysts automatically have a view of the type', async () => {
    const [row] = await queryDatabase<{ columns: string }>(
      copy.databaseUrl,
      `select string_agg(attname, ' ' order by attnum) as columns from pg_attribute
       where attrelid = 'analytics_all.vouchers'::regclass and has_table_privilege('intake_read_all', attrelid, 'select')`,
    );
    expect(row?.columns).toBe(
      'organisation_id voucher_id shop_id offer_id code value expires created updated is_deleted stored_at',
    );
  });

  it('the description of the API automatically has the type', () => {
    const { paths, components } = JSON.parse(readFileSync(join(copy.folder, 'openapi.json'), 'utf8'));
    expect(paths['/v1/data/vouchers'].post.operationId).toBe('upload-vouchers');
    expect(components.schemas.Voucher.required).toEqual(['voucher_id', 'shop_id', 'code', 'value']);
  });
});

describe('adding a capability', () => {
  it('a capability is a folder, an operation and a line, as on the page', async () => {
    const api = await copy.apiFor();
    const [set = '', list = ''] =
      capabilityGuide.snippet('try-it').match(/\/v1\/bookmarks\S*(?=')|\/v1\/bookmarks$/gm) ?? [];
    expect(await api.post(set, {})).toMatchObject({ status: 200 });
    const { status, body } = await api.get(list);
    expect(status).toBe(200);
    expect(capabilityGuide.snippet('answer')).toBe(`${JSON.stringify(body)}\n`);
    expect(await api.post('/v1/bookmarks?type=shop&position=1', {})).toMatchObject({
      status: 400,
      body: { code: 'invalid_request' },
    });
  });

  it('keeps the order of the layers', async () => {
    const vitest = join(copy.folder, 'node_modules/vitest/vitest.mjs');
    const config = join(copy.folder, 'vitest.alone.config.ts');
    // By default, a test may take only five seconds.
    copy.write('vitest.alone.config.ts', 'export default { test: { testTimeout: 240_000 } };\n');
    const ran = await copy.run(
      process.execPath,
      vitest,
      'run',
      '--config',
      config,
      'test/architecture.test.ts',
    );
    expect(ran).toMatch(/Tests .*passed/);
  });

  it('is in the API description', () => {
    const { paths } = JSON.parse(readFileSync(join(copy.folder, 'openapi.json'), 'utf8'));
    expect(paths['/v1/bookmarks']).toMatchObject({
      get: { operationId: 'list-bookmarks' },
      post: { operationId: 'set-bookmark' },
    });
  });
});
