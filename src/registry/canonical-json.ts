import { isRecord } from './validate.ts';

/**
 * The same text for the same JSON value, whatever the order of its keys: what two bodies are compared by. How deep a
 * body may be nested is decided before it is parsed.
 */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
  return `{${members.join(',')}}`;
}
