import { readFileSync, writeFileSync } from 'node:fs';
import { describeAdminApi } from '../src/http/admin/description.ts';
import { adminOperations } from '../src/http/admin/operations.ts';
import { describeApi } from '../src/http/openapi.ts';
import { operations } from '../src/http/operations.ts';

/** Writes the API descriptions from the registry and the operations; with --check it only says if they are up to date. */
const descriptions = {
  'openapi.json': describeApi(operations),
  'admin-openapi.json': describeAdminApi(adminOperations),
};

for (const [name, description] of Object.entries(descriptions)) {
  const file = new URL(`../${name}`, import.meta.url);
  const generated = `${JSON.stringify(description, null, 2)}\n`;
  if (!process.argv.includes('--check')) writeFileSync(file, generated);
  else if (readFileSync(file, 'utf8') !== generated) {
    console.error(
      `${name} is not what the registry and the operations say; run npm run generate and commit it`,
    );
    process.exitCode = 1;
  }
}
