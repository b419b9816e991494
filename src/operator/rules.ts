import { isPermission, mainPermissions, type Permission } from '../keys/permissions.ts';
import { limits } from '../limits.ts';
import { type Field, type Problem, text } from '../registry/fields.ts';
import { resourceTypes } from '../registry/resources.ts';
import type { KeptType } from '../retention/kept-days.ts';
import { sortBySimilarity } from '../settings.ts';

/** Shared by the command line and the admin API. A rule returns undefined if the input is valid. */

const slugPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export const slugSchema = { type: 'string', pattern: slugPattern.source };

export function slugProblem(slug: string): string | undefined {
  return slugPattern.test(slug)
    ? undefined
    : 'must be lower-case letters, digits and hyphens, at most 63 of them, such as acme';
}

/** The message lists the most similar permissions or types first. */
export function permissionProblem(permission: string): string | undefined {
  if (isPermission(permission)) return undefined;
  const given = permission.slice(0, 100);
  const [, type] = /^data:write:(.+)$/.exec(given) ?? [];
  return type === undefined
    ? `must be one of ${sortBySimilarity(given, mainPermissions).join(', ')} or data:write:<type>`
    : `must be data:write:<type> with one of the types ${sortBySimilarity(type, resourceTypes).join(', ')}`;
}

export function permissionsOf(given: readonly string[]): Permission[] {
  return [...new Set(given)] as Permission[];
}

export const browserPermissions: readonly Permission[] = ['interactions:write'];

export const originRule =
  'must be an origin as browsers send it, such as https://shop.example: https, or http on localhost, a host in lower case, ' +
  'a port unless it is the usual one, and no slash at the end';

export function originProblem(origin: string): string | undefined {
  if (origin.length > limits.originCharactersMax || !URL.canParse(origin)) return originRule;
  const { origin: written, protocol, hostname } = new URL(origin);
  const isLocal = /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname);
  const isHost = isLocal || /^[a-z0-9.-]+$/.test(hostname);
  return written === origin && isHost && (protocol === 'https:' || (protocol === 'http:' && isLocal))
    ? undefined
    : originRule;
}

/** Excludes control characters and line separators. The pattern is written so that every regex dialect accepts it. */
const oneLine = '^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029]*$';
const oneLinePattern = new RegExp(oneLine);

export const organisationName = line(limits.organisationNameCodePointsMax);
export const keyLabel = line(limits.keyLabelCodePointsMax);

/** A field for text that is shown in lists and must therefore be a single line. */
function line(codePointsMax: number): Field {
  const field = text({ codePointsMax });
  const read = (value: unknown) =>
    typeof value === 'string' && !oneLinePattern.test(value) ? hasControls : field.read(value);
  return { ...field, schema: { ...field.schema, pattern: oneLine }, read };
}

const hasControls: Problem = {
  code: 'invalid_characters',
  message: 'must be one line, without control characters',
};

export const organisationLimits = {
  requests_per_second_max: { minimum: 1, maximum: 1_000_000 },
  interactions_per_second_max: { minimum: 1, maximum: 1_000_000 },
  records_per_second_max: { minimum: 1, maximum: 1_000_000_000 },
  bytes_in_flight_max: { minimum: 1_024, maximum: 2_147_483_647 },
  records_stored_max: { minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
  bytes_stored_max: { minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
} as const;
export type OrganisationLimit = keyof typeof organisationLimits;

export const keptDaysRange = { minimum: 1, maximum: 3_650 } as const;

/** `serviceDays` is how long the service keeps receipts and rejections. */
export function keptDaysProblem(type: KeptType, days: number, serviceDays: number): string | undefined {
  const { minimum, maximum } = keptDaysRange;
  if (!Number.isInteger(days) || days < minimum || days > maximum)
    return `must be a whole number of days from ${minimum} to ${maximum}`;
  return type === 'interactions' || days <= serviceDays
    ? undefined
    : `must be at most ${serviceDays} days: the service keeps no ${type} for longer (RECEIPTS_KEPT_DAYS)`;
}
