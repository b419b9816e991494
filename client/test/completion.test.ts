import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runIntake } from './support/run-intake.ts';

const run = promisify(execFile);
let cwd: string;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'intake-completion-'));
  writeFileSync(join(cwd, 'shops.csv'), '');
  writeFileSync(join(cwd, 'my export.csv'), '');
});

afterAll(() => rmSync(cwd, { recursive: true }));

/** Prints what each shell offers for a line, a word to a line. */
const programs: Readonly<Record<string, string>> = {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is for the shell.
  bash: 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _intake; for word in "${COMPREPLY[@]}"; do echo "$word"; done',
  // compadd works only while a line is typed, so what it would be given is printed.
  zsh: [
    'compdef() { }; compadd() { print -l -- "$@" | grep -- "^$PREFIX"; }; _files() { ls | grep "^$PREFIX"; }',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is for the shell.
    '_describe() { print -l -- ${(P)2} | sed "s/:.*//" | grep "^$PREFIX"; }',
    'source ./script; words=("$@"); CURRENT=$#; PREFIX=$words[-1]; _intake',
  ].join('\n'),
  fish: 'source ./script; complete -C (string join " " -- $argv)',
};

const lines: [string[], string[]][] = [
  [['intake', 'comp'], ['completion']],
  [['intake', 'upload', '--dr'], ['--dry-run']],
  [['intake', 'upload', '--type', 'shop-t'], ['shop-tags']],
  [['intake', 'upload', 'sho'], ['shops.csv']],
  [['intake', 'upload', 'my'], ['my export.csv']],
  [['intake', 'export', 'inst'], ['institutes']],
  [['intake', 'export', 'shops', '--format', 'par'], ['parquet']],
  [['intake', 'rejections', 're'], ['replay']],
];

it.each(['bash', 'zsh', 'fish'])(
  '%s completes commands, options, types and files',
  async (shell) => {
    const installed = await run(shell, ['--version']).catch(() => undefined);
    if (installed === undefined) return console.info(`${shell} is not installed: not tried`);
    const { stdout } = await runIntake({ cwd, env: {} }, 'completion', shell);
    writeFileSync(join(cwd, 'script'), stdout);
    for (const [line, wanted] of lines) {
      // The first argument after the program is the name of the shell, but for fish.
      const args = shell === 'fish' ? line : [shell, ...line];
      const offered = await run(shell, ['-c', programs[shell] ?? '', ...args], { cwd });
      const words = offered.stdout
        .trim()
        .split('\n')
        .map((each) => each.split('\t')[0]);
      expect(words, line.join(' ')).toEqual(wanted);
    }
  },
  120_000,
);

it('says which shells there are', async () => {
  expect((await runIntake({ cwd, env: {} }, 'completion', 'tcsh')).stderr).toBe(
    'Error: Say bash, zsh or fish. See intake completion --help.\n',
  );
});
