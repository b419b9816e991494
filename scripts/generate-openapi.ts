import { readFileSync, writeFileSync } from 'node:fs';
import { describeApi } from '../src/http/openapi.ts';
import { operations } from '../src/http/operations.ts';

/** Writes openapi.json from the registry and the operations; with --check it only says whether it is up to date. */
const file = new URL('../openapi.json', import.meta.url);
const generated = `${JSON.stringify(describeApi(operations), null, 2)}\n`;

if (!process.argv.includes('--check')) writeFileSync(file, generated);
else if (readFileSync(file, 'utf8') !== generated) {
  console.error('openapi.json is not what the registry says; run npm run generate and commit it');
  process.exitCode = 1;
}
