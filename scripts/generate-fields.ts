import { inOrderOfReference, sentFields, type UploadType } from '../src/registry/upload-types.ts';
import { writeOrCheck } from './write-or-check.ts';

const opening = `# Record types and their fields

This page is generated from \`src/registry/\` by \`npm run generate\`. Upload the types in this order, because each type refers
only to types above it. Fields marked **required** must have a value. All other fields may be \`null\` or omitted. Fields that are
not listed are ignored with a warning.
`;

function kindOf({ type, format, enum: values, maxLength }: Record<string, unknown>): string {
  if (Array.isArray(values)) return values.filter((value) => value !== null).join(', ');
  const name = format ?? [type].flat().filter((one) => one !== 'null');
  return [name, maxLength && format === undefined ? `up to ${maxLength} characters` : '']
    .flat()
    .filter(Boolean)
    .join(', ');
}

function sectionOf(type: UploadType): string {
  const rows = Object.entries(sentFields(type)).map(([name, { schema, required }]) => {
    const about = [required ? '**required**' : '', String(schema.description ?? '')].filter(Boolean);
    return `| \`${name}\` | ${kindOf(schema)} | ${about.join('; ')} |`;
  });
  return `\n## ${type}\n\n| Field | Value | Meaning |\n|---|---|---|\n${rows.join('\n')}\n`;
}

writeOrCheck(
  'docs/uploading/fields.md',
  opening + inOrderOfReference().map(sectionOf).join(''),
  'the record types in src/registry/ say',
);
