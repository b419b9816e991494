import { createHash, randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { beginImport } from '../../src/moving/begin-import.ts';
import { exportOrganisation } from '../../src/moving/export-organisation.ts';
import { importOrganisation } from '../../src/moving/import-organisation.ts';
import { moveLimits } from '../../src/moving/limits.ts';
import { readManifest } from '../../src/moving/manifest.ts';
import { deleteOrganisation } from '../../src/operator/audited-actions.ts';
import { uploadTypes } from '../../src/registry/upload-types.ts';
import { createTestApp, type TestApp } from '../support/app.ts';

/** Tests importing export folders that are crafted to do harm. */

const by = { actor: 'test' };
const root = mkdtempSync(join(tmpdir(), 'intake-hostile-'));
let test: TestApp;
beforeAll(async () => {
  test = await createTestApp();
});
afterAll(async () => {
  await test.close();
  rmSync(root, { recursive: true });
});

const pools = () => ({ serving: test.pool, admin: test.pool });
const name = 'tags-000001.ndjson.zst';
const tagLine = (more: object = {}) => `${JSON.stringify({ tag_id: randomUUID(), name: 'x', ...more })}\n`;

interface Made {
  readonly content?: string | Buffer;
  readonly rows?: unknown;
  /** Overrides the values that would be correct for this content. */
  readonly part?: object;
  readonly manifest?: object;
}

/** Writes an export with one tag file, as the service would write it, except for the given changes. */
function madeExport({ content = tagLine(), rows = 1, part = {}, manifest = {} }: Made): string {
  const folder = mkdtempSync(join(root, 'export-'));
  const bytes = zstdCompressSync(content);
  writeFileSync(join(folder, name), bytes);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const file = { type: 'tags', file: name, rows, bytes: bytes.length, sha256, ...part };
  const written = {
    format: 'intake-organisation',
    format_version: 1,
    service_version: '0.1.0',
    organisation: { slug: 'acme', name: 'Acme', created_at: '2026-01-01T00:00:00.000Z' },
    created_at: '2026-01-01T00:00:00.000Z',
    changes_cursor: 'x',
    counts: { ...Object.fromEntries(uploadTypes.map((type) => [type, 0])), tags: file.rows },
    files: [file],
    ...manifest,
  };
  writeFileSync(join(folder, 'manifest.json'), JSON.stringify(written));
  return folder;
}

async function importFrom(folder: string, slug = `o-${randomUUID().slice(0, 13)}`) {
  const asked = { slug, folder, erasureKeys: [] };
  return importOrganisation(pools(), by, asked, { onRows: () => {}, onFile: () => {} });
}

async function refusalOf(folder: string): Promise<string> {
  const before = await stored();
  const refusal = await importFrom(folder).then(
    () => 'it was imported',
    (error: Error) => `${error.constructor.name}: ${error.message}`,
  );
  expect(await stored()).toEqual(before);
  return refusal;
}

const stored = async () => (await test.pool.query('select count(*)::integer as tags from tags')).rows[0];

const badManifest = /^MoveRefused: manifest\.json in .* was not written by an export/;

it('a correct folder is imported, so that the refusals below are due to the changes', async () => {
  expect(await importFrom(madeExport({}))).toMatchObject({ wasDone: false, failed: 0 });
});

describe('a manifest', () => {
  it.each<[string, unknown]>([
    ['an absolute path', '/etc/passwd'],
    ['a path that leads out', `../${name}`],
    ['a path that leads out and in again', `${name}/../../${name}`],
    ['a line break', `${name}\n`],
    ['a NUL', `tags-000001\0.ndjson.zst`],
    ['an array', [name]],
    ['nothing', ''],
  ])('with %s for the name of a file is refused', async (_what, file) => {
    expect(await refusalOf(madeExport({ part: { file } }))).toMatch(badManifest);
  });

  it.each<[string, unknown]>([
    ['more than a number can count', 2 ** 53],
    ['infinitely many', '1e999'],
    ['none', 0],
    ['fewer than none', -1],
    ['half a row', 1.5],
  ])('that declares %s rows is refused', async (_what, rows) => {
    expect(await refusalOf(madeExport({ rows }))).toMatch(badManifest);
  });

  it('with control characters in a slug or a version shows none of them', async () => {
    const sequence = '\u001b]0;owned\u0007\u001b[2J';
    const organisation = { slug: sequence, name: 'Acme' };
    expect(await refusalOf(madeExport({ manifest: { organisation } }))).toMatch(badManifest);
    const nul = { slug: 'a\0', name: 'Acme' };
    expect(await refusalOf(madeExport({ manifest: { organisation: nul } }))).toMatch(badManifest);
    for (const format_version of [sequence, [sequence], 2]) {
      const manifest = { format_version, service_version: sequence };
      const refusal = await refusalOf(madeExport({ manifest }));
      expect(refusal).toMatch(/^MoveRefused: .* has the format version/);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: the test searches for control characters.
      expect(refusal).not.toMatch(/[\u0000-\u001f\u007f]/);
    }
  });

  it('that is a device is not read', async () => {
    const folder = madeExport({});
    rmSync(join(folder, 'manifest.json'));
    symlinkSync('/dev/zero', join(folder, 'manifest.json'));
    expect(await refusalOf(folder)).toMatch(/^MoveRefused: .*not a file/);
  });
});

describe('a file', () => {
  it('that expands to more rows than its manifest declares is refused before they are stored', async () => {
    const content = tagLine().repeat(200_000);
    expect(zstdCompressSync(content).length).toBeLessThan(10_000);
    expect(await refusalOf(madeExport({ content }))).toMatch(
      /^MoveRefused: .* has more than 1 rows, but its manifest/,
    );
    const few = tagLine().repeat(3);
    expect(await refusalOf(madeExport({ content: few }))).toMatch(/^MoveRefused: .* has 3 rows, but its/);
  });

  it('with a line without an end is refused before it is in memory', async () => {
    const content = Buffer.alloc(64 * moveLimits.lineBytesMax, 'x');
    expect(await refusalOf(madeExport({ content }))).toMatch(/^MoveRefused: .* has a line that is too long/);
  });

  it('that is a device or a folder is not read', async () => {
    const device = madeExport({ part: { bytes: 0 } });
    rmSync(join(device, name));
    symlinkSync('/dev/zero', join(device, name));
    expect(await refusalOf(device)).toMatch(badManifest);
    const inner = mkdtempSync(join(root, 'inner-'));
    mkdirSync(join(inner, name));
    const folder = madeExport({ part: { bytes: statSync(join(inner, name)).size } });
    rmSync(join(folder, name));
    mkdirSync(join(folder, name));
    expect(await refusalOf(folder)).toMatch(/^MoveRefused: .* is not the file that was exported/);
  });

  it('of another organisation is stored in the requested one', async () => {
    const victim = await test.organisation(`v-${randomUUID().slice(0, 13)}`);
    const tag_id = randomUUID();
    const content = `${JSON.stringify({ tag_id, name: 'x', organisation_id: victim.organisationId })}\n`;
    const slug = `o-${randomUUID().slice(0, 13)}`;
    await importFrom(madeExport({ content }), slug);
    const { rows } = await test.pool.query<{ slug: string }>(
      'select o.slug from tags join organisations o using (organisation_id) where tag_id = $1',
      [tag_id],
    );
    expect(rows).toEqual([{ slug }]);
  });
});

it('two exports are not mixed in one organisation, even if the first has stored nothing yet', async () => {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  const first = madeExport({});
  const { manifest, sha256 } = await readManifest(first);
  expect(await beginImport(pools(), by, { slug, manifest, sha256 })).toMatchObject({ isContinued: false });
  await expect(importFrom(madeExport({}), slug)).rejects.toThrow('another export');
  expect(await importFrom(first, slug)).toMatchObject({ wasDone: false, failed: 0 });
});

describe('a deleted organisation', () => {
  it('is not imported into', async () => {
    const slug = `o-${randomUUID().slice(0, 13)}`;
    await test.organisation(slug);
    await deleteOrganisation(test.pool, by, slug);
    const before = await stored();
    await expect(importFrom(madeExport({}), slug)).rejects.toMatchObject({ code: 'organisation_is_deleted' });
    expect(await stored()).toEqual(before);
  });

  it('is exported as long as it can be restored, and no longer', async () => {
    const slug = `o-${randomUUID().slice(0, 13)}`;
    const { organisationId } = await test.organisation(slug);
    await deleteOrganisation(test.pool, by, slug);
    const exportTo = (folder: string) =>
      exportOrganisation(pools(), by, { slug, folder: join(root, folder) }, () => {});
    expect((await exportTo('deleted')).files).toEqual([]);
    await test.pool.query(
      `update organisations set deleted_at = now() - interval '31 days' where slug = $1`,
      [slug],
    );
    await test.pool.query('select begin_removal($1, 30)', [organisationId]);
    await expect(exportTo('removed')).rejects.toThrow('is being removed');
    expect(readdirSync(root)).not.toContain('removed');
  });
});

it('only the account that exports may read the files and the folder', async () => {
  const slug = `o-${randomUUID().slice(0, 13)}`;
  await importFrom(madeExport({}), slug);
  const folder = join(root, 'new', 'export');
  await exportOrganisation(pools(), by, { slug, folder }, () => {});
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);
  expect(modeOf(folder)).toBe('700');
  const names = readdirSync(folder).toSorted();
  expect(names).toEqual(['manifest.json', name]);
  expect(names.map((one) => modeOf(join(folder, one)))).toEqual(['600', '600']);
});
