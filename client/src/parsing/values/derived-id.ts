import {
  itemTypes,
  type ResourceType,
  resources,
  resourceTypes,
  type UploadType,
} from '../../generated/resources.ts';
import { sha1Hex } from './sha1.ts';

/** The namespace of every derived id. It must never change: the same export would become different records. */
const namespace = Uint8Array.from([
  0x0f, 0x6d, 0x3f, 0x1c, 0x5c, 0x0e, 0x4a, 0x0f, 0x9a, 0x56, 0x3d, 0x1f, 0x5b, 0x7c, 0x2e, 0x94,
]);

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Derives the id of a record in an export without UUIDs: the UUIDv5 of what it names (the type, such as shops) and its
 * key, with U+001F between them and between the columns of the key. It depends on nothing else, so `S001` in the file
 * of shops and `S001` in a transaction's shop_id become the same id. A key that is a UUID stays as it is.
 */
export function deriveId(named: string, key: readonly string[]): string {
  if (key.length === 1 && uuidPattern.test(key[0] as string)) return key[0] as string;
  const hex = sha1Hex(namespace, [named, ...key].join('\u001f'));
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

/** The only field whose type another field says. */
export const itemField = 'item_id';

/** Derives the id of an interaction's item. If its type is wrong, the key stays as it is. */
export function deriveItem(record: Record<string, unknown>): void {
  const type = typeOfItem(record.item_type);
  const key = record[itemField];
  const isKey = (typeof key === 'string' && key !== '') || typeof key === 'number';
  if (type !== undefined && isKey) record[itemField] = deriveId(type, [String(key)]);
}

/** The type of an interaction's item, which its `item_type` says; undefined if that is wrong. */
function typeOfItem(itemType: unknown): ResourceType | undefined {
  return typeof itemType === 'string' && Object.hasOwn(itemTypes, itemType) ? itemTypes[itemType] : undefined;
}

/** The fields of a type whose ids the service looks for. */
export function referenceFieldsOf(type: UploadType): readonly string[] {
  return [...Object.keys(resources[type].references), ...(type === 'interactions' ? [itemField] : [])];
}

/** The type that the id in this field of a record refers to; undefined if the service does not check it. */
export function referencedBy(
  type: UploadType,
  field: string,
  record: Readonly<Record<string, unknown>>,
): ResourceType | undefined {
  if (type === 'interactions' && field === itemField) return typeOfItem(record.item_type);
  const { references } = resources[type];
  return Object.hasOwn(references, field) ? references[field] : undefined;
}
