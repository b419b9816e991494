import type { DescribedAnswer } from './operation.ts';

export function described(description: string, schemaName: string): DescribedAnswer {
  return { description, schema: { $ref: `#/components/schemas/${schemaName}` } };
}

export function onePage(schemaName: string): DescribedAnswer {
  return described('One page.', schemaName);
}

/** An error that only some operations return. */
export function refused(description: string): DescribedAnswer {
  return described(description, 'Error');
}

export const notFound: DescribedAnswer = {
  sharedAs: 'NotFound',
  ...refused('There is nothing with this id.'),
};

export const whileDeleted: DescribedAnswer = {
  sharedAs: 'OrganisationIsDeleted',
  ...refused('The organisation is deleted. Code: `organisation_is_deleted`.'),
};

export const keyReused: DescribedAnswer = {
  sharedAs: 'IdempotencyKeyReused',
  ...refused('The `Idempotency-Key` was used with another body. Code: `idempotency_key_reused`.'),
};

export const runEnded: DescribedAnswer = {
  sharedAs: 'RunEnded',
  ...refused('The run has ended. Code: `run_ended`.'),
};
