import 'uplot/dist/uPlot.min.css';
import './daily-chart.css';
import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import type { DayOfUploads } from '../../api/types.ts';
import { countOf, formatDay, formatNumber } from '../../format/format.ts';
import { themeChanged } from '../../frame/theme.ts';

const outcomes = [
  { name: 'complete', text: 'Complete', colour: '--chart-good' },
  { name: 'partial', text: 'Partial', colour: '--chart-warn' },
  { name: 'failed', text: 'Failed', colour: '--chart-bad' },
] as const;

const heightPx = 220;

/** Resolves a colour token in the current theme, because a canvas does not support custom properties. */
function resolveColour(place: HTMLElement, token: string): string {
  place.style.color = `var(${token})`;
  const colour = getComputedStyle(place).color;
  place.style.color = '';
  return colour;
}

/** Stacks the series. Each series is added to the ones below it, and the tallest one is drawn first. */
function stack(days: readonly DayOfUploads[]): uPlot.AlignedData {
  const places = days.map((_, at) => at);
  const heights = outcomes.map((_, at) =>
    days.map(({ uploads }) => outcomes.slice(0, at + 1).reduce((sum, { name }) => sum + uploads[name], 0)),
  );
  return [places, ...heights.toReversed()];
}

function optionsOf(
  place: HTMLElement,
  days: readonly DayOfUploads[],
  onDay: (at: number | null) => void,
): uPlot.Options {
  const text = resolveColour(place, '--muted');
  const grid = { stroke: resolveColour(place, '--line'), width: 1 };
  const font = '12px system-ui, sans-serif';
  const paths = uPlot.paths.bars?.({ size: [0.7, 48] });
  return {
    width: place.clientWidth,
    height: heightPx,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: [-0.6, days.length - 0.4] },
      y: { range: (_, __, max) => [0, Math.max(4, Math.ceil(max * 1.05))] },
    },
    axes: [
      {
        stroke: text,
        font,
        grid: { show: false },
        ticks: { show: false },
        splits: () => days.map((_, at) => at),
        values: (plot, splits) => {
          const every = Math.ceil(splits.length / Math.max(1, Math.floor(plot.width / 64)));
          return splits.map((at) =>
            (days.length - 1 - at) % every === 0 ? formatDay(days[at]?.day ?? '') : '',
          );
        },
      },
      {
        stroke: text,
        font,
        grid,
        ticks: { show: false },
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000],
        values: (_, splits) => splits.map((value) => formatNumber(value)),
      },
    ],
    series: [
      {},
      ...outcomes.toReversed().map(({ colour }) => ({
        fill: resolveColour(place, colour),
        width: 0,
        points: { show: false },
        ...(paths ? { paths } : {}),
      })),
    ],
    hooks: { setCursor: [({ cursor }) => onDay(cursor.idx ?? null)] },
  };
}

/** Shows the uploads per day. The chart is hidden from screen readers, because the table below it has the same numbers. */
export default function DailyChart({ days }: { readonly days: readonly DayOfUploads[] }) {
  const place = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const colours = useColours();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the chart must be redrawn when the colours change.
  useEffect(() => {
    const parent = place.current;
    if (parent === null) return;
    const plot = new uPlot(optionsOf(parent, days, setAt), stack(days), parent);
    const resized = new ResizeObserver(() => plot.setSize({ width: parent.clientWidth, height: heightPx }));
    resized.observe(parent);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [days, colours]);
  return (
    <div className="chart" aria-hidden="true">
      <div className="chart-place" ref={place} />
      <div className="chart-foot">
        {outcomes.map(({ name, text }) => (
          <span key={name} className={`chart-key chart-key-${name}`}>
            {text}
          </span>
        ))}
        <span className="chart-day">{at === null ? '' : dayText(days[at])}</span>
      </div>
    </div>
  );
}

function dayText(day: DayOfUploads | undefined): string {
  if (day === undefined) return '';
  const { complete, partial, failed } = day.uploads;
  return `${formatDay(day.day)}: ${complete} complete, ${partial} partial, ${failed} failed; ${countOf(day.records.received, 'record')}`;
}

/** Returns the number of theme changes so far, whether caused by the switch or by the system. */
function useColours(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const system = matchMedia('(prefers-color-scheme: dark)');
    const count = () => setChanges((before) => before + 1);
    system.addEventListener('change', count);
    document.addEventListener(themeChanged, count);
    return () => {
      system.removeEventListener('change', count);
      document.removeEventListener(themeChanged, count);
    };
  }, []);
  return changes;
}
