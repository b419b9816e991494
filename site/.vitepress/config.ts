import { defineConfig } from 'vitepress';
import { sections } from '../sections.ts';

/** Returns a page's URL path, without the file extension. An index page gets its folder's path. */
const addressOf = (path: string) => `/${path.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')}`;

/** Slugs are the same as on the repository host, so links to headings work in both places. */
const slugify = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');

export default defineConfig({
  title: 'Intake',
  description: 'A data ingestion service: every record is validated, committed and answered for.',
  lang: 'en-GB',
  srcDir: 'pages',
  outDir: 'dist',
  cacheDir: 'pages/.cache',
  vite: { publicDir: '../public', build: { chunkSizeWarningLimit: 2_000 } },
  markdown: { anchor: { slugify } },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Uploading', link: '/uploading/', activeMatch: '^/uploading/' },
      { text: 'Operating', link: '/operating/', activeMatch: '^/operating/' },
      { text: 'Architecture', link: '/architecture' },
      { text: 'API reference', link: '/api-reference' },
    ],
    sidebar: sections.map(({ title, pages }) => ({
      text: title,
      items: [
        ...pages.map((page) => ({
          text: page.file === 'README.md' ? 'Overview' : page.title,
          link: addressOf(page.path),
        })),
        ...(title === 'Uploading' ? [{ text: 'API reference', link: '/api-reference' }] : []),
        ...(title === 'Operating' ? [{ text: 'Admin API reference', link: '/admin-api-reference' }] : []),
      ],
    })),
  },
});
