import { colours } from './dashboard.ts';

/** This file draws a dashboard's panels as one SVG for the documentation, without Grafana. */

export interface Series {
  readonly name: string;
  /** Pairs of a time in seconds and a value, ordered by time. */
  readonly points: readonly (readonly [number, number])[];
}

export interface DrawnPanel {
  readonly title: string;
  readonly unit: string;
  readonly series: readonly Series[];
}

/** A single number in green, orange or red, or in blue if the number is neither good nor bad. */
export interface DrawnTile {
  readonly title: string;
  readonly text: string;
  readonly colour: string;
}

export interface Picture {
  readonly title: string;
  readonly fromSeconds: number;
  readonly toSeconds: number;
  /** The interval between points. A gap of more than 1.5 intervals interrupts the line. */
  readonly stepSeconds: number;
  readonly tiles: readonly DrawnTile[];
  readonly panels: readonly DrawnPanel[];
  /** The alerts that fired, with the times at which they fired. */
  readonly alerts: readonly Series[];
}

const [width, margin, gap, columns] = [980, 12, 16, 2];
const panelWidth = (width - 2 * margin - (columns - 1) * gap) / columns;
const [axisWidth, plotHeight, titleHeight, axisHeight, legendLine] = [58, 120, 26, 20, 16];
const plotWidth = panelWidth - axisWidth - 8;
const legendRowsMax = 3;

const style = `
  text { font: 11px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2933; }
  .page { fill: #ffffff; } .head { font-size: 15px; font-weight: 600; } .title { font-size: 12.5px; font-weight: 600; }
  .quiet { fill: #5f6b7a; } .number { font-variant-numeric: tabular-nums; }
  .grid { stroke: #dfe3e8; } .line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
  .alert { fill: #c8402f; }
  .tile { rx: 4; } .on-tile { fill: #ffffff; font-size: 10px; } .value { font-size: 21px; font-weight: 600; }
  .c0 { stroke: #3b78c2; } .c1 { stroke: #d9a514; } .c2 { stroke: #17a2a2; } .c3 { stroke: #c7609f; }
  .c4 { stroke: #8a6a4a; } .c5 { stroke: #6b7683; }
  .red { stroke: #c8402f; } .orange { stroke: #e0912f; } .green { stroke: #2f9e68; } .blue { stroke: #3b78c2; }
  .purple { stroke: #8156b8; }
  .fill-red { fill: #b93628; } .fill-orange { fill: #b8690c; } .fill-green { fill: #24794f; } .fill-blue { fill: #38618f; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e9ee; } .page { fill: #14181f; } .quiet { fill: #9aa5b4; } .grid { stroke: #333b47; }
    .c0, .blue { stroke: #6aa5ee; } .purple { stroke: #a987da; } .c4 { stroke: #b8977a; } .c5 { stroke: #98a2b0; }
    .red { stroke: #ea6a5a; }
  }`;
const others = 6;
const colourOf = (name: string, at: number) =>
  colours.find(([pattern]) => pattern.test(name))?.[1] ?? `c${at % others}`;

export function drawDashboard(picture: Picture): string {
  const parts = [
    `<text class="head" x="${margin}" y="26">${escapeText(picture.title)}</text>`,
    `<text class="quiet" x="${width - margin}" y="26" text-anchor="end">minutes and seconds from the beginning</text>`,
  ];
  let top = 44;
  if (picture.tiles.length > 0) {
    parts.push(drawTiles(picture.tiles, top));
    top += tileHeight + gap;
  }
  if (picture.alerts.length > 0) {
    const lanes = drawAlerts(picture, top);
    parts.push(lanes.svg);
    top = lanes.bottom + gap;
  }
  for (let at = 0; at < picture.panels.length; at += columns) {
    const row = picture.panels.slice(at, at + columns).map((panel, column) => {
      const left = margin + column * (panelWidth + gap);
      return drawPanel(picture, panel, left, top);
    });
    parts.push(...row.map(({ svg }) => svg));
    top = Math.max(...row.map(({ bottom }) => bottom)) + gap;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${top}" width="${width}" height="${top}" role="img" aria-label="${escapeText(picture.title)}">
<style>${style}
</style>
<rect class="page" width="${width}" height="${top}"/>
${parts.join('\n')}
</svg>
`;
}

const tileHeight = 62;

function drawTiles(tiles: readonly DrawnTile[], top: number): string {
  const space = 8;
  const each = (width - 2 * margin - (tiles.length - 1) * space) / tiles.length;
  return tiles
    .map(({ title, text, colour }, at) => {
      const left = round(margin + at * (each + space));
      const middle = round(left + each / 2);
      return `<rect class="tile fill-${colour}" x="${left}" y="${top}" width="${round(each)}" height="${tileHeight}"/>
<text class="on-tile" x="${middle}" y="${top + 18}" text-anchor="middle">${escapeText(title)}</text>
<text class="on-tile value" x="${middle}" y="${top + 46}" text-anchor="middle">${escapeText(text)}</text>`;
    })
    .join('\n');
}

/** Draws a lane for each alert, with a bar while it was firing. */
function drawAlerts(picture: Picture, top: number): { svg: string; bottom: number } {
  const nameWidth = 250;
  const laneWidth = width - 2 * margin - nameWidth;
  const first = top + titleHeight;
  const x = timeScale(picture, margin + nameWidth, laneWidth);
  const lanes = picture.alerts.map(({ name, points }, lane) => {
    const y = first + lane * legendLine;
    const bars = runsOf(points, picture.stepSeconds).map(([from, to]) => {
      const length = Math.max(2, x(to) - x(from));
      return `<rect class="alert" x="${x(from)}" y="${y + 3}" width="${round(length)}" height="9" rx="1.5"/>`;
    });
    return `<text x="${margin}" y="${y + 12}">${escapeText(name)}</text>${bars.join('')}`;
  });
  const bottom = first + picture.alerts.length * legendLine;
  const axis = drawTimes(picture, x, first, bottom);
  const title = `<text class="title" x="${margin}" y="${top + 14}">Alerts that fire</text>`;
  return { svg: [title, axis, ...lanes].join('\n'), bottom: bottom + axisHeight };
}

function drawPanel(picture: Picture, panel: DrawnPanel, left: number, top: number) {
  const { title, unit, series } = panel;
  const [plotLeft, plotTop] = [left + axisWidth, top + titleHeight];
  const plotBottom = plotTop + plotHeight;
  const values = series.flatMap(({ points }) => points.map(([, value]) => value).filter(Number.isFinite));
  const step = stepFor(Math.max(...values, 0), unit);
  const end = Math.max(step, Math.ceil(Math.max(...values, 0) / step - 1e-6) * step);
  const x = timeScale(picture, plotLeft, plotWidth);
  const y = (value: number) => round(plotBottom - (Math.min(value, end) / end) * plotHeight);
  const marks = Array.from({ length: Math.round(end / step) + 1 }, (_, at) => at * step);
  const grid = marks.map(
    (
      mark,
    ) => `<line class="grid" x1="${plotLeft}" x2="${round(plotLeft + plotWidth)}" y1="${y(mark)}" y2="${y(mark)}"/>
<text class="quiet number" x="${plotLeft - 6}" y="${y(mark) + 4}" text-anchor="end">${valueText(mark, unit)}</text>`,
  );
  const lines = series.map(({ name, points }, at) => {
    const path = pathOf(points, picture.stepSeconds, x, y);
    return `<path class="line ${colourOf(name, at)}" d="${path}"/>`;
  });
  const legend = drawLegend(series, left, plotBottom + axisHeight + 12);
  const parts = [
    `<text class="title" x="${left}" y="${top + 14}">${escapeText(title)}</text>`,
    ...grid,
    drawTimes(picture, x, plotTop, plotBottom),
    ...lines,
    legend.svg,
  ];
  if (values.length === 0)
    parts.push(
      `<text class="quiet" x="${plotLeft + plotWidth / 2}" y="${plotTop + 60}" text-anchor="middle">no data</text>`,
    );
  return { svg: parts.join('\n'), bottom: legend.bottom };
}

function drawLegend(series: readonly Series[], left: number, top: number): { svg: string; bottom: number } {
  let [x, row] = [left, 0];
  const items: string[] = [];
  for (const [at, { name }] of series.entries()) {
    const itemWidth = 30 + name.length * 6.3;
    if (x > left && x + itemWidth > left + panelWidth) [x, row] = [left, row + 1];
    const y = top + row * legendLine;
    if (row === legendRowsMax) {
      const more = `and ${series.length - at} more`;
      items.push(`<text class="quiet" x="${left}" y="${y}">${more}</text>`);
      break;
    }
    items.push(
      `<path class="line ${colourOf(name, at)}" d="M${round(x)} ${y - 4}h14"/><text x="${round(x + 18)}" y="${y}">${escapeText(name)}</text>`,
    );
    x += itemWidth;
  }
  return { svg: items.join('\n'), bottom: top + row * legendLine + 4 };
}

/** Draws a line per tick, labelled with the minutes since the start. */
function drawTimes(picture: Picture, x: (seconds: number) => number, top: number, bottom: number): string {
  const { fromSeconds, toSeconds } = picture;
  const seconds = toSeconds - fromSeconds;
  const every =
    [5, 15, 30, 60, 120, 300, 600, 1_800, 3_600].find((each) => seconds / each <= 7) ?? seconds / 6;
  const marks = Array.from({ length: Math.floor(seconds / every) + 1 }, (_, at) => at * every);
  return marks
    .map((mark) => {
      const at = x(fromSeconds + mark);
      const text = `${Math.floor(mark / 60)}:${String(Math.round(mark % 60)).padStart(2, '0')}`;
      return `<line class="grid" x1="${at}" x2="${at}" y1="${top}" y2="${bottom}"/><text class="quiet number" x="${at}" y="${bottom + 14}" text-anchor="middle">${text}</text>`;
    })
    .join('\n');
}

function timeScale({ fromSeconds, toSeconds }: Picture, left: number, length: number) {
  return (seconds: number) =>
    round(left + ((seconds - fromSeconds) / Math.max(1, toSeconds - fromSeconds)) * length);
}

function pathOf(
  points: Series['points'],
  stepSeconds: number,
  x: (seconds: number) => number,
  y: (value: number) => number,
): string {
  let path = '';
  let last = Number.NEGATIVE_INFINITY;
  for (const [seconds, value] of points) {
    if (!Number.isFinite(value)) continue;
    path += `${seconds - last > stepSeconds * 1.5 ? 'M' : 'L'}${x(seconds)} ${y(value)}`;
    last = seconds;
  }
  return path;
}

/** Returns the ranges of points that have no gap between them. */
function runsOf(points: Series['points'], stepSeconds: number): [number, number][] {
  const runs: [number, number][] = [];
  for (const [seconds] of points) {
    const run = runs.at(-1);
    if (run && seconds - run[1] <= stepSeconds * 1.5) run[1] = seconds;
    else runs.push([seconds, seconds]);
  }
  return runs;
}

/** Returns a round step that results in three to five ticks. */
function stepFor(largest: number, unit: string): number {
  if (largest <= 0) return 1;
  const base = unit === 'bytes' ? 1_000 : 10;
  const power = base ** Math.floor(Math.log(Math.max(largest, 1e-3)) / Math.log(base));
  const steps = [1, 2, 2.5, 5, 10, 20, 25, 50, 100, 200, 250, 500, 1_000];
  return power * ((steps.find((step) => largest / (step * power * 0.1) <= 4) ?? 10) * 0.1);
}

export function valueText(value: number, unit: string): string {
  const short = (number: number) => String(Number(number.toPrecision(3)));
  if (unit === 'percentunit') return `${short(value * 100)} %`;
  if (unit === 'd') return `${short(value)} d`;
  if (unit === 's') return value > 0 && value < 1 ? `${short(value * 1_000)} ms` : `${short(value)} s`;
  const scale = [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ].find(([size]) => value >= (size as number)) as [number, string] | undefined;
  const text =
    scale && (unit === 'bytes' || value >= 1e4) ? `${short(value / scale[0])} ${scale[1]}` : short(value);
  return unit === 'bytes' ? `${text}${scale ? '' : ' '}B` : text;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escapeText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
