import { RequestError } from '../errors.ts';

/** Responses report usage from this share on. The database function `note_quota_usage` uses the same number. */
export const nearShare = 0.8;

/** A field is null if there is no such quota. */
export interface OrganisationQuota {
  readonly records_stored_max: number | null;
  readonly bytes_stored_max: number | null;
}

/** Null if there is no quota, or before the first measurement. */
export interface QuotaUsage {
  readonly records_stored: number | null;
  readonly bytes_stored: number | null;
}

interface NearQuota {
  readonly what: 'records' | 'bytes';
  readonly used: number;
  readonly max: number;
}

export interface Quota {
  /** The value of the `Intake-Quota` header, a structured field like the rate-limit headers. */
  readonly header: string;
  /** The same data for the console. */
  readonly near: readonly NearQuota[];
  readonly exceeded: NearQuota | undefined;
}

/** Undefined if less than 80 % of each quota is used. */
export function quotaOf(own: OrganisationQuota & QuotaUsage): Quota | undefined {
  const near = (['records', 'bytes'] as const).flatMap((what): NearQuota[] => {
    const [used, max] = [own[`${what}_stored`], own[`${what}_stored_max`]];
    return used !== null && max !== null && used >= nearShare * max ? [{ what, used, max }] : [];
  });
  if (near.length === 0) return undefined;
  return {
    header: near.map(({ what, used, max }) => `"${what}";used=${used};max=${max}`).join(', '),
    near,
    exceeded: near.find(({ used, max }) => used >= max),
  };
}

/** Visitors with a browser key do not see the organisation's usage. */
export function quotaRefusal(
  quota: Quota | undefined,
  visitor: string | undefined,
): RequestError | undefined {
  if (!quota?.exceeded) return undefined;
  const { what, used, max } = quota.exceeded;
  const problem = `The organisation may store ${max} ${what} and has ${used}`;
  return new RequestError('quota_exceeded', visitor === undefined ? { problem } : {});
}
