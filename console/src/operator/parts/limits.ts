import { formatBytes, formatNumber } from '../../format/format.ts';
import {
  isQuota,
  type KeptName,
  type LimitName,
  limitNames,
  limitRanges,
  type OrganisationChange,
  type QuotaName,
} from '../api/organisations.ts';
import type { Organisation } from '../api/types.ts';
import type { BarTone } from './bar.tsx';

export const limitTitles: Readonly<Record<LimitName, string>> = {
  requests_per_second_max: 'Requests per second',
  records_per_second_max: 'Records per second',
  interactions_per_second_max: 'Interactions per second',
  bytes_in_flight_max: 'Bytes in flight',
  records_stored_max: 'Records stored',
  bytes_stored_max: 'Bytes stored',
};

export function formatLimit(name: LimitName, value: number): string {
  return name === 'bytes_in_flight_max' || name === 'bytes_stored_max'
    ? formatBytes(value)
    : formatNumber(value);
}

/** Formats a limit, such as "100,000 records/s". */
export function describeLimit(name: LimitName, value: number | null): string {
  return value === null ? '' : `${formatLimit(name, value)} ${limitUnits[name]}`;
}

const limitUnits: Readonly<Record<LimitName, string>> = {
  requests_per_second_max: 'requests/s',
  records_per_second_max: 'records/s',
  interactions_per_second_max: 'interactions/s',
  bytes_in_flight_max: 'in flight',
  records_stored_max: 'records stored',
  bytes_stored_max: 'stored',
};

/** Returns the hint that is shown below the form field. */
export function limitHint(name: LimitName): string {
  if (isQuota(name)) return `${name === 'bytes_stored_max' ? 'bytes' : 'records'}; empty: no quota`;
  const { min, max } = limitRanges[name];
  const unit = name === 'bytes_in_flight_max' ? 'bytes' : limitUnits[name];
  return `${formatNumber(min)} to ${formatNumber(max)} ${unit}; empty: service default`;
}

/** The share from which a quota counts as nearly used up. At the same share, the service warns the organisation. */
const nearShare = 0.8;

export interface QuotaUse {
  readonly used: number;
  readonly share: number;
  readonly tone: BarTone;
}

/** Returns a quota's usage, or undefined if there is no quota or its usage has not been measured yet. */
export function quotaUseOf(organisation: Organisation, name: QuotaName): QuotaUse | undefined {
  const max = organisation[name];
  const used = organisation[name === 'records_stored_max' ? 'records_stored' : 'bytes_stored'];
  if (max === null || used === null) return undefined;
  const share = used / max;
  if (share >= 1) return { used, share, tone: 'bad' };
  return { used, share, tone: share >= nearShare ? 'warn' : 'plain' };
}

/** Returns the initial values of a form with numbers. A number that is not set becomes an empty field. */
export function valuesOf<Name extends LimitName | KeptName>(
  organisation: Organisation,
  names: readonly Name[],
): Readonly<Record<Name, string>> {
  return Object.fromEntries(names.map((name) => [name, organisation[name]?.toString() ?? ''])) as Record<
    Name,
    string
  >;
}

/**
 * Returns only the numbers that the user changed, so that numbers that somebody else has set in the meantime are not
 * overwritten.
 */
export function changedNumbers(
  organisation: Organisation,
  values: Readonly<Partial<Record<LimitName | KeptName, string>>>,
): OrganisationChange {
  const wanted = Object.entries(values).map(
    ([name, value]) => [name, value.trim() === '' ? null : Number(value)] as const,
  );
  return Object.fromEntries(
    wanted.filter(([name, value]) => value !== organisation[name as LimitName | KeptName]),
  );
}

/** Returns the change as command options, such as `--requests-per-second 50`. */
export function limitOptions(change: OrganisationChange): string {
  return limitNames
    .filter((name) => change[name] !== undefined)
    .map((name) => ` --${name.replace(/_max$/, '').replaceAll('_', '-')} ${change[name] ?? 'default'}`)
    .join('');
}
