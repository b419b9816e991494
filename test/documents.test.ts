import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { help } from '../src/cli/arguments/help.ts';
import { connectionsOf } from '../src/cli/serve.ts';
import { limits } from '../src/limits.ts';
import { settings } from '../src/settings.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

it('the README has at most 150 lines', () => {
  expect(readFileSync(join(root, 'README.md'), 'utf8').split('\n').length).toBeLessThanOrEqual(151);
});

/** Returns the names in the first column of the page's tables. */
function settingsIn(text: string): string[] {
  return [...text.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(([, names = '']) =>
    [...names.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name),
  );
}

it('the settings in help settings are those in docs/operating/settings.md', () => {
  const listed = settingsIn(readFileSync(join(root, 'docs/operating/settings.md'), 'utf8'));
  const known = ((help('settings') ?? '').match(/^ {2}[A-Z][A-Z_]+ {2}/gm) ?? []).map((line) => line.trim());
  expect(listed.length).toBeGreaterThan(20);
  expect(known).toEqual(listed);
});

it('the documents state how many connections a process opens', () => {
  const connections = connectionsOf({ databaseConnectionsMax: settings.databaseConnectionsMax[1].fallback });
  const most = Object.values(connections).reduce((sum, count) => sum + count);
  expect(readFileSync(join(root, 'docs/operating/day-two.md'), 'utf8')).toContain(
    `a process needs up to ${most} connections, or ${most + limits.adminConnectionsMax + 1} with the admin API`,
  );
  expect(readFileSync(join(root, 'docs/operating/setup.md'), 'utf8')).toContain(JSON.stringify(connections));
});

it('the links from one document to another lead somewhere', () => {
  const documents = globSync('{*.md,docs/**/*.md,client/README.md}', { cwd: root });
  const anchorsOf = (document: string) =>
    [...readFileSync(join(root, document), 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    );
  const broken = documents.flatMap((document) =>
    [...readFileSync(join(root, document), 'utf8').matchAll(/\]\((?!https?:)([^)#]*)#?([^)]*)\)/g)].flatMap(
      ([link, file = '', anchor = '']) => {
        const target = file === '' ? document : join(dirname(document), file);
        const isThere =
          existsSync(join(root, target)) && (anchor === '' || anchorsOf(target).includes(anchor));
        return isThere ? [] : [`${document}: ${link}`];
      },
    ),
  );
  expect(broken).toEqual([]);
});
