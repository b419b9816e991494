import { type UploadType, uploadTypes } from '../../../client/src/generated/resources.ts';

/**
 * Returns whether the granted permissions include the needed one. The rule is the same as in the service: `data:write`
 * covers every type, and `data:write:shops` covers only shops.
 */
export function permits(granted: readonly string[], needed: string): boolean {
  return granted.includes(needed) || (needed.startsWith('data:write:') && granted.includes('data:write'));
}

/** Returns the permission to upload records of a type. */
export function uploadPermission(type: UploadType): string {
  return type === 'interactions' ? 'interactions:write' : `data:write:${type}`;
}

/** Permissions to upload, any one of which is enough to upload something. */
export const uploadPermissions: readonly string[] = uploadTypes.map(uploadPermission);

/** Describes in words what a permission allows. */
export function describePermission(permission: string): string {
  const [, type] = /^data:write:(.+)$/.exec(permission) ?? [];
  if (type !== undefined) return `Upload ${type.replaceAll('-', ' ')}.`;
  return permissionTexts[permission] ?? 'Not known to this console.';
}

const permissionTexts: Readonly<Record<string, string>> = {
  'data:write': 'Upload records of every type; replay and discard rejections.',
  'data:read': 'Read records, receipts and rejections.',
  'interactions:write': 'Record and upload interactions.',
  'interactions:read': 'Read interactions.',
  'data:erase': 'Erase people, and read erasures and their certificates.',
  'data:access': 'Request and download what is stored about people.',
};

/** Every permission that a key can have, except permissions for a single type. */
export const generalPermissions: readonly string[] = Object.keys(permissionTexts);
