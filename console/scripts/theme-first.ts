import type { Plugin } from 'vite';
import { themeStorageKey } from '../src/frame/theme.ts';

/** This script runs before the first paint. Otherwise, users who chose the dark theme would see a flash of the light one. */
const script = `try {
  const theme = localStorage.getItem('${themeStorageKey}');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {}
`;

/** Adds a script that blocks rendering. Vite only bundles modules, and those run after the first paint. */
export function themeFirst(base: string): Plugin {
  return {
    name: 'theme-first',
    apply: 'build',
    buildStart() {
      this.emitFile({ type: 'asset', name: 'theme.js', source: script });
    },
    transformIndexHtml: {
      order: 'post',
      handler(_html, { bundle = {} }) {
        const file = Object.values(bundle).find(
          (output) => output.type === 'asset' && output.names.includes('theme.js'),
        );
        if (file === undefined) throw new Error('The bundle has no theme.js.');
        return [{ tag: 'script', attrs: { src: `${base}${file.fileName}` }, injectTo: 'head' }];
      },
    },
  };
}
