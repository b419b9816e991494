import apiReference from '@scalar/fastify-api-reference';
import fastify from 'fastify';
import { type EncodedFile, encodeFile } from './encoded-file.ts';

/**
 * Makes the files of the API reference and exits. It is a separate process because loading the package takes a quarter
 * of a second and 60 MB, which a thread would not give back.
 */

export interface ReferenceFiles {
  readonly page: EncodedFile;
  readonly script: EncodedFile;
}

const [pageTitle = '', summary = '', descriptionPath = '', scriptPath = ''] = process.argv.slice(2);
const script = await encodeFile(await askPlugin('/docs/js/scalar.js'));
// The script's address contains its hash, so browsers may cache it forever.
const page = await encodeFile(
  withFirstText(await askPlugin('/docs/', `${scriptPath}?${script.identity.hash}`)),
);
process.send?.({ page, script } satisfies ReferenceFiles, () => process.disconnect());

/**
 * The script takes a second to draw the page, several on a slow machine. Until then the page shows a text. The text
 * stands beside the script's own element: inside it, the script would take the text for a page it has already drawn.
 * `defer` lets the browser show the text first.
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

/** The plugin gives its files only as HTTP answers, so this sends it requests. */
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
      // Readers come for the fields of a record: show all of them expanded, in the registry's order.
      expandAllSchemaProperties: true,
      orderSchemaPropertiesBy: 'preserve',
      orderRequiredPropertiesFirst: false,
      // For the list of errors: a narrower column breaks the codes.
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
