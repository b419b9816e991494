import { RequestError } from '../errors.ts';
import { limits } from '../limits.ts';
import { isRecord } from './validate.ts';

/** The same text for the same JSON value, whatever the order of its keys: what two bodies are compared by. */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > limits.idempotentBodyDepthMax) throw new RequestError('nested_too_deeply');
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item, depth + 1)).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key], depth + 1)}`);
  return `{${members.join(',')}}`;
}
