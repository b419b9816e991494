import type { Field, Problem, Schema } from './fields.ts';

/** Whether a field says who a person is, says something about a person, or neither. */
export type Personal = 'identifies' | 'describes' | 'no';

/** A field of something that is stored. Each declares whether it is personal; erasing a person follows from that. */
export interface StoredField<S extends Schema = Schema, R extends boolean = boolean> extends Field<S, R> {
  readonly personal: Personal;
}

/** The field holds the id of a person. */
export function identifies<F extends Field>(field: F): F & { readonly personal: 'identifies' } {
  return { ...field, personal: 'identifies' };
}

/** The field says something about a person, such as a birthdate. */
export function describes<F extends Field>(field: F): F & { readonly personal: 'describes' } {
  return { ...field, personal: 'describes' };
}

/** These fields may stay as they are when a person is erased. */
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
