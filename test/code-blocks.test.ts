import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

/**
 * A test runs every code block in a guide, or compares it with the test's output. Any other block is marked as not run
 * in an HTML comment on the line before it: `<!-- not run: reason -->`.
 */

const root = fileURLToPath(new URL('..', import.meta.url));
const guides = [
  'README.md',
  'CONTRIBUTING.md',
  'ARCHITECTURE.md',
  'SECURITY.md',
  'client/README.md',
  'docs/**/*.md',
];

/** The tests that run a page's code blocks. On a page with `<!-- snippet: name -->`, tests look up blocks by name. */
const testsOf: Readonly<Record<string, readonly string[]>> = {
  'README.md': ['test/integration/readme.test.ts'],
  'client/README.md': ['client/test/uploading.test.ts'],
  'docs/adding-a-capability.md': ['test/integration/following-the-guides.test.ts'],
  'docs/adding-a-record-type.md': ['test/integration/following-the-guides.test.ts'],
  'docs/analytics.md': [
    'test/integration/analytics-questions.test.ts',
    'test/fault/analysts-on-standby.test.ts',
  ],
  'docs/getting-started.md': ['test/integration/readme.test.ts'],
  'docs/operating/day-two.md': ['test/integration/operating.test.ts'],
  'docs/operating/organisations.md': ['test/integration/operating.test.ts'],
  'docs/operating/runbook.md': ['test/integration/operating.test.ts'],
  'docs/operating/scaling.md': ['test/support/standby.ts'],
  'docs/operating/setup.md': ['test/integration/operating.test.ts', 'test/support/pgbouncer.ts'],
  'docs/uploading/feed.md': ['test/acceptance/changes-document.test.ts'],
  'docs/uploading/index.md': ['client/test/uploading.test.ts', 'client/test/package.test.ts'],
  'docs/uploading/interactions.md': ['client/test/recipes.test.ts'],
  'docs/uploading/library.md': ['client/test/uploading.test.ts', 'client/test/recipes.test.ts'],
  'docs/uploading/privacy.md': ['client/test/erase-command.test.ts'],
  'docs/uploading/recommendations.md': ['test/integration/readme.test.ts'],
};

interface Block {
  readonly page: string;
  /** The line number of the block's first line, counting from 1. */
  readonly line: number;
  readonly kind: string;
  /** The previous line, if it is a comment: `not run: …` or `snippet: …`. */
  readonly mark: string;
}

function blocksOf(page: string): Block[] {
  const lines = read(page).split('\n');
  const blocks: Block[] = [];
  let isOpen = false;
  for (const [at, line] of lines.entries()) {
    const fence = /^ *```(\w*)/.exec(line);
    if (!fence) continue;
    const [, mark = ''] = /^ *<!-- (.*) -->$/.exec(lines[at - 1] ?? '') ?? [];
    if (!isOpen) blocks.push({ page, line: at + 1, kind: fence[1] ?? '', mark });
    isOpen = !isOpen;
  }
  return blocks;
}

const read = (file: string) => readFileSync(`${root}${file}`, 'utf8');
const pages = globSync(guides, { cwd: root }).toSorted();
const blocks = pages.flatMap(blocksOf);
/** Returns whether a block is marked as not run. Mermaid drawings are not code, so they need no mark. */
const isMarked = ({ kind, mark }: Block) => kind === 'mermaid' || /^not run: \S+ \S/.test(mark);

function isRun({ page, mark }: Block): boolean {
  const tests = testsOf[page] ?? [];
  const [, snippet] = /^snippet: (\S+)$/.exec(mark) ?? [];
  if (snippet) return tests.some((test) => new RegExp(`\\b${snippet}\\b`).test(read(test)));
  return tests.length > 0 && !read(page).includes('<!-- snippet: ');
}

describe('code blocks of the guides', () => {
  it('each is run by a test, or says why not', () => {
    expect(blocks.length).toBeGreaterThan(100);
    const others = blocks.filter((block) => !isMarked(block) && !isRun(block));
    expect(others.map(({ page, line, kind }) => `${page}:${line} ${kind}`)).toEqual([]);
  });

  it('the tests that run them read the page', () => {
    const wrong = Object.entries(testsOf).flatMap(([page, tests]) =>
      tests
        .filter((test) => !existsSync(`${root}${test}`) || !read(test).includes(page))
        .map((test) => [page, test]),
    );
    expect(wrong).toEqual([]);
    const needless = Object.keys(testsOf).filter(
      (page) => !blocks.some((block) => block.page === page && isRun(block)),
    );
    expect(needless).toEqual([]);
  });
});
