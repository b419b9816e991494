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

/** "100,000 records/s". */
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

/** Below the field of the form. */
export function limitHint(name: LimitName): string {
  if (isQuota(name)) return `${name === 'bytes_stored_max' ? 'bytes' : 'records'}; empty: no quota`;
  const { min, max } = limitRanges[name];
  const unit = name === 'bytes_in_flight_max' ? 'bytes' : limitUnits[name];
  return `${formatNumber(min)} to ${formatNumber(max)} ${unit}; empty: service default`;
}

/** As the service: from here on it warns the organisation too. */
const nearShare = 0.8;

export interface QuotaUse {
  readonly used: number;
  readonly share: number;
  readonly tone: BarTone;
}

/** Undefined without a quota, and until it is first measured. */
export function quotaUseOf(organisation: Organisation, name: QuotaName): QuotaUse | undefined {
  const max = organisation[name];
  const used = organisation[name === 'records_stored_max' ? 'records_stored' : 'bytes_stored'];
  if (max === null || used === null) return undefined;
  const share = used / max;
  if (share >= 1) return { used, share, tone: 'bad' };
  return { used, share, tone: share >= nearShare ? 'warn' : 'plain' };
}

/** The fields of a form of numbers: one that is not set is an empty field. */
export function valuesOf<Name extends LimitName | KeptName>(
  organisation: Organisation,
  names: readonly Name[],
): Readonly<Record<Name, string>> {
  return Object.fromEntries(names.map((name) => [name, organisation[name]?.toString() ?? ''])) as Record<
    Name,
    string
  >;
}

/** Only what differs, so that a number that somebody else set meanwhile stays. */
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

/** What the command calls them: `--requests-per-second 50`. */
export function limitOptions(change: OrganisationChange): string {
  return limitNames
    .filter((name) => change[name] !== undefined)
    .map((name) => ` --${name.replace(/_max$/, '').replaceAll('_', '-')} ${change[name] ?? 'default'}`)
    .join('');
}
