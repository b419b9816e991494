// operator/parts/: what the operator's screens are made of, next to the parts that both consoles share.

import type { CSSProperties, ReactNode } from 'react';

export type BarTone = 'plain' | 'warn' | 'bad';

interface BarProps {
  /** From 0 to 1. */
  readonly share: number;
  readonly tone: BarTone;
  /** Whether the rows are ordered by this number. */
  readonly strong: boolean;
  readonly children: ReactNode;
}

/** A number above a bar of its size, so that the largest of a column is seen before any is read. */
export function Bar({ share, tone, strong, children }: BarProps) {
  const style = { '--share': `${(share * 100).toFixed(1)}%` } as CSSProperties;
  return (
    <span className={`bar bar-${tone}${strong ? ' bar-strong' : ''}`} style={style}>
      {children}
    </span>
  );
}
