import { createHash, randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Api, apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { builtVersion } from '../support/built-version.ts';
import { readFeed } from '../support/change-feed.ts';
import { createTestDatabase } from '../support/database.ts';
import {
  auditOf,
  createEmpty,
  expectRefused,
  linesIn,
  manifestOf,
  moveEnvironment,
  rowsOf,
  runMove as run,
} from '../support/move-organisation.ts';
import { newTag } from '../support/new-records.ts';
import { overviewOf } from '../support/overview.ts';
import { queryDatabase } from '../support/query-database.ts';
import { runCommand } from '../support/run-command.ts';
import {
  edgeValues,
  fieldsOf,
  formsOf,
  idFieldOf,
  makeRecord,
  recordTypes,
  storeReferenced,
} from './record-types.ts';

/** Tests exporting an organisation from one service and importing it into another. */

const tables = [...Object.keys(recordTypes).map((type) => type.replaceAll('-', '_')), 'interactions'];
const folder = mkdtempSync(join(tmpdir(), 'intake-moving-'));
const acmeFolder = join(folder, 'acme');

let server: BuiltServer;
let api: Api;
let otherApi: Api;
let target: string;
/** Acme's rows at the time of the export. */
let exported: Record<string, string[]>;
const otherIds: string[] = [];

beforeAll(async () => {
  server = await startBuiltServer();
  target = await createTestDatabase();
  api = apiOf(server.url, await server.createKey('acme'));
  otherApi = apiOf(server.url, await server.createKey('other'));
  await storeAwkward(api);
  const file = { name: 'visits.csv', bytes: 1, sha256: '9f'.repeat(32), type: 'interactions' };
  expect((await api.post('/v1/runs', { name: 'nightly', files: [file] })).status).toBe(201);
  otherIds.push(...Object.values(await storeReferenced(otherApi)));
  exported = await rowsOf(server.databaseUrl, 'acme', tables);
  // An export that takes longer than five seconds reports its progress.
  expect(await run(server.databaseUrl, 'export', 'acme', '--to', acmeFolder)).toMatchObject({
    exitCode: 0,
    stderr: expect.stringMatching(/^([\w-]+: [\d,]+ rows exported, [\d,]+ a second\n)*$/),
  });
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

/** Stores every edge case of every field of every type, and every kind of interaction, including two equal ones. */
async function storeAwkward(to: Api): Promise<void> {
  const stored = await storeReferenced(to);
  for (const type of Object.keys(recordTypes)) {
    const idField = idFieldOf(type);
    const records = fieldsOf(type)
      .filter(([name, { references }]) => name !== idField && references === undefined)
      .flatMap(([name, rule]) => [
        ...Object.values(edgeValues(rule)).map((value) => ({ [name]: value })),
        ...formsOf(rule.kind).map(({ sent }) => ({ [name]: sent })),
        ...(rule.required ? [] : [{ [name]: null }]),
      ])
      .map((changes) => makeRecord(type, stored, changes));
    const { status, body } = await to.upload(type, [
      ...records,
      makeRecord(type, stored, { is_deleted: true }),
    ]);
    expect([type, status, body.batches[0].data.errors]).toEqual([type, 200, []]);
  }
  const interaction = {
    interaction_type: 'PAGE_VIEW',
    item_type: 'SHOP',
    item_id: stored.shops,
    event_timestamp: 1_700_000_000,
  };
  const { status } = await to.post('/user-interactions/batch', {
    records: [
      interaction,
      interaction,
      {
        ...interaction,
        student_id: stored.customers,
        user_id: 'ü🎓"\\'.repeat(50),
        city: '',
        country: 'x'.repeat(1_000),
      },
      { ...interaction, item_type: 'TAG', item_id: stored.tags, platform: 'IOS', source: 'SERVICE' },
      { ...interaction, item_type: 'KEYWORD', item_id: stored.keywords, recommendation_id: randomUUID() },
      ...[
        1,
        1_700_000_000_123,
        253_402_300_799_999,
        '2024-05-17T08:30:00.123456+05:30',
        '2024-05-17t08:30z',
      ].map((event_timestamp) => ({ ...interaction, event_timestamp })),
    ],
  });
  expect(status).toBe(200);
}

describe('an export', () => {
  it('has every row of the organisation, and no row of another', async () => {
    const lines = await linesIn(acmeFolder);
    expect(Object.keys(lines)).toHaveLength(15);
    for (const [type, found] of Object.entries(lines))
      expect([type, found.length]).toEqual([type, exported[type.replaceAll('-', '_')]!.length]);
    const all = Object.values(lines).flat().join('\n');
    expect(otherIds).toHaveLength(5);
    expect(otherIds.filter((id) => all.includes(id))).toEqual([]);
  });

  it('has a manifest that describes each file', async () => {
    const manifest = manifestOf(acmeFolder);
    const lines = await linesIn(acmeFolder);
    expect(manifest).toMatchObject({
      format: 'intake-organisation',
      format_version: 1,
      service_version: builtVersion,
      organisation: { slug: 'acme', name: 'acme' },
      counts: Object.fromEntries(Object.entries(lines).map(([type, found]) => [type, found.length])),
    });
    expect(manifest.files).toHaveLength(15);
    for (const { file, type, rows, bytes, sha256 } of manifest.files) {
      const content = readFileSync(join(acmeFolder, file));
      expect([rows, bytes, sha256]).toEqual([
        lines[type]!.length,
        content.length,
        createHash('sha256').update(content).digest('hex'),
      ]);
    }
    expect(readdirSync(acmeFolder).toSorted()).toEqual(
      ['manifest.json', ...manifest.files.map(({ file }: { file: string }) => file)].toSorted(),
    );
  });

  it('has a cursor from which a reader of the feed continues', async () => {
    const tag = newTag();
    await api.upload('tags', [tag]);
    const { changes } = await readFeed(api, { after: manifestOf(acmeFolder).changes_cursor });
    expect(changes.map(({ id }) => id)).toEqual([tag.tag_id]);
  });

  it('is in the audit log when it starts and when it ends', async () => {
    expect(await auditOf(server.databaseUrl, 'acme')).toEqual([
      { act: 'organisation.export', actor: expect.stringMatching(/^cli:/), details: {} },
      {
        act: 'organisation.exported',
        actor: expect.stringMatching(/^cli:/),
        details: { counts: manifestOf(acmeFolder).counts },
      },
    ]);
  });

  it('is not written to a folder that is not empty', async () => {
    const before = readdirSync(acmeFolder);
    expectRefused(
      await run(server.databaseUrl, 'export', 'acme', '--to', acmeFolder),
      /is not empty.*finished export/,
    );
    expect(readdirSync(acmeFolder)).toEqual(before);
    const strange = mkdtempSync(join(folder, 'strange-'));
    writeFileSync(join(strange, 'letter.txt'), 'mine');
    expectRefused(
      await run(server.databaseUrl, 'export', 'acme', '--to', strange),
      /is not empty; specify a folder/,
    );
    expect(readdirSync(strange)).toEqual(['letter.txt']);
  });
});

describe('an import', () => {
  beforeAll(async () => {
    expect(await run(target, 'import', 'acme', '--from', acmeFolder)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^Imported [\d,]+ records and 10 interactions into acme\./),
    });
  });

  it('stores every row unchanged, and interactions in their order', async () => {
    const rows = await rowsOf(target, 'acme', tables);
    expect(rows).toEqual(exported);
    for (const table of tables) expect([table, rows[table]!.length > 9]).toEqual([table, true]);
    const [{ name } = {}] = await queryDatabase<{ name: string }>(
      target,
      `select name from organisations where slug = 'acme'`,
    );
    expect(name).toBe('acme');
  });

  it('claims the files of interactions that were uploaded, for the same time', async () => {
    const claimsIn = (databaseUrl: string) =>
      queryDatabase(
        databaseUrl,
        `select encode(sha256, 'hex') as sha256, run_id, claimed_at from run_file_claims`,
      );
    const claims = await claimsIn(target);
    expect(claims).toEqual(await claimsIn(server.databaseUrl));
    expect(claims).toMatchObject([{ sha256: '9f'.repeat(32) }]);
    expect(await queryDatabase(target, 'select from runs')).toEqual([]);
  });

  it('assigns new ids to interactions', async () => {
    const idsIn = async (databaseUrl: string) =>
      (await queryDatabase<{ id: string }>(databaseUrl, 'select interaction_id as id from interactions')).map(
        ({ id }) => id,
      );
    const [old, renewed] = [await idsIn(server.databaseUrl), await idsIn(target)];
    expect(new Set([...old, ...renewed]).size).toBe(old.length + renewed.length);
  });

  it('can be used at once: counts, receipts and the change feed include it', async () => {
    const second = await startBuiltServer({ DATABASE_URL: target });
    try {
      const key = JSON.parse(await second.run('keys', 'issue', '--organisation', 'acme', '--json')).key;
      const there = apiOf(second.url, key);
      const { counts } = manifestOf(acmeFolder);
      const known = Object.entries(await overviewOf(there)).map(([type, { records }]) => [type, records]);
      expect(Object.fromEntries(known)).toEqual(counts);
      const { changes } = await readFeed(there);
      const stored = Object.values<number>(counts).reduce((sum, count) => sum + count, 0);
      expect(changes).toHaveLength(stored);
      const receipts = await there.get('/v1/requests?limit=100');
      expect(new Set(receipts.body.requests.map((one: { key_id: string }) => one.key_id))).toEqual(
        new Set(['import']),
      );
    } finally {
      await second.stop();
    }
  });

  it('is in the audit log when it starts and when it ends', async () => {
    const manifest_sha256 = createHash('sha256')
      .update(readFileSync(join(acmeFolder, 'manifest.json')))
      .digest('hex');
    expect(await auditOf(target, 'acme')).toMatchObject([
      {
        act: 'organisation.import',
        actor: expect.stringMatching(/^cli:/),
        details: { from: 'acme', manifest_sha256 },
      },
      {
        act: 'organisation.imported',
        actor: expect.stringMatching(/^cli:/),
        details: { manifest_sha256, counts: manifestOf(acmeFolder).counts, failed: 0 },
      },
    ]);
  });

  it('that is repeated does nothing', async () => {
    const before = await rowsOf(target, 'acme', tables);
    const again = await run(target, 'import', 'acme', '--from', acmeFolder);
    expect(again).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/was already imported into acme; nothing was done/),
    });
    expect(await rowsOf(target, 'acme', tables)).toEqual(before);
  });

  it('fills an empty organisation, and none that has data', async () => {
    await createEmpty(target, 'empty');
    expect((await run(target, 'import', 'empty', '--from', acmeFolder)).exitCode).toBe(0);
    expect((await rowsOf(target, 'empty', tables)).interactions).toHaveLength(10);
    const filled = await rowsOf(server.databaseUrl, 'other', tables);
    expectRefused(
      await run(server.databaseUrl, 'import', 'other', '--from', acmeFolder),
      /"other" already has data/,
    );
    expect(await rowsOf(server.databaseUrl, 'other', tables)).toEqual(filled);
  });

  it.each([
    [
      'a changed byte',
      /transactions-000001\.ndjson\.zst .* is not the file that was exported/,
      (copy: string) => {
        const file = join(copy, 'transactions-000001.ndjson.zst');
        const bytes = readFileSync(file);
        bytes[bytes.length >> 1]! ^= 1;
        writeFileSync(file, bytes);
      },
    ],
    [
      'a missing file',
      /shops-000001\.ndjson\.zst is missing/,
      (copy: string) => rmSync(join(copy, 'shops-000001.ndjson.zst')),
    ],
    [
      'another format version',
      /has the format version 2, and this program reads version 1/,
      (copy: string) =>
        writeFileSync(
          join(copy, 'manifest.json'),
          JSON.stringify({ ...manifestOf(copy), format_version: 2 }),
        ),
    ],
    [
      'a manifest of something else',
      /does not describe an organisation/,
      (copy: string) => writeFileSync(join(copy, 'manifest.json'), '{"format": "tar"}'),
    ],
    [
      'a manifest that is not JSON',
      /is not JSON/,
      (copy: string) => writeFileSync(join(copy, 'manifest.json'), '{'),
    ],
    [
      'a manifest that lost a file',
      /was not written by an export/,
      (copy: string) =>
        writeFileSync(
          join(copy, 'manifest.json'),
          JSON.stringify({ ...manifestOf(copy), files: manifestOf(copy).files.slice(1) }),
        ),
    ],
    [
      'a file outside the folder',
      /was not written by an export/,
      (copy: string) => {
        const [first, ...rest] = manifestOf(copy).files;
        const files = [{ ...first, file: `../acme/${first.file}` }, ...rest];
        writeFileSync(join(copy, 'manifest.json'), JSON.stringify({ ...manifestOf(copy), files }));
      },
    ],
    [
      'a wrong claim on a file',
      /was not written by an export/,
      (copy: string) =>
        writeFileSync(
          join(copy, 'manifest.json'),
          JSON.stringify({ ...manifestOf(copy), file_claims: [{ sha256: 'no' }] }),
        ),
    ],
    [
      'no manifest',
      /has no manifest\.json, so it is not a finished export/,
      (copy: string) => rmSync(join(copy, 'manifest.json')),
    ],
  ] as [string, RegExp, (copy: string) => void][])(
    'with %s is refused before anything is stored',
    async (_what, help, spoil) => {
      const copy = mkdtempSync(join(folder, 'copy-'));
      cpSync(acmeFolder, copy, { recursive: true });
      spoil(copy);
      expectRefused(await run(target, 'import', 'refused', '--from', copy), help);
      expect(await queryDatabase(target, `select from organisations where slug = 'refused'`)).toHaveLength(0);
    },
  );

  it('reports rows that fail, and keeps them as rejections', async () => {
    const copy = mkdtempSync(join(folder, 'copy-'));
    cpSync(acmeFolder, copy, { recursive: true });
    const manifest = manifestOf(copy);
    const files = manifest.files.filter(({ type }: { type: string }) => type !== 'keywords');
    const counts = { ...manifest.counts, keywords: 0 };
    writeFileSync(join(copy, 'manifest.json'), JSON.stringify({ ...manifest, files, counts }));
    const expected = counts['shop-keywords'] + 1;
    const { exitCode, stderr } = await run(target, 'import', 'lacking', '--from', copy);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`${expected} of them failed. They are kept as rejections of lacking`);
    const [{ count } = {}] = await queryDatabase<{ count: number }>(
      target,
      `select count(*)::integer as count from rejections join organisations using (organisation_id) where slug = 'lacking'`,
    );
    expect(count).toBe(expected);
  });
});

describe('the command line', () => {
  it.each([
    ['export without a folder', ['export', 'acme'], /organisations export acme --to/],
    ['export without a slug', ['export', '--to', 'x'], /organisations export acme --to/],
    ['export of two', ['export', 'acme', 'other', '--to', 'x'], /organisations export acme --to/],
    ['export from a folder', ['export', 'acme', '--from', 'x'], /'--from'/],
    ['export of nobody', ['export', 'nobody', '--to', join(folder, 'nobody')], /no organisation "nobody"/],
    ['import without a folder', ['import', 'acme'], /organisations import acme --from/],
    ['import with a bad slug', ['import', 'Acme', '--from', acmeFolder], /the slug must be lower-case/],
    ['import from nowhere', ['import', 'acme', '--from', join(folder, 'nowhere')], /has no manifest\.json/],
  ])('refuses %s', async (_what, args, help) => {
    expectRefused(await run(target, ...args), help);
    expect(readdirSync(folder)).not.toContain('nobody');
  });

  it('requires both logins, each with its role', async () => {
    const env = await moveEnvironment(target);
    const { DATABASE_URL, ADMIN_DATABASE_URL } = env as { DATABASE_URL: string; ADMIN_DATABASE_URL: string };
    const args = ['organisations', 'export', 'acme', '--to', join(folder, 'logins')];
    const alone = await runCommand(args, { DATABASE_URL });
    expect(alone).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/ADMIN_DATABASE_URL is missing/),
    });
    expectRefused(
      await runCommand(args, { DATABASE_URL: ADMIN_DATABASE_URL, ADMIN_DATABASE_URL }),
      /the login in DATABASE_URL is not a member of intake_serve/,
    );
    expectRefused(
      await runCommand(args, { DATABASE_URL, ADMIN_DATABASE_URL: DATABASE_URL }),
      /the login in ADMIN_DATABASE_URL is not a member of intake_admin/,
    );
    const wrongPassword = new URL(ADMIN_DATABASE_URL);
    wrongPassword.password = 'wrong';
    expectRefused(
      await runCommand(args, { DATABASE_URL, ADMIN_DATABASE_URL: wrongPassword.href }),
      /refuses the user or the password; check both in ADMIN_DATABASE_URL/,
    );
    const nowhere = new URL(ADMIN_DATABASE_URL);
    nowhere.port = '1';
    expectRefused(
      await runCommand(args, { DATABASE_URL, ADMIN_DATABASE_URL: nowhere.href }),
      /PostgreSQL at [^ ]+:1 .*ADMIN_DATABASE_URL/,
    );
    expect(readdirSync(folder)).not.toContain('logins');
  });
});
