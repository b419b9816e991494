import { type KeptName, keptNames, type OrganisationChange } from '../../../api/organisations.ts';
import type { Organisation } from '../../../api/types.ts';

export const keptTitles: Readonly<Record<KeptName, string>> = {
  interactions_kept_days: 'Interactions',
  receipts_kept_days: 'Receipts',
  rejections_kept_days: 'Rejections',
};

/**
 * Returns the retention that applies if the organisation does not set its own, or undefined until it is loaded. Interactions
 * are kept forever by default.
 */
export function defaultDays(name: KeptName, serviceDays: number | undefined): number | undefined {
  return name === 'interactions_kept_days' ? Number.POSITIVE_INFINITY : serviceDays;
}

/** Returns the kinds of data whose retention becomes shorter, which means that data will be deleted. */
export function shortened(
  organisation: Organisation,
  change: OrganisationChange,
  serviceDays: number | undefined,
): KeptName[] {
  return keptNames.filter((name) => {
    const before = organisation[name] ?? defaultDays(name, serviceDays) ?? Number.POSITIVE_INFINITY;
    return (change[name] ?? Number.POSITIVE_INFINITY) < before;
  });
}

/** Returns the change as command options, such as `--interactions 90d`. */
export function retentionOptions(change: OrganisationChange): string {
  return keptNames
    .filter((name) => change[name] !== undefined)
    .map((name) => {
      const days = change[name];
      return ` --${name.replace('_kept_days', '')} ${days === null ? 'off' : `${days}d`}`;
    })
    .join('');
}
