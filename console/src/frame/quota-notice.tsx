import { useQuery } from '@tanstack/react-query';
import { sessionQuery } from '../api/session.ts';
import type { NearQuota, Session } from '../api/types.ts';
import { formatBytes, formatNumber } from '../format/format.ts';

/** Shows the quotas that are at least 80 % used. Fetches them again if the session data is old. */
export function QuotaNotice() {
  const { data } = useQuery(sessionQuery<Session>());
  const quotas = data?.quotas ?? [];
  if (quotas.length === 0) return null;
  const isUsedUp = quotas.some(({ used, max }) => used >= max);
  return (
    <div className={isUsedUp ? 'notice notice-bad' : 'notice'}>
      <p className="notice-title">
        {isUsedUp
          ? 'The quota is used up: nothing more can be stored.'
          : 'Most of the quota of this organisation is used.'}
      </p>
      <ul className="plain-list">
        {quotas.map((quota) => (
          <li key={quota.what}>{usedOf(quota)}</li>
        ))}
      </ul>
      <p>
        Remove data that is no longer needed, with a retention period or erasures, or ask the operator of the
        service for a larger quota.
      </p>
    </div>
  );
}

/**
 * Formats the usage, such as "41,200,000 of 50,000,000 records (82 %)". It rounds down, so that 99.9 % does not look full.
 */
function usedOf({ what, used, max }: NearQuota): string {
  const amounts =
    what === 'bytes'
      ? `${formatBytes(used)} of ${formatBytes(max)}`
      : `${formatNumber(used)} of ${formatNumber(max)} records`;
  return max > 0 ? `${amounts} (${Math.floor((100 * used) / max)} %)` : amounts;
}
