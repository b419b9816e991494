import type { Counts } from '../../api/types.ts';
import { formatNumber } from '../../format/format.ts';

export const countNames = {
  received: 'Received',
  created: 'Created',
  updated: 'Updated',
  unchanged: 'Unchanged',
  stale: 'Stale',
  failed: 'Failed',
} as const satisfies Record<keyof Counts, string>;

export const counted = Object.keys(countNames) as (keyof typeof countNames)[];

interface CountListProps {
  readonly counts: Counts;
  /** Counts that no receipt has. */
  readonly others?: readonly (readonly [name: string, count: number])[];
}

export function CountList({ counts, others = [] }: CountListProps) {
  const shown = [...counted.map((name) => [countNames[name], counts[name]] as const), ...others];
  return (
    <>
      <dl className="counts" aria-label="Records">
        {shown.map(([name, count]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{formatNumber(count)}</dd>
          </div>
        ))}
      </dl>
      {counts.stale > 0 && (
        <p className="hint">Stale records are older than what is stored, so they changed nothing.</p>
      )}
    </>
  );
}
