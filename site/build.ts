import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vitepress';
import { type Page, root, sections } from './sections.ts';

/**
 * Builds the site into site/dist. It copies the repository's Markdown files to site/pages, adapts their links, and runs
 * VitePress, which fails on a dead link. Each page is also published as Markdown, and llms.txt lists all pages.
 */

const here = fileURLToPath(new URL('./', import.meta.url));
const pages = sections.flatMap((section) => section.pages);
const pathOf = new Map(pages.map(({ file, path }) => [file, path]));

function put(file: string, text: string): void {
  mkdirSync(dirname(here + file), { recursive: true });
  writeFileSync(here + file, text);
}

function copy(source: string, file: string): void {
  mkdirSync(dirname(here + file), { recursive: true });
  copyFileSync(root + source, here + file);
}

/** Returns the path within the site to which a link on a repository page leads, or undefined if it leads to a folder. */
function targetOf(page: Page, link: string): string | undefined {
  const source = posix.join(posix.dirname(page.file), link);
  const fromHere = (path: string) => posix.relative(posix.dirname(page.path), path);
  const path = pathOf.get(source);
  if (path) return fromHere(path);
  // VitePress will report the dead link.
  if (!existsSync(root + source)) return link;
  if (statSync(root + source).isDirectory()) return undefined;
  if (/\.(png|svg)$/.test(source)) {
    const picture = source.replace(/^docs\//, '');
    for (const folder of ['pages', 'public']) copy(source, `${folder}/${picture}`);
    return fromHere(picture);
  }
  const published = `files/${source}${source.endsWith('.json') ? '' : '.txt'}`;
  copy(source, `public/${published}`);
  return `/${published}`;
}

/** Returns a page's text with its links adapted to the site. Code stays unchanged. */
function textOf(page: Page): string {
  const parts = readFileSync(root + page.file, 'utf8').split(/(^ *```.*?^ *```$)/gms);
  return parts
    .map((part, at) =>
      at % 2 === 1
        ? part
        : part.replaceAll(
            /(!?)\[((?:[^\]\\]|\\.)*)\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)/g,
            (_, mark: string, label: string, link: string, anchor = '') => {
              const target = targetOf(page, link);
              return target === undefined ? label : `${mark}[${label}](${target}${anchor})`;
            },
          ),
    )
    .join('');
}

/**
 * Returns the text for the HTML page. Diagrams stay text, because drawing them would need a browser or another 60 MB of
 * packages. The page with the wide table gets more room.
 */
function textForPeople({ file }: Page, text: string): string {
  const front = file === 'README.md' ? '---\naside: false\n---\n\n' : '';
  return front + text.replaceAll(/^```mermaid\n.*?^```$/gms, '::: details Diagram, as text\n$&\n:::');
}

/** Returns the first sentence below the title. */
function summaryOf(text: string): string {
  const [, paragraph = ''] = /^# .*\n+((?:(?!```)[^\n#|!<-].*\n)+)/m.exec(text) ?? [];
  const plain = paragraph.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/\s+/g, ' ');
  return /^.*?[.:](?= |$)/.exec(plain)?.[0].replace(/:$/, '.') ?? '';
}

function listForModels(): string {
  const ofSections = sections.map(({ title, pages: ofSection }) => {
    const lines = ofSection.map((page) => {
      const summary = summaryOf(textOf(page));
      return `- [${page.title}](/${page.path})${summary && `: ${summary}`}\n`;
    });
    return `## ${title}\n\n${lines.join('')}`;
  });
  const api =
    '## API\n\n- [OpenAPI description](/reference/openapi.json)\n- [Admin API](/reference/admin-openapi.json)\n';
  return `# Intake\n\n> A data ingestion service: every record is validated, committed and answered for.\n\n${[...ofSections, api].join('\n')}`;
}

/** Copies the service's API reference, with adapted URLs. */
function putReference(): void {
  const folder = `${root}dist/reference/`;
  copy('dist/reference/scalar.js', 'public/reference/scalar.js');
  for (const [api, description] of [
    ['public', 'openapi.json'],
    ['admin', 'admin-openapi.json'],
  ]) {
    copy(`dist/reference/${api}.json`, `public/reference/${description}`);
    const page = readFileSync(`${folder}${api}.html`, 'utf8')
      .replace('"/openapi.json"', `"${description}"`)
      .replace(/"\/[\w/]*scalar\.js/, '"scalar.js');
    put(`public/reference/${api}.html`, page);
  }
}

for (const folder of ['pages', 'public', 'dist']) rmSync(here + folder, { recursive: true, force: true });
for (const page of pages) {
  const text = textOf(page);
  put(`public/${page.path}`, text);
  put(`pages/${page.path}`, textForPeople(page, text));
}
for (const name of ['api-reference', 'admin-api-reference']) copy(`site/${name}.md`, `pages/${name}.md`);
put('public/llms.txt', listForModels());
putReference();
await build(here);
