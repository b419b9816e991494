import { adminOperations } from '../src/http/admin/operations.ts';
import { operations } from '../src/http/operations.ts';
import { describeAdminApi } from './description/admin.ts';
import { describeApi } from './description/openapi.ts';
import { writeOrCheck } from './write-or-check.ts';

/** Generates the API descriptions from the registry and the operations. */
const descriptions = {
  'openapi.json': describeApi(operations),
  'admin-openapi.json': describeAdminApi(adminOperations),
};

for (const [name, description] of Object.entries(descriptions))
  writeOrCheck(name, `${linesOf(description)}\n`, 'the registry and the operations say');

/**
 * Formats a value as indented JSON. Each list of words or numbers and each reference takes one line, which halves the number
 * of lines and is easier to read.
 */
function linesOf(value: unknown): string {
  const scalar = String.raw`(?:"(?:[^"\\\n]|\\.)*"|null|[\d.]+)`;
  const list = new RegExp(String.raw`\[\n\s+(${scalar}(?:,\n\s+${scalar})*)\n\s+\]`, 'g');
  return JSON.stringify(value, null, 2)
    .replace(list, (_, items: string) => `[${items.replace(/,\n\s+/g, ', ')}]`)
    .replace(/\{\n\s+("\$ref": "[^"]*")\n\s+\}/g, '{ $1 }');
}
