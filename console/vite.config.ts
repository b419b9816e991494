import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import { operatorPage } from './scripts/operator-page.ts';
import { themeFirst } from './scripts/theme-first.ts';
import { workerLicenses } from './scripts/worker-licenses.ts';

const base = '/console/';
const licenses = 'licenses.json';
const [inWorkers, inPages] = workerLicenses(licenses);
const unzip = './src/screens/upload-file/tables/unzip.ts';

export default defineConfig(({ mode }) => ({
  base,
  plugins: [themeFirst(base), inPages, ...(mode === 'operator' ? [operatorPage(base)] : [])],
  resolve: {
    // Unpack spreadsheets without workers. The reason is in the replacement file.
    alias: [{ find: /^fflate$/, replacement: fileURLToPath(new URL(unzip, import.meta.url)) }],
  },
  worker: { format: 'es', plugins: () => [inWorkers] },
  logLevel: 'warn',
  build: {
    target: ['chrome123', 'firefox128', 'safari17.5'],
    // The content security policy allows no inline styles or scripts. Separate files also compress and cache better.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: licenses },
    rolldownOptions: {
      // The organisation's page is served on the public port, and the operator's page on the admin port.
      input: ['index.html', 'operator.html'].map((page) => fileURLToPath(new URL(page, import.meta.url))),
      output: {
        codeSplitting: {
          groups: [
            // This chunk changes only when a dependency changes, so browsers can cache it across releases.
            { name: 'vendor', test: /node_modules\/(react|react-dom|scheduler|@tanstack)\// },
            // Most screens share this code. Without this rule, it would become two dozen files of a few hundred bytes each.
            { name: 'shared', test: /console\/src\/(api|format|frame|parts)\/|generated\/resources/ },
            { name: 'operator', test: /console\/src\/operator\/(api|parts)\// },
          ],
        },
      },
      onLog(level, log, print) {
        // Suppress the warning that "use client" has no meaning outside a server framework, because it appears once per
        // file.
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') print(level, log);
      },
    },
  },
  server: {
    proxy: {
      '/console/api':
        process.env.INTAKE_URL ?? (mode === 'operator' ? 'http://127.0.0.1:8081' : 'http://127.0.0.1:8080'),
    },
  },
}));
