import apiReference from '@scalar/fastify-api-reference';
import fastify from 'fastify';
import { type EncodedFile, encodeFile } from './encoded-file.ts';

/**
 * Makes the files of the API reference and ends. A process of its own, for loading the package takes a quarter of a second
 * and 60 MB, which a thread would leave behind.
 */

export interface ReferenceFiles {
  readonly page: EncodedFile;
  readonly script: EncodedFile;
}

const [pageTitle = '', summary = '', descriptionPath = '', scriptPath = ''] = process.argv.slice(2);
const script = await encodeFile(await askPlugin('/docs/js/scalar.js'));
// The script's address carries its hash, so a browser may keep it for good.
const page = await encodeFile(
  withFirstText(await askPlugin('/docs/', `${scriptPath}?${script.identity.hash}`)),
);
process.send?.({ page, script } satisfies ReferenceFiles, () => process.disconnect());

/**
 * The script takes a second to draw the page, and several on a slow machine. Until then there is a text to read, beside the
 * page's own element: within it, the script would take the text for a page that it has drawn before. Deferred, the script
 * lets the browser show the text first.
 */
function withFirstText(page: Buffer): Buffer {
  const app = '<div id="app"></div>';
  const text = `<main id="first-text" style="font-family: sans-serif; padding: 3rem"><h1>${pageTitle}</h1><p>${summary}</p></main>`;
  const changes = [
    [app, `${text}\n    ${app}`],
    ['<script src=', '<script defer src='],
    ['<script type="text/javascript">', '<script type="module">'],
    [
      '    </script>\n  </body>',
      "      document.getElementById('first-text').remove()\n    </script>\n  </body>",
    ],
  ] as const;
  let changed = page.toString();
  for (const [from, to] of changes) {
    if (!changed.includes(from)) throw new Error(`the page of the reference plugin has no ${from}`);
    changed = changed.replace(from, () => to);
  }
  return Buffer.from(changed);
}

/** The plugin has its files only as answers: it is asked as a client would. */
async function askPlugin(path: string, cdn?: string): Promise<Buffer> {
  const app = fastify();
  await app.register(apiReference, {
    routePrefix: '/docs',
    configuration: {
      url: descriptionPath,
      pageTitle,
      ...(cdn !== undefined && { cdn }),
      withDefaultFonts: false,
      hideClientButton: true,
      showDeveloperTools: 'never',
      defaultOpenAllTags: true,
      // The fields of a record are what people come for: all of them open, in the order of the registry.
      expandAllSchemaProperties: true,
      orderSchemaPropertiesBy: 'preserve',
      orderRequiredPropertiesFirst: false,
      // The list of errors: a narrower column breaks the codes.
      customCss: '.markdown :is(th, td):first-child { min-width: 11.5rem }',
      telemetry: false,
      agent: { disabled: true },
      mcp: { disabled: true },
    },
  });
  const { statusCode, rawPayload } = await app.inject(path);
  if (statusCode !== 200) throw new Error(`the reference plugin answers ${path} with ${statusCode}`);
  return rawPayload;
}
