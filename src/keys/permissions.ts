import { RequestError } from '../errors.ts';
import { type ResourceType, resourceTypes } from '../registry/resources.ts';
import type { UploadType } from '../registry/upload-types.ts';

/** `data:write` covers every type, while `data:write:shops` covers only shops. */
export type Permission =
  | 'data:write'
  | `data:write:${ResourceType}`
  | 'data:read'
  | 'interactions:write'
  | 'interactions:read'
  | 'data:erase'
  | 'data:access';

/** They exclude erasures and access requests. */
export const allPermissions: readonly Permission[] = [
  'data:write',
  'data:read',
  'interactions:write',
  'interactions:read',
];

/** All permissions but those for a single type, which `data:write` covers. */
export const mainPermissions: readonly Permission[] = [...allPermissions, 'data:erase', 'data:access'];

export const readingPermissions: readonly Permission[] = ['data:read', 'interactions:read'];

export const permissions: readonly Permission[] = [
  ...allPermissions,
  ...resourceTypes.map((type) => `data:write:${type}` as const),
  'data:erase',
  'data:access',
];

const known: ReadonlySet<string> = new Set(permissions);

export function isPermission(value: string): value is Permission {
  return known.has(value);
}

export function permits(granted: readonly string[], needed: Permission): boolean {
  return granted.includes(needed) || (needed.startsWith('data:write:') && granted.includes('data:write'));
}

/** Whether a key may upload anything at all. */
export function permitsUploads(granted: readonly string[]): boolean {
  return granted.some(
    (permission) => permission.startsWith('data:write') || permission === 'interactions:write',
  );
}

export function uploadPermission(type: UploadType): Permission {
  return type === 'interactions' ? 'interactions:write' : `data:write:${type}`;
}

export function lacksPermission(permission: Permission): RequestError {
  const message = `The API key lacks the permission ${permission}; ask the operator for a key that has it.`;
  return new RequestError('missing_permission', { permission, message });
}
