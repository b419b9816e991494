import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import apiReference from '@scalar/fastify-api-reference';
import fastify from 'fastify';
import { adminOperations } from '../src/http/admin/operations.ts';
import { operations } from '../src/http/operations.ts';
import { commitOfBuild } from './build-commit.ts';
import { describeAdminApi } from './description/admin.ts';
import { describeApi } from './description/openapi.ts';

/** Writes the API reference's files in every encoding, so that the service can serve them unchanged. */

const folder = fileURLToPath(new URL('../dist/reference/', import.meta.url));
mkdirSync(folder, { recursive: true });

const script = await scriptOfPlugin();
write('scalar.js', script);
copyFileSync(
  fileURLToPath(new URL('../LICENSE', import.meta.resolve('@scalar/fastify-api-reference'))),
  `${folder}scalar.LICENSE`,
);
const descriptions = { public: describeApi(operations), admin: describeAdminApi(adminOperations) };
const commit = commitOfBuild();
for (const [api, description] of Object.entries(descriptions)) {
  const info = description.info as { title: string; summary: string; version: string };
  const { title, summary } = info;
  if (commit) info.version += `+${commit}`;
  write(`${api}.json`, Buffer.from(JSON.stringify(description)));
  write(`${api}.html`, Buffer.from(pageOf(`${title} API reference`, summary)));
}

/**
 * Writes a file in every encoding, unless it is up to date. Compressing the script each time would add 0.7 s to every
 * start of `npm run dev`. Brotli's default quality, 11, would take 9 s for the script and save another 12 %.
 */
function write(name: string, content: Buffer): void {
  if (existsSync(folder + name) && readFileSync(folder + name).equals(content)) return;
  writeFileSync(`${folder}${name}.gz`, gzipSync(content));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 6 };
  writeFileSync(`${folder}${name}.br`, brotliCompressSync(content, { params }));
  // Write this file last, so that an interrupted build is repeated.
  writeFileSync(folder + name, content);
}

/** Returns the package's script. The package contains it as a string, but exposes it only as an HTTP response. */
async function scriptOfPlugin(): Promise<Buffer> {
  const app = fastify();
  await app.register(apiReference, { routePrefix: '/docs', configuration: { content: {} } });
  const { statusCode, rawPayload } = await app.inject('/docs/js/scalar.js');
  if (statusCode !== 200) throw new Error(`the reference plugin answers ${statusCode}`);
  return rawPayload;
}

/**
 * Returns the page's HTML. The script takes a second to draw the page, or several on a slow machine, and the page shows some
 * text until then. The text is outside the script's own element, because the script would treat text inside it as a page
 * that is already drawn. `defer` lets the browser show the text first. The script's URL contains its hash, so browsers may
 * cache it forever.
 */
function pageOf(title: string, summary: string): string {
  const configuration = {
    url: '/openapi.json',
    withDefaultFonts: false,
    hideClientButton: true,
    showDeveloperTools: 'never',
    defaultOpenAllTags: true,
    // Readers look for a record's fields, so all fields are shown expanded, in the registry's order.
    expandAllSchemaProperties: true,
    orderSchemaPropertiesBy: 'preserve',
    orderRequiredPropertiesFirst: false,
    // Keeps each error code in the list of errors on one line. A narrower column would break the codes.
    customCss: '.markdown :is(th, td):first-child { min-width: 11.5rem }',
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
  };
  const hash = createHash('sha256').update(script).digest('base64url').slice(0, 22);
  return `<!doctype html>
<html lang="en">
  <head>
    <title>${title}</title>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
  </head>
  <body>
    <main id="first-text" style="font-family: sans-serif; padding: 3rem"><h1>${title}</h1><p>${summary}</p></main>
    <div id="app"></div>
    <script defer src="/docs/scalar.js?${hash}"></script>
    <script type="module">
      Scalar.createApiReference('#app', ${JSON.stringify(configuration)})
      document.getElementById('first-text').remove()
    </script>
  </body>
</html>
`;
}
