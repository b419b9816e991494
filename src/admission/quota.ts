import { RequestError } from '../errors.ts';

/** From this share of a quota on, answers state what is used; note_quota_usage in the database has the same number. */
export const nearShare = 0.8;

/** What an organisation may store; null without a quota. */
export interface OrganisationQuota {
  readonly records_stored_max: number | null;
  readonly bytes_stored_max: number | null;
}

/** What it has stored, as last measured; null without a quota, or before the first measurement. */
export interface QuotaUsage {
  readonly records_stored: number | null;
  readonly bytes_stored: number | null;
}

/** One quota of which at least 80 % is used. */
interface NearQuota {
  readonly what: 'records' | 'bytes';
  readonly used: number;
  readonly max: number;
}

/** The state of an organisation that has used at least 80 % of a quota. */
export interface Quota {
  /** For `Intake-Quota`, a structured field like those of rate limits. */
  readonly header: string;
  /** The same for the console. */
  readonly near: readonly NearQuota[];
  /** Undefined while more may be stored. */
  readonly exceeded: NearQuota | undefined;
}

/** Undefined for organisations without a quota, and for those that have used less than 80 % of theirs. */
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

/** Undefined while more may be stored. A visitor with a browser key is not shown how much the organisation has. */
export function quotaRefusal(
  quota: Quota | undefined,
  visitor: string | undefined,
): RequestError | undefined {
  if (!quota?.exceeded) return undefined;
  const { what, used, max } = quota.exceeded;
  const problem = `The organisation may store ${max} ${what} and has ${used}`;
  return new RequestError('quota_exceeded', visitor === undefined ? { problem } : {});
}
