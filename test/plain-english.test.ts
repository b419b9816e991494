import { globSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

const covered = [
  '{src,test,scripts,bench,demo,fuzz,client,client-check,console}/**/*.{ts,tsx,js,py,css}',
  '{deploy,examples,.github}/**/*.{js,sql,yml,yaml,conf,service,toml,sh}',
  '*.{ts,yaml}',
  'migrations/*.sql',
  '{*,docs/**/*,client/*}.md',
];

const uncovered = [
  /\/(generated|node_modules|dist)\//,
  /^test\/(fixtures\/|plain-english\.test\.ts$|deploy\/values-)/,
  // Databases store the checksum of each migration, so existing migrations cannot change.
  /^migrations\/00(0\d|1\d|2[0-3])_/,
];

/** Words that are rare or old-fashioned in technical prose, and what to write instead. */
const avoided: readonly (readonly [words: string, instead: string])[] = [
  ['who(so)?ever', 'the client, the reader, the caller'],
  ['(where|there)(in|by|of)|hitherto|whence|thence', 'in which, by which, so far'],
  ['reckon(s|ed|ing)?', 'estimate, calculate'],
  ['mend(s|ed|ing)?|puts? (it |them )?right', 'fix'],
  ['seldom', 'rarely'],
  ['dear(er|est|ly)?', 'expensive'],
  ['(for )?a while|by and by', 'for a short time, later'],
  ['at the (most|least)', 'at most, at least'],
  ['besides?', 'next to, with, compared with, in addition to'],
  ['(?<!\\bthere )(is|are) (?-i:none)', 'is not, has no'],
  ['(?<!\\bthere )is no (?!longer|more|other|later|less|such|different)', 'is not'],
  ['as (it is|they are) now', 'current'],
  ['go(es|ne|ing)? on|went on', 'continue'],
  ['let(s|ting)? go of', 'delete, release'],
  ['hand(s|ed|ing)? (on|down)', 'pass'],
  ['comes? by', 'get, visit'],
  ['what (lost|won)', 'alternatives considered, what helped'],
];

/** Matches comments, strings and JSX text in code. Names in code may contain any word. */
const proseOfCode =
  /\/\*[\s\S]*?\*\/|(?<![:\\])\/\/.*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|(?<=^\s*)[A-Z“][^<>{}=;()]*$/gm;

const blank = (code: string) => code.replaceAll(/[^\n]/g, ' ');

/** Returns the file with everything except its prose blanked out, so that line numbers stay the same. */
function proseOf(file: string, text: string): string {
  if (!/\.(ts|tsx|js)$/.test(file)) return text;
  let prose = '';
  for (const { index, 0: found } of text.matchAll(proseOfCode))
    prose += blank(text.slice(prose.length, index)) + found.replaceAll(/\$\{[^}]*\}/g, blank);
  return prose;
}

/** Returns every avoided word that occurs, as `file:line: "word", write: …`. */
function complaintsAbout(file: string, text: string): string[] {
  const prose = proseOf(file, text);
  return avoided.flatMap(([words, instead]) =>
    [...prose.matchAll(new RegExp(`(?<![\\w./-])(?:${words})(?![\\w/-])`, 'gi'))].map(
      ({ index, 0: found }) => {
        const line = prose.slice(0, index).split('\n').length;
        return `${file}:${line}: "${found.trim()}", write: ${instead}`;
      },
    ),
  );
}

it('comments, messages, help texts, configuration and documents avoid words that a reader has to decode', () => {
  const files = globSync(covered, { cwd: root, exclude: (name) => name === 'node_modules' }).filter(
    (file) => !uncovered.some((pattern) => pattern.test(file)),
  );
  expect(files.length).toBeGreaterThan(900);
  expect(files.flatMap((file) => complaintsAbout(file, readFileSync(resolve(root, file), 'utf8')))).toEqual(
    [],
  );
});

it('the check finds a word in a comment, a string, SQL and Markdown, and ignores code', () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a template string in the checked code.
  const code = 'const beside = 1; // For whoever reads.\nconst text = `at the most ${beside}`;\n';
  expect(complaintsAbout('a.ts', code)).toEqual([
    'a.ts:1: "whoever", write: the client, the reader, the caller',
    'a.ts:2: "at the most", write: at most, at least',
  ]);
  expect(complaintsAbout('a.sql', '-- There is none.\n-- What was asked for is none.\n')).toEqual([
    'a.sql:2: "is none", write: is not, has no',
  ]);
  expect(complaintsAbout('a.md', 'The service goes on.\n')).toHaveLength(1);
});
