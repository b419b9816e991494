import { invalidRequest } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { type Field, isProblem, required, uuid } from '../../registry/fields.ts';
import { personId } from '../../registry/personal.ts';
import { type BodyField, bodySchema, readFields, refuse } from './body.ts';
import type { JsonSchema } from './operation.ts';

function listOf(field: Field): BodyField<readonly string[]> {
  return {
    schema: { type: 'array', items: field.schema, minItems: 1, maxItems: limits.erasureIdsMax },
    read(value) {
      if (!Array.isArray(value)) return refuse('wrong_type', 'must be an array');
      if (value.length === 0) return refuse('required', 'must contain at least one id, or be omitted');
      if (value.length > limits.erasureIdsMax)
        return refuse('too_large', `has more than ${limits.erasureIdsMax} ids; send several requests`);
      const ids = value.map((one) => (one === '' ? required : field.read(one)));
      const problem = ids.find(isProblem);
      return problem
        ? refuse(problem.code, `has an element that ${problem.message}`)
        : [...new Set(ids.map(String))];
    },
  };
}

export const peopleFields = {
  customer_ids: listOf(uuid()),
  user_ids: listOf(personId({ codePointsMax: limits.interactionUserCodePointsMax })),
} satisfies Record<string, BodyField>;

export function peopleSchema(fields: Record<string, BodyField>): JsonSchema {
  return { ...bodySchema(fields), anyOf: [{ required: ['customer_ids'] }, { required: ['user_ids'] }] };
}

/** Error messages never repeat the body's content. */
export function readPeople<F extends typeof peopleFields>(fields: F, body: Buffer | undefined) {
  const { customer_ids = [], user_ids = [], ...rest } = readFields(fields, body, false);
  const count = customer_ids.length + user_ids.length;
  if (count === 0 || count > limits.erasureIdsMax) {
    const message = `and user_ids must hold 1 to ${limits.erasureIdsMax} ids together`;
    throw invalidRequest({ field: 'customer_ids', code: count === 0 ? 'required' : 'too_large', message });
  }
  return { customerIds: customer_ids, userIds: user_ids, ...rest };
}
