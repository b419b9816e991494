import { isObject, unexpected } from './errors.ts';
import type { components } from './generated/api.ts';
import { limits } from './limits.ts';

export type Erasure = components['schemas']['Erasure'];

/**
 * An erasure that was just requested, with those of its customer ids that are not stored. From now on, the service refuses
 * these ids as well.
 */
export type RequestedErasure = Erasure & { readonly unknown_customer_ids: readonly string[] };

/** What an erasure would change or delete, and which of its customer ids are not stored. */
export type CountedErasure = components['schemas']['CountedErasure'];

export type AccessRequest = components['schemas']['AccessRequest'];

/** The people to erase (any number of ids), or whose data to collect. */
export interface People {
  /** Customer ids, as in `customer_id` and `student_id`. */
  readonly customerIds?: readonly string[] | undefined;
  /** User ids, which occur only in the `user_id` of interactions. */
  readonly userIds?: readonly string[] | undefined;
  /**
   * Whether to keep their transactions and interactions without the ids (`anonymise`, the default) or to delete these
   * records as well.
   */
  readonly mode?: Erasure['mode'];
}

export interface ErasureBody {
  readonly customer_ids?: readonly string[];
  readonly user_ids?: readonly string[];
  readonly mode?: Erasure['mode'];
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function isCustomerId(id: unknown): boolean {
  return typeof id === 'string' && uuidPattern.test(id);
}

export function isUserId(id: unknown): boolean {
  return typeof id === 'string' && id !== '' && [...id].length <= limits.userIdCharactersMax;
}

/** Returns the request bodies. All ids are checked first, so that an invalid id does not leave the list partly erased. */
export function erasureBodies({ customerIds, userIds, mode }: People, method = 'erase'): ErasureBody[] {
  // Without this check, a misspelt property would look like an empty list.
  if (customerIds === undefined && userIds === undefined)
    throw new TypeError(`${method} needs customerIds or userIds`);
  const customers = checked('customerIds', customerIds, isCustomerId, 'is not a UUID');
  const lengths = `is not a string of 1 to ${limits.userIdCharactersMax} characters`;
  const users = checked('userIds', userIds, isUserId, lengths);
  return peoplePerErasure(customers, users).map(({ customerIds: customer_ids, userIds: user_ids }) => ({
    ...(customer_ids.length > 0 && { customer_ids }),
    ...(user_ids.length > 0 && { user_ids }),
    ...(mode !== undefined && { mode }),
  }));
}

/** Divides ids among erasures. */
export function peoplePerErasure(customers: readonly string[], users: readonly string[]) {
  const max = limits.idsPerErasureMax;
  const count = Math.ceil((customers.length + users.length) / max);
  return Array.from({ length: count }, (_, at) => {
    const usersFrom = (from: number) => Math.max(0, from * max - customers.length);
    return {
      customerIds: customers.slice(at * max, (at + 1) * max),
      userIds: users.slice(usersFrom(at), usersFrom(at + 1)),
    };
  });
}

/** Returns the body for an access request. */
export function accessBody(people: Pick<People, 'customerIds' | 'userIds'>): ErasureBody {
  const [body, ...others] = erasureBodies(people, 'request');
  if (body && others.length === 0) return body;
  throw new TypeError(`an access request takes 1 to ${limits.idsPerErasureMax} ids`);
}

/** Returns the distinct ids. Error messages contain no ids, because they may end up in a log. */
function checked(
  name: string,
  ids: readonly string[] = [],
  isId: (id: unknown) => boolean,
  problem: string,
): string[] {
  if (!Array.isArray(ids)) throw new TypeError(`${name} must be an array of ids`);
  const wrong = ids.findIndex((id) => !isId(id));
  if (wrong >= 0) throw new TypeError(`${name}[${wrong}] ${problem}`);
  return [...new Set(ids)];
}

export function isErasure({ erasure_id, state, rows }: Record<string, unknown>): boolean {
  const hasCounts = isObject(rows) && Object.values(rows).every(Number.isSafeInteger);
  return typeof erasure_id === 'string' && typeof state === 'string' && hasCounts;
}

export function isAccessRequest({ access_request_id, state, records }: Record<string, unknown>): boolean {
  const hasCounts = isObject(records) && Object.values(records).every(Number.isSafeInteger);
  return typeof access_request_id === 'string' && typeof state === 'string' && hasCounts;
}

export function accessRequest(answer: Record<string, unknown>): AccessRequest {
  if (isAccessRequest(answer)) return answer as unknown as AccessRequest;
  throw unexpected('The answer to the access request has an unexpected form');
}

export function requestedErasure(answer: Record<string, unknown>): RequestedErasure {
  const { unknown_customer_ids: unknown } = answer;
  const areIds = Array.isArray(unknown) && unknown.every((id) => typeof id === 'string');
  if (isErasure(answer) && areIds) return answer as unknown as RequestedErasure;
  throw unexpected('The answer to the erasure has an unexpected form');
}

export function countedErasure(answer: Record<string, unknown>): CountedErasure {
  const { rows, complete, unknown_customer_ids: unknown } = answer;
  const hasCounts = isObject(rows) && Object.values(rows).every(Number.isSafeInteger);
  if (hasCounts && typeof complete === 'boolean' && Array.isArray(unknown))
    return answer as unknown as CountedErasure;
  throw unexpected('The answer to the dry run has an unexpected form');
}
