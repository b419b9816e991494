import type { ColumnType } from './fields.ts';
import { type ItemType, interaction, itemTypes } from './interaction.ts';
import type { StoredField } from './personal.ts';
import { type Reference, type ResourceType, referencesOf, resources, resourceTypes } from './resources.ts';

/** Everything that can be sent in batches: records of every type, and interactions. */
export type UploadType = ResourceType | 'interactions';

export const uploadTypes: readonly UploadType[] = [...resourceTypes, 'interactions'];

/** The fields of a sent record. The first is its identifier, except that an interaction is sent without one. */
export function sentFields(type: UploadType): Readonly<Record<string, StoredField>> {
  return type === 'interactions' ? interaction : resources[type].fields;
}

/** The column types as sent to PostgreSQL: JSON is sent as text, and the statement casts it back. */
export function sentColumnTypes(type: UploadType): ColumnType[] {
  return Object.values(sentFields(type)).map(({ column }) => (column === 'jsonb' ? 'text' : column));
}

export interface SentReference extends Reference {
  /** If another field decides the type: that field's position in a row, and its value for this type. */
  readonly where?: { readonly position: number; readonly value: string };
}

/** The fields whose ids must already exist, once per type that they can refer to. */
export function sentReferencesOf(type: UploadType): SentReference[] {
  if (type !== 'interactions') return referencesOf(type);
  const position = (field: keyof typeof interaction) => Object.keys(interaction).indexOf(field);
  const student = { field: 'student_id', position: position('student_id'), type: 'customers' } as const;
  const items = (Object.keys(itemTypes) as ItemType[]).map((value) => ({
    field: 'item_id',
    position: position('item_id'),
    type: itemTypes[value],
    where: { position: position('item_type'), value },
  }));
  return [student, ...items];
}

/** The types, each after those it refers to. */
export function inOrderOfReference(): UploadType[] {
  const ordered = new Set<UploadType>();
  const place = (type: UploadType) => {
    if (ordered.has(type)) return;
    for (const reference of sentReferencesOf(type)) if (reference.type !== type) place(reference.type);
    ordered.add(type);
  };
  for (const type of uploadTypes) place(type);
  return [...ordered];
}
