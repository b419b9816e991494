import { Badge } from '../../parts/badge.tsx';
import type { QuotaName } from '../api/organisations.ts';
import type { Organisation } from '../api/types.ts';
import { Bar } from './bar.tsx';
import { formatLimit, quotaUseOf } from './limits.ts';

interface QuotaBarProps {
  readonly organisation: Organisation;
  readonly name: QuotaName;
}

/** Shows how much of a quota is used. */
export function QuotaBar({ organisation, name }: QuotaBarProps) {
  const quota = organisation[name];
  if (quota === null) return <span className="muted">no quota</span>;
  const use = quotaUseOf(organisation, name);
  if (use === undefined) return `${formatLimit(name, quota)}, not measured yet`;
  const { used, share, tone } = use;
  return (
    <Bar share={Math.min(1, share)} tone={tone} strong={false}>
      {formatLimit(name, used)} of {formatLimit(name, quota)}{' '}
      <Badge tone={tone}>{`${Math.floor(share * 100)} %`}</Badge>
    </Bar>
  );
}
