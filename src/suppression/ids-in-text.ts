import { sentFields, type UploadType } from '../registry/upload-types.ts';

export const uuidPattern = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;

/**
 * Returns every string in a failed record that may be a person's id. These are all UUIDs, and the string values of
 * identifying fields.
 */
export function idsInText(type: UploadType, text: string): string[] {
  const uuids = [...text.matchAll(uuidPattern)].map(([id]) => id.toLowerCase());
  const names = Object.entries(sentFields(type)).flatMap(([name, { personal, column }]) =>
    personal === 'identifies' && column === 'text' ? name : [],
  );
  if (names.length === 0) return uuids;
  const record: unknown = JSON.parse(text);
  if (typeof record !== 'object' || record === null) return uuids;
  const values = names.map((name) => (record as Record<string, unknown>)[name]);
  return [...uuids, ...values.filter((value) => typeof value === 'string')];
}
