import type { Field, Problem, Schema } from './fields.ts';

/** Whether a field identifies a person, describes a person, or neither. */
export type Personal = 'identifies' | 'describes' | 'no';

/** A stored field. Every field declares whether it is personal, because erasure depends on that. */
export interface StoredField<S extends Schema = Schema, R extends boolean = boolean> extends Field<S, R> {
  readonly personal: Personal;
}

/** Declares that the field contains a person's id. */
export function identifies<F extends Field>(field: F): F & { readonly personal: 'identifies' } {
  return { ...field, personal: 'identifies' };
}

/** Declares that the field describes a person, as a birthdate does. */
export function describes<F extends Field>(field: F): F & { readonly personal: 'describes' } {
  return { ...field, personal: 'describes' };
}

/** Declares that these fields may stay unchanged when a person is erased. */
export function impersonal<F extends Readonly<Record<string, Field>>>(
  fields: F,
): { [K in keyof F]: F[K] & { readonly personal: 'no' } } {
  const declared = Object.entries(fields).map(([name, field]) => [name, { ...field, personal: 'no' }]);
  return Object.fromEntries(declared);
}

export const erasedPerson: Problem = {
  code: 'erased',
  message: 'belongs to a person who was erased; leave the record out, or have the suppression lifted',
};
