// @module-tag full

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ChangedCopy, Instructions } from '../support/changed-copy.ts';

const page = new Instructions('docs/adding-a-capability.md');

let copy: ChangedCopy;

beforeAll(async () => {
  copy = await ChangedCopy.make();
  copy.addMigration('bookmarks', page.snippet('migration'));
  copy.insertBefore(
    'src/operator/roles.ts',
    `    'select (organisation_id, recommendations_report) on organisations',\n`,
    page.snippet('grant'),
  );
  copy.write('src/bookmarks/bookmarks.ts', page.snippet('capability'));
  copy.write('src/http/routes/bookmarks.ts', page.snippet('operations'));
  const operations = 'src/http/operations.ts';
  copy.insertBefore(operations, '  ...healthOperations,\n', page.snippet('line'));
  copy.insertBefore(operations, `import { healthOperations }`, page.snippet('import'));
  await copy.generateAndBuild();
}, 300_000);
afterAll(() => copy.remove());

it('a capability is a folder, an operation and a line, as the page says', async () => {
  await copy.intake('migrate');
  const api = await copy.serve('acme');
  const [set = '', list = ''] =
    page.snippet('try-it').match(/\/v1\/bookmarks\S*(?=')|\/v1\/bookmarks$/gm) ?? [];
  expect(await api.post(set, {})).toMatchObject({ status: 200 });
  const { status, body } = await api.get(list);
  expect(status).toBe(200);
  expect(page.text).toContain(JSON.stringify(body));
  expect(await api.post('/v1/bookmarks?type=shop&position=1', {})).toMatchObject({
    status: 400,
    body: { code: 'invalid_request' },
  });
});

it('keeps the order of the layers', async () => {
  const vitest = join(copy.folder, 'node_modules/vitest/vitest.mjs');
  const config = join(copy.folder, 'vitest.alone.config.ts');
  copy.write('vitest.alone.config.ts', 'export default {};\n');
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
