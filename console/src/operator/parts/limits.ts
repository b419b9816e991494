import { formatBytes, formatNumber } from '../../format/format.ts';
import { type LimitName, limitNames, type OrganisationChange } from '../api/organisations.ts';
import type { Organisation } from '../api/types.ts';

export const limitTitles: Readonly<Record<LimitName, string>> = {
  requests_per_second_max: 'Requests per second',
  records_per_second_max: 'Records per second',
  interactions_per_second_max: 'Interactions per second',
  bytes_in_flight_max: 'Bytes in flight',
};

export function formatLimit(name: LimitName, value: number): string {
  return name === 'bytes_in_flight_max' ? formatBytes(value) : formatNumber(value);
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
};

/** The units in which the form takes them. */
export const limitInputUnits: Readonly<Record<LimitName, string>> = {
  ...limitUnits,
  bytes_in_flight_max: 'bytes',
};

/** The fields of the form: a limit that is not set is an empty field. */
export type LimitValues = Readonly<Record<LimitName, string>>;

export function limitValuesOf(organisation: Organisation): LimitValues {
  return Object.fromEntries(
    limitNames.map((name) => [name, organisation[name] === null ? '' : String(organisation[name])]),
  ) as LimitValues;
}

/** Only what differs, so that a limit that somebody else set meanwhile stays. */
export function changedLimits(organisation: Organisation, values: LimitValues): OrganisationChange {
  const wanted = limitNames.map(
    (name) => [name, values[name].trim() === '' ? null : Number(values[name])] as const,
  );
  return Object.fromEntries(
    wanted.filter(([name, value]) => value !== organisation[name]),
  ) as OrganisationChange;
}

/** What the command calls them: `--requests-per-second 50`. */
export function limitOptions(change: OrganisationChange): string {
  return limitNames
    .filter((name) => change[name] !== undefined)
    .map((name) => ` --${name.replace(/_max$/, '').replaceAll('_', '-')} ${change[name] ?? 'default'}`)
    .join('');
}
