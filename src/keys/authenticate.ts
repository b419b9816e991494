import { timingSafeEqual } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { hashKey, keyIdOf } from './key-format.ts';
import type { KnownKeys } from './known-keys.ts';

/** On whose behalf a request is made. It comes from the key alone, never from anything else in the request. */
export interface Principal {
  readonly organisationId: string;
  readonly keyId: string;
  readonly permissions: readonly string[];
}

export async function authenticate(keys: KnownKeys, authorization: string | undefined): Promise<Principal> {
  const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  const keyId = key === undefined ? undefined : keyIdOf(key);
  if (key === undefined || keyId === undefined) throw unauthorized();
  const stored = await keys.find(keyId);
  if (!stored || !timingSafeEqual(stored.keySha256, hashKey(key)) || stored.ended) throw unauthorized();
  return { organisationId: stored.organisationId, keyId, permissions: stored.permissions };
}

function unauthorized(): RequestError {
  return new RequestError('unauthorized', { headers: { 'www-authenticate': 'Bearer' } });
}
