import { describe, expect, it } from 'vitest';
import { run as keys } from '../keys.ts';
import { run as organisations } from '../organisations.ts';
import { help, refuseArguments, unknownCommand } from './help.ts';

/** Input that is refused without a query. `test/acceptance/command-line.test.ts` runs the program itself. */

async function expectRefused(refused: Promise<void>, help: RegExp) {
  const error = await refused.then(
    () => undefined,
    (thrown) => thrown,
  );
  expect(error).toMatchObject({ code: expect.stringMatching(/^INTAKE_COMMAND$|^ERR_PARSE_ARGS/) });
  expect(error.message).toMatch(help);
  expect(error.message).not.toContain('\n');
}

it.each([[], ['Acme'], ['-acme'], ['a'.repeat(64)], ['one', 'two']])(
  'refuses to create an organisation with %j',
  async (...slugs) => {
    await expectRefused(organisations(['create', '--', ...slugs]), /slug/);
  },
);

it.each([
  [[], /create, list/],
  [['remove', 'acme'], /create, list/],
  [['list', '--colour'], /colour/],
  [['set-report'], /set-report acme on/],
  [['set-report', 'acme'], /set-report acme on/],
  [['set-report', 'acme', 'yes'], /set-report acme on/],
  [['set-report', 'acme', 'on', 'off'], /set-report acme on/],
  [['set-lake', 'acme'], /set-lake acme on/],
  [['set-lake', 'acme', 'yes'], /set-lake acme on/],
] as [string[], RegExp][])('organisations %j explains its arguments', async (args, help) => {
  await expectRefused(organisations(args), help);
});

const issue = ['issue', '--organisation', 'acme'];

it.each([
  ['no organisation', ['issue'], /--organisation/],
  ['no origin', [...issue, '--browser'], /--origin https:/],
  ['an origin alone', [...issue, '--origin', 'https://shop.example'], /--browser --origin/],
  [
    'an address instead of an origin',
    [...issue, '--browser', '--origin', 'https://shop.example/'],
    /--origin .*no slash at the end/,
  ],
  [
    'a browser key with permissions',
    [...issue, '--browser', '--origin', 'https://a.example', '--scope', 'data:read'],
    /--scope/,
  ],
  [
    'an unknown scope',
    [...issue, '--scope', 'data:raed'],
    /--scope must be one of data:read, .*data:write, .*data:write:<type>, not "data:raed"/,
  ],
  [
    'a scope of an unknown type',
    [...issue, '--scope', 'data:write:shop'],
    /one of the types shops, .*student-favourites.*, not "data:write:shop"/,
  ],
  ['a scope of nothing', [...issue, '--scope', 'data:write:'], /data:write:<type>/],
  ['an empty scope', [...issue, '--scope', ''], /--scope must be one of/],
  ['no key', ['revoke'], /key-id/],
  ['two keys', ['revoke', 'a', 'b'], /one key/],
  ['an unknown flag', ['issue', '--organization', 'acme'], /organization/],
  ['no action', [], /issue, list, rotate or revoke/],
  ['an unknown action', ['forget'], /issue, list, rotate or revoke/],
])('refuses to issue a key with %s', async (_what, args, help) => {
  await expectRefused(keys(args), help);
});

it.each([
  ['serve', '--port', /takes no arguments.*: PORT=\.\.\. intake-server serve$/],
  ['serve', '--database-url=postgres://a:hush@b/c', /: DATABASE_URL=\.\.\. intake-server serve$/],
  ['serve', '--colour', /takes no arguments.*intake-server help settings lists them$/],
  ['migrate', '--log-level', /: LOG_LEVEL=\.\.\. intake-server migrate$/],
])('%s %s names the setting to use instead, and repeats no value', (command, flag, help) => {
  const refuse = () => refuseArguments(command, [flag, '9000']);
  expect(refuse).toThrow(help);
  expect(refuse).not.toThrow(/hush|9000/);
});

describe('help', () => {
  const commands = help('--all')
    ?.match(/^ {2}[a-z-]+ {2}/gm)
    ?.map((name) => name.trim()) as string[];

  it('lists every command on one screen, and only the required setting', () => {
    const text = help() ?? '';
    expect(commands.length).toBeGreaterThan(9);
    expect(text.split('\n').length).toBeLessThanOrEqual(24);
    expect(text.match(/\b[A-Z]+_[A-Z_]+\b/g)).toEqual(['DATABASE_URL']);
  });

  it('lists the commands for a cluster only with --all', () => {
    expect(help()).not.toMatch(/^ {2}(distribute|cluster) /m);
    expect(commands).toEqual(expect.arrayContaining(['distribute', 'cluster', 'serve']));
  });

  it.each(commands)('for %s shows how to call it', (command) => {
    expect(help(command)).toContain(`intake-server ${command}`);
  });

  it('for settings lists them', () => {
    expect(help('settings')).toMatch(/^ {2}DATABASE_URL .*\n(.*\n)* {2}LOG_LEVEL /m);
  });

  it('suggests the command that was probably meant', () => {
    expect(help('organisation')).toBe(undefined);
    expect(unknownCommand('organisation').message).toMatch(/Did you mean organisations\?/);
    expect(help('__proto__')).toBe(undefined);
    expect(unknownCommand('__proto__').message).toMatch(/"__proto__"\. intake-server --help/);
  });
});
