import { timingSafeEqual } from 'node:crypto';
import { RequestError } from '../errors.ts';
import { findApiKey } from '../store/api-keys.ts';
import type { Pool } from '../store/pool.ts';
import { hashKey, keyIdOf } from './key-format.ts';

/** On whose behalf a request is made. It comes from the key alone, never from anything else in the request. */
export interface Principal {
  readonly organisationId: string;
  readonly keyId: string;
  readonly permissions: readonly string[];
}

export async function authenticate(pool: Pool, authorization: string | undefined): Promise<Principal> {
  const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  const keyId = key === undefined ? undefined : keyIdOf(key);
  if (key === undefined || keyId === undefined) throw unauthorized();
  const stored = await findApiKey(pool, keyId);
  if (!stored || !timingSafeEqual(stored.keySha256, hashKey(key)) || stored.revoked) throw unauthorized();
  return { organisationId: stored.organisationId, keyId, permissions: stored.permissions };
}

function unauthorized(): RequestError {
  return new RequestError('unauthorized', { headers: { 'www-authenticate': 'Bearer' } });
}
