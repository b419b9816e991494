import { defineConfig } from 'vite';

export default defineConfig({
  base: '/console/',
  logLevel: 'warn',
  build: {
    target: ['chrome123', 'firefox128', 'safari17.5'],
    // The content security policy allows no inline styles or scripts; files also compress and cache better.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      onLog(level, log, print) {
        // Says that "use client" has no meaning outside of a server's framework, once for each file.
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') print(level, log);
      },
    },
  },
  server: { proxy: { '/console/api': process.env.INTAKE_URL ?? 'http://127.0.0.1:8080' } },
});
