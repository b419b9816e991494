import { hash } from 'node:crypto';
import { type ResourceType, resources, resourceTypes } from '../generated/resources.ts';

/** The namespace of every derived id. It must never change: the same export would become different records. */
const namespace = Buffer.from('0f6d3f1c5c0e4a0f9a563d1f5b7c2e94', 'hex');

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Derives the id of a record in an export without UUIDs: the UUIDv5 of what it names (the type, such as shops) and its
 * key, with U+001F between them and between the columns of the key. It depends on nothing else, so `S001` in the file
 * of shops and `S001` in a transaction's shop_id become the same id. A key that is a UUID stays as it is.
 */
export function deriveId(named: string, key: readonly string[]): string {
  if (key.length === 1 && uuidPattern.test(key[0] as string)) return key[0] as string;
  const hex = hash('sha1', Buffer.concat([namespace, Buffer.from([named, ...key].join('\u001f'))]), 'hex');
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
}

const typeOfField = new Map<string, ResourceType>();
for (const type of resourceTypes) {
  typeOfField.set(resources[type].idField, type);
  for (const [field, target] of Object.entries(resources[type].references)) typeOfField.set(field, target);
}

/**
 * What the id in this field names: a type, even if the service does not check that the record exists (a transaction's
 * offer_id names an offer, its student_id a customer). A user_id names no type, so it is its own name.
 */
export function namedBy(field: string): string {
  return typeOfField.get(field) ?? field;
}
