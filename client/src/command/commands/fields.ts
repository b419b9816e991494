import { type UploadType, uploadTypes } from '../../generated/resources.ts';
import { type FieldSchema, schemas } from '../../generated/schemas.ts';
import { rangeOf } from '../../parsing/values/check-record.ts';
import { type Command, UsageError } from '../options/command.ts';
import { asType } from '../options/file-options.ts';
import { printJson, printTable } from '../terminal/terminal.ts';

export const fields: Command = {
  summary: 'list the fields of a type',
  help: `Usage: intake fields <type> [options]

Options:
  --json   prints the fields as JSON

Examples:
  intake fields transactions
  intake fields interactions --json | jq -r '.[] | select(.required).field'`,
  options: { json: { type: 'boolean' } },
  words: uploadTypes,
  async run(values, [name, ...rest]) {
    if (name === undefined || rest.length > 0)
      throw new UsageError('Specify one type. See intake fields --help.');
    const list = fieldsOf(asType(name));
    if (values.json) await printJson(list);
    else
      await printTable(
        ['Field', 'Value', 'Needed', 'Meaning'],
        list.map(({ field, value, required, meaning }) => [field, value, required ? 'yes' : '', meaning]),
      );
    return 0;
  },
};

function fieldsOf(type: UploadType) {
  const { properties, required } = schemas[type];
  return Object.entries(properties).map(([field, schema]) => ({
    field,
    value: kindOf(schema),
    required: required.includes(field),
    meaning: meaningOf(schema),
  }));
}

function kindOf({ type, format, enum: values, maxLength }: FieldSchema): string {
  if (values !== undefined) return values.filter((value) => value !== null).join(', ');
  if (type.includes('integer')) return 'date-time or epoch';
  if (format !== undefined) return format === 'uuid' ? 'UUID' : format;
  if (maxLength !== undefined) return `text, up to ${maxLength} characters`;
  return ['number', 'boolean'].find((name) => type.includes(name)) ?? 'text';
}

function meaningOf(schema: FieldSchema): string {
  const range = schema.type.includes('number') ? rangeOf(schema) : '';
  return [schema.description ?? '', range].filter(Boolean).join('; ');
}
