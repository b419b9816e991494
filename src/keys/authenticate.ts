import { timingSafeEqual } from 'node:crypto';
import { RequestError } from '../errors.ts';
import type { OrganisationLimits } from '../store/api-keys.ts';
import type { FailedKeys } from './failed-keys.ts';
import { hashKey, keyIdOf } from './key-format.ts';
import type { KnownKeys } from './known-keys.ts';

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
  const knownKeyId = keyId !== undefined && keys.has(keyId) ? keyId : undefined;
  await failedKeys.refuseTooMany(address, knownKeyId);
  const known = keyId === undefined ? undefined : await keys.find(keyId);
  if (
    keyId === undefined ||
    !known ||
    !timingSafeEqual(known.keySha256, hashKey(key)) ||
    known.endsMs <= performance.now()
  ) {
    await failedKeys.count(address, known && keyId);
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

export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
}

export function unauthorized(code: 'unauthorized' | 'admin_unauthorized' = 'unauthorized'): RequestError {
  return new RequestError(code, { headers: { 'www-authenticate': 'Bearer' } });
}
