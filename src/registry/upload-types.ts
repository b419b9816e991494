import type { ColumnType } from './fields.ts';
import { type ItemType, interaction, itemTypes } from './interaction.ts';
import { type PersonalFields, personalFieldsOf, type StoredField } from './personal.ts';
import {
  perType,
  type Reference,
  type ResourceType,
  referencesOf,
  resources,
  resourceTypes,
} from './resources.ts';

/** Everything that can be sent in batches: records of every type, and interactions. */
export type UploadType = ResourceType | 'interactions';

export const uploadTypes: readonly UploadType[] = [...resourceTypes, 'interactions'];

/** The first field is the identifier, except for interactions, which are sent without one. */
export function sentFields(type: UploadType): Readonly<Record<string, StoredField>> {
  return type === 'interactions' ? interaction : resources[type].fields;
}

export const personalFields: (type: UploadType) => PersonalFields = perType((type: UploadType) =>
  personalFieldsOf(sentFields(type)),
);

/** JSON is sent as text, and the statement casts it back. */
export function sentColumnTypes(type: UploadType): ColumnType[] {
  return Object.values(sentFields(type)).map(({ column }) => (column === 'jsonb' ? 'text' : column));
}

export interface SentReference extends Reference {
  /** Set if the type depends on another field: its position in a row, and its value for this type. */
  readonly where?: { readonly position: number; readonly value: string };
}

/** Returns one entry per type that a field can refer to. */
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

/** Each type comes after the types that it refers to. */
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
