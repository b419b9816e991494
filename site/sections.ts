import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The repository's root. The repository's Markdown files are the site's pages. */
export const root = fileURLToPath(new URL('..', import.meta.url));

export interface Page {
  /** The page's path in the repository. */
  readonly file: string;
  /** The page's path in the site. */
  readonly path: string;
  readonly title: string;
}

/**
 * The files for each audience, in the order of the sidebar. A pattern matches only files that no earlier pattern has
 * matched.
 */
const patterns: Readonly<Record<string, readonly string[]>> = {
  Start: ['README.md', 'docs/getting-started.md'],
  Uploading: [
    ...['index', 'errors', 'library', 'client', 'interactions', 'feed'].map(
      (name) => `docs/uploading/${name}.md`,
    ),
    'docs/uploading/*.md',
    'docs/api-behaviour.md',
  ],
  Operating: [
    ...['index', 'setup', 'organisations', 'day-two', 'runbook', 'scaling'].map(
      (name) => `docs/operating/${name}.md`,
    ),
    'docs/operating/*.md',
    'SECURITY.md',
    'docs/{analytics,lake}.md',
    'docs/analytics-views.md',
  ],
  Maintaining: [
    'ARCHITECTURE.md',
    'CONTRIBUTING.md',
    'docs/design/index.md',
    'docs/design/*.md',
    'docs/*.md',
    'CHANGELOG.md',
  ],
};

function pathOf(file: string): string {
  return file === 'README.md'
    ? 'index.md'
    : file.startsWith('docs/')
      ? file.slice('docs/'.length)
      : file.toLowerCase();
}

function titleOf(file: string): string {
  return /^# (.*)$/m.exec(readFileSync(root + file, 'utf8'))?.[1]?.replaceAll('`', '') ?? file;
}

function readSections(): { readonly title: string; readonly pages: readonly Page[] }[] {
  const seen = new Set<string>();
  return Object.entries(patterns).map(([title, ofSection]) => {
    const files = ofSection.flatMap((pattern) => globSync(pattern, { cwd: root }).toSorted());
    const pages = [...new Set(files)].filter((file) => !seen.has(file));
    for (const file of pages) seen.add(file);
    return { title, pages: pages.map((file) => ({ file, path: pathOf(file), title: titleOf(file) })) };
  });
}

export const sections = readSections();
