import { limits } from '../limits.ts';
import { isUuid, readUuid } from '../registry/fields.ts';
import { personalFields, type UploadType } from '../registry/upload-types.ts';

export const uuidPattern = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;

export function uuidsIn(text: string): string[] {
  return [...text.matchAll(uuidPattern)].map(([id]) => id.toLowerCase());
}

/** `record` is the JSON as it was sent, or null if that was not kept. */
export interface FailedRecord {
  readonly type: UploadType;
  readonly record_id: string | null;
  readonly record: string | null;
}

export function idsInFailed({ type, record_id, record }: FailedRecord): string[] {
  if (personalFields(type).identifying.length === 0) return [];
  return [...(record_id === null ? [] : [record_id]), ...(record === null ? [] : idsInText(type, record))];
}

/** All UUIDs, and all values of identifying fields, because the record may have failed for the form of an id. */
function idsInText(type: UploadType, text: string): string[] {
  const { identifying } = personalFields(type);
  if (identifying.length === 0) return [];
  const record = objectIn(text);
  const repeated = [...text.matchAll(membersNamed(identifying))].map(([, , value = '']) => idOf(value));
  const values = identifying.flatMap((field) => scalarsIn(record?.[field]));
  return [...new Set([...uuidsIn(text), ...repeated, ...values.map(inOneSpelling)])].filter(canBeId);
}

/**
 * Returns the same object if it contains none of these ids, and undefined if the record must go. A record of somebody
 * else is kept with null in place of the ids that it mentions.
 */
export function withoutErased<T extends FailedRecord>(
  failed: T,
  erased: { has(id: string): boolean },
): T | undefined {
  const isErased = (id: string) => erased.has(id);
  if (!idsInFailed(failed).some(isErased)) return failed;
  const { type, record } = failed;
  const object = record === null ? undefined : objectIn(record);
  if (record === null || !object) return undefined;
  const { owners, alone } = personalFields(type);
  // An invalid id names nobody.
  const isOfSomebody = owners.some((field) => isUuid(object[field]));
  if (alone.length === 0 || !isOfSomebody) return undefined;
  // The text is changed in place. Parsing and serialising would drop repeated fields, for which the record failed.
  const left = record.replaceAll(membersNamed(alone), (member, name: string, value: string) =>
    isErased(idOf(value)) ? `${name}:null` : member,
  );
  const kept = { ...failed, record: left };
  return idsInFailed(kept).some(isErased) ? undefined : kept;
}

/** Matches members at any depth. The groups are the quoted name and the value, if it is a string or a number. */
function membersNamed(names: readonly string[]): RegExp {
  return new RegExp(`("(?:${names.join('|')})")\\s*:\\s*("(?:[^"\\\\]|\\\\.)*"|-?[0-9][0-9.eE+-]*)`, 'g');
}

/** PostgreSQL stores no NUL, so no stored id contains one. No id is longer than a user's. */
function canBeId(value: string): boolean {
  return value.length <= 2 * limits.interactionUserCodePointsMax && !value.includes('\0');
}

function idOf(json: string): string {
  if (!json.startsWith('"')) return json;
  try {
    return inOneSpelling(JSON.parse(json) as string);
  } catch {
    return json;
  }
}

export function inOneSpelling(id: string): string {
  return readUuid(id) ?? id;
}

function scalarsIn(value: unknown): string[] {
  const found: string[] = [];
  // A record may be nested so deeply that recursion would overflow the stack.
  for (const left = [value]; left.length > 0; ) {
    const one = left.pop();
    if (typeof one === 'string' || typeof one === 'number') found.push(String(one));
    else if (typeof one === 'object' && one !== null)
      for (const inner of Object.values(one)) left.push(inner);
  }
  return found;
}

export function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
