import type { ColumnType, Field } from './fields.ts';
import { type ItemType, interaction, itemTypes } from './interaction.ts';
import { type Reference, type ResourceType, referencesOf, resources, resourceTypes } from './resources.ts';

/** What is sent in batches: records of every type, and interactions. */
export type UploadType = ResourceType | 'interactions';

export const uploadTypes: readonly UploadType[] = [...resourceTypes, 'interactions'];

/** The fields of what is sent. The first is its identifier, but an interaction is sent without one. */
export function sentFields(type: UploadType): Readonly<Record<string, Field>> {
  return type === 'interactions' ? interaction : resources[type].fields;
}

/** The types of the fields as they are sent to PostgreSQL: JSON travels as text, and the statement makes it JSON again. */
export function sentColumnTypes(type: UploadType): ColumnType[] {
  return Object.values(sentFields(type)).map(({ column }) => (column === 'jsonb' ? 'text' : column));
}

export interface SentReference extends Reference {
  /** Where it is of this type only if another field says so: that field's place in a row, and what it says. */
  readonly where?: { readonly position: number; readonly value: string };
}

/** The fields whose ids must already exist, once for each type that they can be of. */
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
