import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

/**
 * Writes the bill of materials of a build. npm marks what only builds and tests as optional; the script of the API
 * reference comes from such a package, but a build contains it.
 */
const flags = ['--sbom-format', 'cyclonedx', '--package-lock-only', '--workspaces=false'];
const bill = JSON.parse(execFileSync('npm', ['sbom', ...flags], { encoding: 'utf8', maxBuffer: 64e6 }));
for (const component of bill.components)
  if (component.name === '@scalar/fastify-api-reference') component.scope = 'required';
writeFileSync('dist/bom.cdx.json', `${JSON.stringify(bill, undefined, 2)}\n`);
