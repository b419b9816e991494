import { uploadTypes } from '../../../../../client/src/generated/resources.ts';
import { uploadPermission } from '../../../api/permissions.ts';
import { fromLocalField } from '../../../format/format.ts';
import { shellOptions, shellWord } from '../../../format/shell-word.ts';
import type { KeyRequest } from '../../api/keys.ts';

/** What the form for a new key holds. */
export interface KeyForm {
  readonly browser: boolean;
  readonly permissions: ReadonlySet<string>;
  /** One origin per line. */
  readonly origins: string;
  readonly label: string;
  /** As a field of the kind datetime-local has it; empty if the key never expires. */
  readonly expires: string;
}

/** What most keys need: everything but erasing people, as on the command line. */
export const emptyForm: KeyForm = {
  browser: false,
  permissions: new Set(['data:write', 'data:read', 'interactions:write', 'interactions:read']),
  origins: '',
  label: '',
  expires: '',
};

/** Permissions to upload one type. */
export const typePermissions = uploadTypes.filter((type) => type !== 'interactions').map(uploadPermission);

/** `data:write` covers every type, so the permissions for one type add nothing to it. */
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

/** The same as a line for the terminal. */
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
