// The operator/parts/ folder contains components for the operator's screens, in addition to those that both consoles share.

import type { CSSProperties, ReactNode } from 'react';

export type BarTone = 'plain' | 'warn' | 'bad';

interface BarProps {
  /** The bar's length, from 0 to 1. */
  readonly share: number;
  readonly tone: BarTone;
  /** Whether the rows are sorted by this number. */
  readonly strong: boolean;
  readonly children: ReactNode;
}

/** Shows a number above a proportional bar, so that the largest number in a column stands out. */
export function Bar({ share, tone, strong, children }: BarProps) {
  const style = { '--share': `${(share * 100).toFixed(1)}%` } as CSSProperties;
  return (
    <span className={`bar bar-${tone}${strong ? ' bar-strong' : ''}`} style={style}>
      {children}
    </span>
  );
}
