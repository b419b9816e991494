import { type UploadType, uploadTypes } from '../../../client/src/generated/resources.ts';

/** Like the service: `data:write` covers every type, `data:write:shops` covers only that one. */
export function permits(granted: readonly string[], needed: string): boolean {
  return granted.includes(needed) || (needed.startsWith('data:write:') && granted.includes('data:write'));
}

/** What uploading records of a type needs. */
export function uploadPermission(type: UploadType): string {
  return type === 'interactions' ? 'interactions:write' : `data:write:${type}`;
}

/** Each of them is enough to upload something. */
export const uploadPermissions: readonly string[] = uploadTypes.map(uploadPermission);

/** What each permission allows, in words. */
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

/** Every permission that a key can have, apart from those for one type. */
export const generalPermissions: readonly string[] = Object.keys(permissionTexts);
