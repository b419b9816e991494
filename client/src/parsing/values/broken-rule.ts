import type { FieldSchema } from '../../generated/schemas.ts';
import { formats } from './formats.ts';

export type Rule =
  | 'required'
  | 'type'
  | 'minimum'
  | 'maximum'
  | 'exclusiveMinimum'
  | 'minLength'
  | 'maxLength'
  | 'pattern'
  | 'format'
  | 'enum';

/**
 * Returns a function that finds the first rule of a field's schema that a value breaks. This code replaces Ajv, which made
 * up half of the code that the command loaded. Ajv also generates code at run time, which the console's content security
 * policy forbids.
 */
export function ruleFinder(schema: FieldSchema): (value: unknown) => Rule | undefined {
  const types = new Set([schema.type].flat());
  const ofText = types.has('string') ? textRules(schema) : isWrongType;
  const ofNumber = numberRules(schema, types);
  const ofBoolean = types.has('boolean') ? isFine : isWrongType;
  const ofNull = types.has('null') ? isFine : isWrongType;
  const brokenByType = (value: unknown) => {
    if (typeof value === 'string') return ofText(value);
    if (typeof value === 'number') return ofNumber(value);
    if (typeof value === 'boolean') return ofBoolean();
    return value === null ? ofNull() : 'type';
  };
  if (schema.enum === undefined) return brokenByType;
  const choices = new Set<unknown>(schema.enum);
  return (value) => brokenByType(value) ?? (choices.has(value) ? undefined : 'enum');
}

function isWrongType(): Rule {
  return 'type';
}

function isFine(): undefined {}

function numberRules(
  { maximum = Infinity, minimum = -Infinity, exclusiveMinimum = -Infinity }: FieldSchema,
  types: ReadonlySet<string>,
): (value: number) => Rule | undefined {
  if (!types.has('number') && !types.has('integer')) return isWrongType;
  const isNumber = types.has('number') ? Number.isFinite : Number.isInteger;
  return (value) => {
    if (!isNumber(value)) return 'type';
    if (value > maximum) return 'maximum';
    if (value < minimum) return 'minimum';
    return value <= exclusiveMinimum ? 'exclusiveMinimum' : undefined;
  };
}

function textRules({ maxLength = Infinity, minLength = 0, pattern, format }: FieldSchema) {
  const wanted = pattern === undefined ? undefined : new RegExp(pattern, 'u');
  const isFormat = format === undefined ? undefined : formatTest(format);
  return (text: string): Rule | undefined => {
    if (isLonger(text, maxLength)) return 'maxLength';
    if (minLength > 0 && !isLonger(text, minLength - 1)) return 'minLength';
    if (wanted !== undefined && !wanted.test(text)) return 'pattern';
    return isFormat === undefined || isFormat(text) ? undefined : 'format';
  };
}

function formatTest(format: string): (text: string) => boolean {
  if (format === 'uuid') return (text) => formats.uuid.test(text);
  if (format === 'date' || format === 'date-time') return formats[format];
  throw new Error(`The schemas have the format ${format}, which is not checked here.`);
}

/** Returns whether the text is too long. JSON Schema counts code points, some of which take two UTF-16 units. */
function isLonger(text: string, max: number): boolean {
  if (text.length <= max) return false;
  if (text.length > 2 * max) return true;
  let characters = 0;
  for (const _ of text) characters++;
  return characters > max;
}
