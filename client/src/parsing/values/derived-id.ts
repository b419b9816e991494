import {
  itemTypes,
  type ResourceType,
  resources,
  resourceTypes,
  type UploadType,
} from '../../generated/resources.ts';
import { sha1Hex } from './sha1.ts';

/** The namespace of every derived id. It must never change, or the same export would create different records. */
const namespace = Uint8Array.from([
  0x0f, 0x6d, 0x3f, 0x1c, 0x5c, 0x0e, 0x4a, 0x0f, 0x9a, 0x56, 0x3d, 0x1f, 0x5b, 0x7c, 0x2e, 0x94,
]);

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/**
 * Derives a record's id from a key, for exports without UUIDs. The id is the UUIDv5 of the referenced type (such as shops)
 * and the key, with U+001F between them and between the key's columns. The id depends on nothing else, so `S001` in the
 * shops file and `S001` in a transaction's shop_id get the same id. A key that is already a UUID stays unchanged.
 */
export function deriveId(named: string, key: readonly string[]): string {
  if (key.length === 1 && uuidPattern.test(key[0] as string)) return key[0] as string;
  const hex = sha1Hex(namespace, [named, ...key].join('\u001f'));
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}`;
}

/** The field with a user's id, which customers and interactions have. */
export const userField = 'user_id';

const typeOfField = new Map<string, ResourceType | 'users'>([[userField, 'users']]);
for (const type of resourceTypes) {
  typeOfField.set(resources[type].idField, type);
  for (const [field, target] of Object.entries(resources[type].references)) typeOfField.set(field, target);
}

/**
 * Returns the type that an id in this field refers to, even if the service does not check the reference. For example, a
 * transaction's offer_id refers to an offer and its student_id to a customer. Users are not records, but a user's key must give
 * the same id in customers and in interactions, because erasures recognise a person by it.
 */
export function namedBy(field: string): ResourceType | 'users' | undefined {
  return typeOfField.get(field);
}

/** The only field whose type depends on another field. */
export const itemField = 'item_id';

/** Derives the id of an interaction's item from its key. If the item type is invalid, the key stays unchanged. */
export function deriveItem(record: Record<string, unknown>): void {
  const type = typeOfItem(record.item_type);
  const key = record[itemField];
  const isKey = (typeof key === 'string' && key !== '') || typeof key === 'number';
  if (type !== undefined && isKey) record[itemField] = deriveId(type, [String(key)]);
}

/** Returns the record type for an interaction's `item_type`, or undefined if it is invalid. */
function typeOfItem(itemType: unknown): ResourceType | undefined {
  return typeof itemType === 'string' && Object.hasOwn(itemTypes, itemType) ? itemTypes[itemType] : undefined;
}

/** Returns the fields of a type whose references the service checks. */
export function referenceFieldsOf(type: UploadType): readonly string[] {
  return [...Object.keys(resources[type].references), ...(type === 'interactions' ? [itemField] : [])];
}

/** Returns the type that the id in this field refers to, or undefined if the service does not check the reference. */
export function referencedBy(
  type: UploadType,
  field: string,
  record: Readonly<Record<string, unknown>>,
): ResourceType | undefined {
  if (type === 'interactions' && field === itemField) return typeOfItem(record.item_type);
  const { references } = resources[type];
  return Object.hasOwn(references, field) ? references[field] : undefined;
}
