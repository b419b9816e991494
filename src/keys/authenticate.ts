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
  /** The client's IP address. */
  readonly address: string;
}

export async function authenticate(
  keys: KnownKeys,
  failedKeys: FailedKeys,
  { authorization, address }: Credentials,
): Promise<Principal> {
  const key = bearerOf(authorization);
  // A request without a key is no attempt to guess one.
  if (key === undefined) throw unauthorized();
  const keyId = keyIdOf(key);
  // A key that was found before has its own count of failures, even while its cache entry is expired, so other wrong
  // keys from its address do not lock it out.
  const counted = keyId !== undefined && keys.has(keyId) ? keyId : undefined;
  await failedKeys.refuseTooMany(address, counted);
  // Checked again before a queued look-up runs: many requests at once are as many attempts.
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
