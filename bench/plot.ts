import { type Comparison, type Goal, isMet, median } from './case.ts';

const width = 860;
const left = 236;
const right = 190;
const rowHeight = 26;
const barHeight = 12;
const plotWidth = width - left - right;

/** Colours for light and dark pages, because the background is transparent. "Met" and "not met" also differ in lightness. */
const style = `
  text { font: 12px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2933; }
  .title { font-size: 14px; font-weight: 600; }
  .quiet { fill: #5f6b7a; }
  .number { font-variant-numeric: tabular-nums; }
  .met { fill: #3b78c2; } .missed { fill: #e0912f; } .open { fill: #98a2b0; }
  .grid { stroke: #d5dae1; stroke-width: 1; }
  .goal { stroke: #1f2933; stroke-width: 2.5; }
  .whisker { stroke: #1f2933; stroke-width: 1.2; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ee; } .quiet { fill: #9aa5b4; }
    .met { fill: #5b9bea; } .missed { fill: #d98a2b; } .open { fill: #7a8594; }
    .grid { stroke: #3a424e; } .goal, .whisker { stroke: #f2f4f7; }
  }`;

/**
 * Draws the ratio of each case as a bar, its goal as a tick, and the range of its rounds as a whisker. Skips cases whose
 * goal is a range, because neither a higher nor a lower ratio is better.
 */
export function plotOf(all: readonly Comparison[]): string {
  const comparisons = all.filter(({ within }) => within === undefined);
  const wantsLess = ({ goal }: Comparison) => goal !== undefined && 'atMost' in goal;
  const sections = [
    {
      title: 'Through Intake, as a multiple of the yardstick: more is better',
      lines: comparisons.filter((one) => !wantsLess(one)),
    },
    {
      title: 'Cost and latency, as a multiple of the yardstick or limit: less is better',
      lines: comparisons.filter(wantsLess),
    },
  ].filter(({ lines }) => lines.length > 0);
  let top = 8;
  const drawn = sections.map(({ title, lines }) => {
    const section = drawSection(title, lines, top);
    top = section.bottom + 18;
    return section.svg;
  });
  const legend = drawLegend(top);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top + 28}" width="${width}" height="${top + 28}" role="img" aria-label="Ratios of every case of the bench with their goals">
<style>${style}
</style>
${drawn.join('\n')}
${legend}
</svg>
`;
}

function drawSection(
  title: string,
  lines: readonly Comparison[],
  top: number,
): { svg: string; bottom: number } {
  const largest = Math.max(...lines.flatMap(({ ratios, goal }) => [...ratios, goal ? goalOf(goal) : 0]));
  const step = stepFor(largest);
  const end = Math.ceil((largest * 1.02) / step) * step;
  const x = (ratio: number) => round(left + (ratio / end) * plotWidth);
  const first = top + 44;
  const bottom = first + lines.length * rowHeight;
  const marks = Array.from({ length: Math.round(end / step) + 1 }, (_, at) => at * step);
  const grid = marks.map(
    (mark) => `<line class="grid" x1="${x(mark)}" x2="${x(mark)}" y1="${first - 4}" y2="${bottom}"/>
<text class="quiet number" x="${x(mark)}" y="${first - 10}" text-anchor="middle">${Number(mark.toFixed(2))}</text>`,
  );
  const bars = lines.map((line, at) => drawLine(line, first + at * rowHeight + rowHeight / 2, x));
  const svg = [
    `<text class="title" x="8" y="${top + 14}">${escapeText(title)}</text>`,
    ...grid,
    ...bars,
  ].join('\n');
  return { svg, bottom };
}

function drawLine(line: Comparison, middle: number, x: (ratio: number) => number): string {
  const { name, ratios, goal } = line;
  const ratio = median(ratios);
  const [low, high] = [Math.min(...ratios), Math.max(...ratios)];
  const met = isMet(line);
  const state = met === undefined ? 'open' : met ? 'met' : 'missed';
  const said = goal
    ? `${'atLeast' in goal ? '≥' : '≤'} ${goalOf(goal)} ${met ? 'met' : 'not met'}`
    : 'no goal';
  const parts = [
    `<text x="${left - 10}" y="${middle + 4}" text-anchor="end">${escapeText(name)}</text>`,
    `<rect class="${state}" x="${left}" y="${middle - barHeight / 2}" width="${round(x(ratio) - left)}" height="${barHeight}" rx="1.5"/>`,
    `<path class="whisker" fill="none" d="M${x(low)} ${middle}H${x(high)}M${x(low)} ${middle - 3}v6M${x(high)} ${middle - 3}v6"/>`,
    `<text class="number" x="${width - right + 12}" y="${middle + 4}">${ratio.toFixed(2)}</text>`,
    `<text class="quiet" x="${width - right + 60}" y="${middle + 4}">${said}</text>`,
  ];
  if (goal) {
    const at = x(goalOf(goal));
    parts.push(`<line class="goal" x1="${at}" x2="${at}" y1="${middle - 10}" y2="${middle + 10}"/>`);
  }
  return parts.join('\n');
}

function drawLegend(top: number): string {
  const y = top + 10;
  const items = [
    { mark: `<rect class="met" x="0" y="${y - 9}" width="18" height="10"/>`, text: 'goal met' },
    { mark: `<rect class="missed" x="0" y="${y - 9}" width="18" height="10"/>`, text: 'goal not met' },
    { mark: `<line class="goal" x1="9" x2="9" y1="${y - 12}" y2="${y + 4}"/>`, text: 'goal' },
    {
      mark: `<path class="whisker" fill="none" d="M0 ${y - 4}H18M0 ${y - 7}v6M18 ${y - 7}v6"/>`,
      text: 'lowest and highest round; bars end at the median',
    },
  ];
  let offset = left;
  return items
    .map(({ mark, text }) => {
      const item = `<g transform="translate(${offset} 0)">${mark}<text class="quiet" x="24" y="${y}">${text}</text></g>`;
      offset += 44 + text.length * 6.4;
      return item;
    })
    .join('\n');
}

function goalOf(goal: Goal): number {
  return 'atLeast' in goal ? goal.atLeast : goal.atMost;
}

/** Returns a round step that results in four to ten ticks. */
function stepFor(largest: number): number {
  const steps = [0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20, 50];
  return steps.find((step) => largest / step <= 8) ?? largest / 5;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
