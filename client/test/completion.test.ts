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

/** A script for each shell that prints the possible completions of a command line, one per line. */
const programs: Readonly<Record<string, string>> = {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell expands it.
  bash: 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _intake; for word in "${COMPREPLY[@]}"; do echo "$word"; done',
  // compadd works only during interactive completion, so print its arguments instead.
  zsh: [
    'compdef() { }; compadd() { print -l -- "$@" | grep -- "^$PREFIX"; }; _files() { ls | grep "^$PREFIX"; }',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell expands it.
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

it.each(['bash', 'zsh', 'fish'])('%s completes commands, options, types and files', async (shell) => {
  const installed = await run(shell, ['--version']).catch(() => undefined);
  if (installed === undefined) return console.info(`${shell} is not installed: not tried`);
  const { stdout } = await runIntake({ cwd, env: {} }, 'completion', shell);
  writeFileSync(join(cwd, 'script'), stdout);
  for (const [line, wanted] of lines) {
    // Except in fish, the first argument after the program sets the shell's own name ($0).
    const args = shell === 'fish' ? line : [shell, ...line];
    const offered = await run(shell, ['-c', programs[shell] ?? '', ...args], { cwd });
    const words = offered.stdout
      .trim()
      .split('\n')
      .map((each) => each.split('\t')[0]);
    expect(words, line.join(' ')).toEqual(wanted);
  }
});

it('lists the supported shells', async () => {
  expect((await runIntake({ cwd, env: {} }, 'completion', 'tcsh')).stderr).toBe(
    'Error: Use bash, zsh or fish. See intake completion --help.\n',
  );
});
