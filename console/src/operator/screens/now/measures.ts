import { formatBytes, formatNumber } from '../../../format/format.ts';
import type { Traffic } from '../../api/types.ts';
import type { BarTone } from '../../parts/bar.tsx';

interface Measure {
  readonly title: string;
  readonly tone: BarTone;
  readonly format: (value: number) => string;
}

/** An organisation's measured quantities, in column order. */
export const measures: Readonly<Record<keyof Traffic, Measure>> = {
  requests: { title: 'Requests', tone: 'plain', format: formatNumber },
  records: { title: 'Records', tone: 'plain', format: formatNumber },
  interactions: { title: 'Interactions', tone: 'plain', format: formatNumber },
  bytes: { title: 'Bytes', tone: 'plain', format: formatBytes },
  rejections: { title: 'Rejections', tone: 'warn', format: formatNumber },
  limits_hit: { title: 'Limits hit', tone: 'bad', format: formatNumber },
};

export const measureNames = Object.keys(measures) as (keyof Traffic)[];
export const defaultMeasure = 'requests';

export const minuteChoices = [1, 5, 15, 60] as const;
export const defaultMinutes = 5;
