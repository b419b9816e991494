import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

/**
 * Writes a build's bill of materials. npm marks packages that are used only for building and testing as optional. The
 * API reference and the console use scripts from such packages. A build contains these scripts, so their packages must
 * be listed as required.
 */
interface Component {
  readonly name: string;
  readonly version: string;
  readonly 'bom-ref': string;
  scope: string;
}

interface Bill {
  readonly components: Component[];
  readonly dependencies: { readonly ref: string }[];
}

function billOf(...which: readonly string[]): Bill {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', ...which];
  return JSON.parse(execFileSync('npm', args, { encoding: 'utf8', maxBuffer: 64e6 }));
}

const bill = billOf('--workspaces=false');
for (const component of bill.components)
  if (component.name === '@scalar/fastify-api-reference') component.scope = 'required';

// The console's build writes a list of the packages that it bundles.
const bundled: { readonly name: string; readonly version: string }[] = JSON.parse(
  readFileSync('dist/console/licenses.json', 'utf8'),
);
const inConsole = billOf('--workspace=console');
for (const { name, version } of bundled) {
  const component = inConsole.components.find((one) => one.name === name && one.version === version);
  if (component === undefined)
    throw new Error(`npm does not list ${name}@${version}, which the console contains.`);
  const ref = component['bom-ref'];
  if (bill.components.some((known) => known['bom-ref'] === ref)) continue;
  bill.components.push({ ...component, scope: 'required' });
  bill.dependencies.push(...inConsole.dependencies.filter((one) => one.ref === ref));
}

writeFileSync('dist/bom.cdx.json', `${JSON.stringify(bill, undefined, 2)}\n`);
