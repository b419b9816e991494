import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/** Migrations may only make changes that the previous version can cope with (see "Migrations" in CONTRIBUTING.md). */

const folder = fileURLToPath(new URL('../migrations', import.meta.url));
/** The last migration in 0.1.0, which was the first release, so no older code is in use. */
const firstRelease = 8;

/** Changes that break older code, as far as a statement's text shows them. */
const contractions: readonly [RegExp, string][] = [
  [/\bdrop\s+(?!default|not\s+null|index|if|constraint\s+\w+_fkey)\w+/, 'drops something'],
  [/\bdrop\s+if\b/, 'drops something'],
  [/\brename\b/, 'renames something'],
  [/\balter\s+(column\s+)?\w+\s+(set\s+data\s+)?type\b/, 'changes the type of a column'],
  [/\bset\s+not\s+null\b/, 'forbids null'],
  [/\bdrop\s+default\b/, 'takes a default away'],
  [
    /\badd\s+(column\s+)?(if\s+not\s+exists\s+)?(?!constraint)[^,;]*\bnot\s+null\b(?![^,;]*\bdefault\b)(?<!\bdefault\b[^,;]*)/,
    'adds a column that older code does not fill',
  ],
  [/\badd\s+(constraint|check|unique|primary|foreign|exclude)\b/, 'adds a constraint'],
  [/\bcreate\s+unique\s+index\b/, 'adds a constraint'],
  [/\brevoke\b(?!\s+\w+\s+on\s+function\b[^;]*\bfrom\s+public\b)/, 'takes a right away'],
  [/\b(truncate|delete\s+from)\b/, 'removes rows'],
];

/** Returns only the top-level statements, without function bodies. */
function statementsOf(sql: string): string {
  return sql
    .replace(/(\$\w*\$).*?\1/gs, '')
    .replace(/--.*$/gm, '')
    .replace(/'(?:[^']|'')*'/g, "''")
    .toLowerCase();
}

const raised = (statements: string) =>
  Number(/update\s+schema_compatibility\s+set\s+oldest_code\s*=\s*(\d+)/.exec(statements)?.[1] ?? Number.NaN);

function problemsOf(number: number, sql: string): string[] {
  const statements = statementsOf(sql);
  const oldestCode = raised(statements);
  if (oldestCode >= number) return ['shuts out the version before: oldest_code must be below its own number'];
  const altersTable = /\balter\s+table\b/.test(statements);
  const waits = altersTable && !/\bset\s+local\s+lock_timeout\b/.test(statements);
  const tables = new Set(
    [...statements.matchAll(/\balter\s+table\s+(?:only\s+)?(\w+)/g)].map(([, name]) => name),
  );
  return [
    ...(Number.isNaN(oldestCode)
      ? contractions.flatMap(([pattern, says]) =>
          pattern.test(statements) ? [`${says} without raising oldest_code`] : [],
        )
      : []),
    ...(waits ? ['alters a table without a lock_timeout'] : []),
    ...(tables.size > 1 ? ['alters several tables in one transaction, which can deadlock with uploads'] : []),
  ];
}

const files = readdirSync(folder).toSorted();

it('numbers its files without a gap', () => {
  expect(files.map((file) => Number.parseInt(file, 10))).toEqual(files.map((_, index) => index + 1));
});

const later = files.filter((file) => Number.parseInt(file, 10) > firstRelease);
it.runIf(later.length > 0).each(later)('%s keeps the previous version working', (file) => {
  expect(problemsOf(Number.parseInt(file, 10), readFileSync(join(folder, file), 'utf8'))).toEqual([]);
});

describe('the rules', () => {
  const timeout = "set local lock_timeout = '3s';\n";

  it.each([
    'alter table tags drop column name;',
    'alter table tags rename column name to title;',
    'alter table tags alter column name type varchar(10);',
    'alter table tags alter name set data type varchar(10);',
    'alter table tags alter column name set not null;',
    'alter table tags alter column name drop default;',
    'alter table tags add column colour text not null;',
    'alter table tags add column a text, add column b text not null;',
    'alter table tags drop constraint tags_pkey;',
    'alter table tags add constraint short check (length(name) < 10);',
    'create unique index tags_name on tags (organisation_id, name);',
    'drop function find_api_key;',
    'drop table if exists leases;',
    'revoke select on tags from intake_serve;',
    'delete from tags;',
  ])('%s must raise oldest_code', (sql) => {
    expect(problemsOf(20, timeout + sql)).toEqual([expect.stringMatching(/ without raising oldest_code$/)]);
    const raising = 'update schema_compatibility set oldest_code = 19;';
    expect(problemsOf(20, timeout + sql + raising)).toEqual([]);
  });

  it.each([
    'alter table tags add column colour text;',
    "alter table tags add column colour text not null default 'none';",
    "alter table tags add column colour text default 'none' not null;",
    'alter table tags alter column name drop not null;',
    'alter table tags drop constraint tags_shop_id_fkey;',
    'create table colours (organisation_id uuid not null, primary key (organisation_id));',
    'create index tags_name on tags (organisation_id, name); drop index tags_other;',
    'create function f() returns void language plpgsql as $$ begin drop table x; end $$;',
    'revoke execute on function f from public;',
    '-- once this was: drop table tags',
  ])('%s is allowed', (sql) => {
    expect(problemsOf(20, timeout + sql)).toEqual([]);
  });

  it('the previous version is never locked out', () => {
    expect(problemsOf(20, 'update schema_compatibility set oldest_code = 20;')).toHaveLength(1);
  });

  it('every wait for a table has a limit, and no two tables are locked at once', () => {
    expect(problemsOf(20, 'alter table tags add column colour text;')).toHaveLength(1);
    const two = 'alter table tags add column a text; alter table shops add column a text;';
    expect(problemsOf(20, timeout + two)).toHaveLength(1);
  });
});
