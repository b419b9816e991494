import { timingSafeEqual } from 'node:crypto';
import { RequestError } from '../errors.ts';
import type { OrganisationLimits } from './api-keys.ts';
import type { FailedKeys } from './failed-keys.ts';
import { hashKey, keyIdOf } from './key-format.ts';
import type { KnownKey, KnownKeys } from './known-keys.ts';

/** On whose behalf a request is made. It comes from the key alone, never from anything else in the request. */
export interface Principal {
  readonly organisationId: string;
  readonly keyId: string;
  readonly permissions: readonly string[];
  readonly limits: OrganisationLimits;
}

export interface Credentials {
  readonly authorization: string | undefined;
  /** Where the request comes from. */
  readonly address: string;
}

export async function authenticate(
  keys: KnownKeys,
  failedKeys: FailedKeys,
  { authorization, address }: Credentials,
): Promise<Principal> {
  const key = bearerOf(authorization);
  // What brings no key guesses none.
  if (key === undefined) throw unauthorized();
  const keyId = keyIdOf(key);
  // A key that was found before has a count of its own, also while it must be looked up anew: it passes all the while.
  const counted = keyId !== undefined && keys.has(keyId) ? keyId : undefined;
  await failedKeys.refuseTooMany(address, counted);
  // What has to wait to be looked up is asked again when its turn comes: many at once are as many attempts.
  const mayLookUp = () => failedKeys.refuseTooMany(address, counted);
  const known = keyId === undefined ? undefined : await keys.find(keyId, mayLookUp);
  if (keyId === undefined || !known || !isInUse(known, key)) {
    await failedKeys.count(address, counted);
    throw unauthorized();
  }
  if (known.suspended) throw new RequestError('organisation_suspended');
  keys.noteUse(keyId);
  return {
    organisationId: known.organisationId,
    keyId,
    permissions: known.permissions,
    limits: known.limits,
  };
}

function isInUse({ keySha256, endsMs }: KnownKey, key: string): boolean {
  return timingSafeEqual(keySha256, hashKey(key)) && endsMs > performance.now();
}

export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
}

export function unauthorized(code: 'unauthorized' | 'admin_unauthorized' = 'unauthorized'): RequestError {
  return new RequestError(code, { headers: { 'www-authenticate': 'Bearer' } });
}
