import { uploadTypes } from '../../../../../client/src/generated/resources.ts';
import { uploadPermission } from '../../../api/permissions.ts';
import { fromLocalField } from '../../../format/format.ts';
import { shellOptions, shellWord } from '../../../format/shell-word.ts';
import type { KeyRequest } from '../../api/keys.ts';

/** The state of the form for a new key. */
export interface KeyForm {
  readonly browser: boolean;
  readonly permissions: ReadonlySet<string>;
  /** The origins, one per line. */
  readonly origins: string;
  readonly label: string;
  /** The value of a datetime-local field. It is empty if the key never expires. */
  readonly expires: string;
}

/** The defaults, which suit most keys. As on the command line, they permit everything except erasing people. */
export const emptyForm: KeyForm = {
  browser: false,
  permissions: new Set(['data:write', 'data:read', 'interactions:write', 'interactions:read']),
  origins: '',
  label: '',
  expires: '',
};

/** The permissions to upload a single type. */
export const typePermissions = uploadTypes.filter((type) => type !== 'interactions').map(uploadPermission);

/**
 * Returns the permissions to request. `data:write` covers every type, so permissions for a single type would be redundant.
 */
function permissionsOf(chosen: ReadonlySet<string>): readonly string[] {
  return [...chosen].filter(
    (permission) => !(chosen.has('data:write') && typePermissions.includes(permission)),
  );
}

export function originsOf(text: string): readonly string[] {
  return [...new Set(text.split(/[\s,]+/).filter((origin) => origin !== ''))];
}

export function keyRequestOf(organisation: string, form: KeyForm): KeyRequest {
  const label = form.label.trim();
  const expires_at = fromLocalField(form.expires);
  return {
    organisation,
    ...(form.browser
      ? { browser: true as const, origins: originsOf(form.origins) }
      : { permissions: permissionsOf(form.permissions) }),
    ...(label === '' ? {} : { label }),
    ...(expires_at === undefined ? {} : { expires_at }),
  };
}

/** Returns the equivalent terminal line. */
export function issueLine({ organisation, ...wanted }: KeyRequest): string {
  const granted = wanted.browser
    ? ` --browser${repeated('origin', wanted.origins)}`
    : repeated('scope', wanted.permissions);
  const rest = shellOptions({ label: wanted.label, expires: wanted.expires_at });
  return `intake-server keys issue --organisation ${shellWord(organisation)}${granted}${rest}`;
}

function repeated(option: string, values: readonly string[] = []): string {
  return values.map((value) => ` --${option} ${shellWord(value)}`).join('');
}
