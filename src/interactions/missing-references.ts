import { randomUUIDv7 } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { binaryArray } from '../postgres/binary/array-writer.ts';
import type { Client, Pool } from '../postgres/pool.ts';
import type { SendLast } from '../postgres/transactions.ts';
import { referenceNotFound } from '../registry/resources.ts';
import type { FieldProblem } from '../registry/validate.ts';
import { keepMissing, type NewRejections } from '../rejections/keep-rejections.ts';
import { KindList } from '../rejections/kind-list.ts';
import { addKindChanges, storeKinds } from '../rejections/rejection-kinds.ts';
import { arraysOf, type NewInteraction } from './interaction-rows.ts';
import type { KnownIds } from './known-ids.ts';
import { interactionReferences, missingAmong, referencedBy } from './look-up-references.ts';

const notFound = interactionReferences.map(
  ({ field, type }): FieldProblem => ({ field, ...referenceNotFound(type) }),
);

/** The problems of an interaction's missing references; empty if all exist. */
export async function missingReferences(
  client: Client | Pool,
  added: NewInteraction,
  known: KnownIds,
): Promise<FieldProblem[]> {
  const missing = await missingAmong(client, added.organisationId, referencedBy([added]), known);
  return notFound.filter((_, at) => (missing[at]?.size ?? 0) > 0);
}

export function refuseMissing(problems: readonly FieldProblem[]): RequestError {
  const details = problems.map(({ field, code, message }) => ({ field: field ?? 'body', code, message }));
  return new RequestError('invalid_request', { details });
}

export interface MissingInteraction {
  readonly requestId: string;
  readonly added: NewInteraction;
  readonly problems: readonly FieldProblem[];
  /** The id it will be stored under, if that is fixed: then it has at most one rejection. */
  readonly recordId: string | null;
}

/** Keeps an interaction with missing references as a rejection. */
export async function keepInteraction(
  client: Client,
  sendLast: SendLast,
  { requestId, added, problems, recordId }: MissingInteraction,
): Promise<void> {
  const { organisationId } = added;
  const type = 'interactions';
  // There are so few combinations of missing references that the number of kinds need not be checked.
  const kinds = new KindList(type, false);
  const kindId = kinds.idOf(problems);
  const [, ...arrays] = arraysOf([added]);
  const rejections: NewRejections = {
    count: 1,
    rejectionIds: binaryArray('uuid', [randomUUIDv7()]),
    kindIds: binaryArray('uuid', [kindId]),
    indices: binaryArray('int4', [0]),
    recordIds: binaryArray('uuid', [recordId]),
  };
  await Promise.all([
    storeKinds(client, organisationId, type, kinds.all),
    keepMissing(client, organisationId, type, requestId, { count: 1, arrays }, rejections),
  ]);
  sendLast((last) => addKindChanges(last, organisationId, new Map([[kindId, 1]])));
}
