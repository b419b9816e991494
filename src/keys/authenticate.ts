import { timingSafeEqual } from 'node:crypto';
import { blockOf, type FailedKeys } from '../admission/failed-keys.ts';
import type { Quota } from '../admission/quota.ts';
import type { Counted } from '../admission/request-limits.ts';
import { RequestError } from '../errors.ts';
import type { ConsoleSession, ConsoleSessions } from './console-sessions.ts';
import { hashKey, keyIdOf } from './key-format.ts';
import type { KnownKey, KnownKeys } from './known-keys.ts';

/** Derived only from the key, never from anything else in the request. */
export interface Principal extends Counted {
  readonly keyId: string;
  readonly permissions: readonly string[];
  readonly browserOrigins: readonly string[] | null;
  /** Undefined unless the organisation has used most of a quota. */
  readonly quota: Quota | undefined;
}

export async function authenticate(
  keys: KnownKeys,
  failedKeys: FailedKeys,
  { authorization, address }: { authorization: string | undefined; address: string },
  onBrowserKey: (origins: readonly string[]) => void = () => {},
): Promise<Principal> {
  const key = bearerOf(authorization);
  // A request without a key is not an attempt to guess one.
  if (key === undefined) throw unauthorized();
  const keyId = keyIdOf(key);
  // A key that was found before has its own failure count, even after its cache entry has expired. Other wrong keys
  // from the same address therefore do not lock it out.
  const counted = keyId !== undefined && keys.has(keyId) ? keyId : undefined;
  await failedKeys.refuseTooMany(address, counted);
  // Checked again before a queued lookup runs, because each of many concurrent requests counts as an attempt.
  const mayLookUp = () => failedKeys.refuseTooMany(address, counted);
  const known = keyId === undefined ? undefined : await keys.find(keyId, mayLookUp);
  const isRight = known !== undefined && timingSafeEqual(known.keySha256, hashKey(key));
  // Called before an expired or revoked key is refused, because the page that uses it must be able to read the error.
  if (isRight && known.browserOrigins) onBrowserKey(known.browserOrigins);
  if (keyId === undefined || !isRight || known.endsMs <= performance.now()) {
    await failedKeys.count(address, counted);
    throw unauthorized();
  }
  return admitted(keys, keyId, known, address);
}

export async function authenticateSession(
  { keys, failedKeys, sessions }: { keys: KnownKeys; failedKeys: FailedKeys; sessions: ConsoleSessions },
  token: string | undefined,
  address: string,
): Promise<{ readonly principal: Principal; readonly session: ConsoleSession }> {
  if (token === undefined) throw new RequestError('not_signed_in');
  await failedKeys.refuseTooMany(address);
  const session = await sessions.find(token);
  const known = session && (await keys.find(session.keyId));
  if (!known || known.endsMs <= performance.now()) {
    await failedKeys.count(address);
    throw new RequestError('not_signed_in');
  }
  return { principal: admitted(keys, session.keyId, known, address), session };
}

function admitted(keys: KnownKeys, keyId: string, known: KnownKey, address: string): Principal {
  if (known.deleted) throw new RequestError('organisation_deleted');
  if (known.suspended) throw new RequestError('organisation_suspended');
  keys.noteUse(keyId);
  return {
    organisationId: known.organisationId,
    keyId,
    permissions: known.permissions,
    browserOrigins: known.browserOrigins,
    visitor: known.browserOrigins ? blockOf(address) : undefined,
    limits: known.limits,
    quota: known.quota,
  };
}

export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
}

export function unauthorized(code: 'unauthorized' | 'admin_unauthorized' = 'unauthorized'): RequestError {
  return new RequestError(code, { headers: { 'www-authenticate': 'Bearer' } });
}
