import { pagesQuery } from '../../api/pages.ts';
import { call } from '../../api/request.ts';
import type { ConsoleLink, IssuedKey, Key, KeyPage } from './types.ts';

export const keysPath = '/admin/v1/keys';

export interface KeyFilter {
  readonly organisation?: string | undefined;
  readonly expires_before?: string | undefined;
  readonly unused?: string | undefined;
}

export function keyPagesQuery(filter: KeyFilter) {
  return pagesQuery<KeyPage>(keysPath, { ...filter, limit: 100 });
}

/** A request for a key. A key for browsers has origins, and any other key has permissions. */
export interface KeyRequest {
  readonly organisation: string;
  readonly permissions?: readonly string[];
  readonly browser?: true;
  readonly origins?: readonly string[];
  readonly label?: string;
  readonly expires_at?: string;
}

export function issueKey(wanted: KeyRequest): Promise<IssuedKey> {
  return call<IssuedKey>(keysPath, { method: 'POST', body: wanted });
}

export interface Rotation {
  readonly grace_seconds: number;
  readonly expires_at?: string;
}

export function rotateKey(keyId: string, rotation: Rotation): Promise<IssuedKey> {
  return call<IssuedKey>(`${keysPath}/${encodeURIComponent(keyId)}/rotate`, {
    method: 'POST',
    body: rotation,
  });
}

export function revokeKey(keyId: string): Promise<Key> {
  return call<Key>(`${keysPath}/${encodeURIComponent(keyId)}/revoke`, { method: 'POST' });
}

export const consoleLinksPath = '/admin/v1/console-links';

export interface LinkRequest {
  readonly organisation: string;
  readonly read_only: boolean;
  readonly expires_at: string;
}

export function makeConsoleLink(wanted: LinkRequest): Promise<ConsoleLink> {
  return call<ConsoleLink>(consoleLinksPath, { method: 'POST', body: wanted });
}
