import { isObject, unexpected } from './errors.ts';
import type { components } from './generated/api.ts';
import { limits } from './limits.ts';

export type Erasure = components['schemas']['Erasure'];

/** An erasure that was just requested, and which of its customers are not stored. Their ids are refused all the same. */
export type RequestedErasure = Erasure & { readonly unknown_customer_ids: readonly string[] };

export type AccessRequest = components['schemas']['AccessRequest'];

/** The people to erase, any number of ids, or to give access to. */
export interface People {
  /** Ids of customers, as in `customer_id` and `student_id`. */
  readonly customerIds?: readonly string[] | undefined;
  /** Ids that interactions alone have in `user_id`. */
  readonly userIds?: readonly string[] | undefined;
  /** Whether their transactions and interactions stay without them, or go too. Default: `anonymise`. */
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

/** The bodies of the requests. All ids are checked first, so that no list is erased in part because one of them is wrong. */
export function erasureBodies({ customerIds, userIds, mode }: People, method = 'erase'): ErasureBody[] {
  // A misspelt member must not look like a list of nobody.
  if (customerIds === undefined && userIds === undefined)
    throw new TypeError(`${method} needs customerIds or userIds`);
  const customers = checked('customerIds', customerIds, isCustomerId, 'is not a UUID');
  const lengths = `is not a text of 1 to ${limits.userIdCharactersMax} characters`;
  const users = checked('userIds', userIds, isUserId, lengths);
  const max = limits.idsPerErasureMax;
  const count = Math.ceil((customers.length + users.length) / max);
  return Array.from({ length: count }, (_, at) => {
    const customer_ids = customers.slice(at * max, (at + 1) * max);
    const usersFrom = (from: number) => Math.max(0, from * max - customers.length);
    const user_ids = users.slice(usersFrom(at), usersFrom(at + 1));
    return {
      ...(customer_ids.length > 0 && { customer_ids }),
      ...(user_ids.length > 0 && { user_ids }),
      ...(mode !== undefined && { mode }),
    };
  });
}

/** The body of an access request. */
export function accessBody(people: Pick<People, 'customerIds' | 'userIds'>): ErasureBody {
  const [body, ...others] = erasureBodies(people, 'request');
  if (body && others.length === 0) return body;
  throw new TypeError(`an access request takes 1 to ${limits.idsPerErasureMax} ids`);
}

/** Each id once. An error names no id, because it may end up in a log. */
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
  throw unexpected('The access request was answered with something else');
}

export function requestedErasure(answer: Record<string, unknown>): RequestedErasure {
  const { unknown_customer_ids: unknown } = answer;
  const areIds = Array.isArray(unknown) && unknown.every((id) => typeof id === 'string');
  if (isErasure(answer) && areIds) return answer as unknown as RequestedErasure;
  throw unexpected('The erasure was answered with something else');
}
