import type { Result } from './run.ts';

const width = 860;
const height = 220;
const left = 44;
const bottom = 34;

/** Works on light and dark pages, because the background is transparent. */
const style = `
  text { font: 12px system-ui, sans-serif; fill: #5f6b7a; }
  .bar { fill: #3b78c2; } .fault { stroke: #e0912f; stroke-width: 1.5; } .axis { stroke: #98a2b0; }
  @media (prefers-color-scheme: dark) { text { fill: #9aa5b4; } .bar { fill: #5b9bea; } }`;

/** Draws the successful requests in each second of a run, with a line at the beginning of each fault. */
export function plotOf({ succeededPerSecond, recoveries, plan }: Result): string {
  const last = Math.max(1, (recoveries.at(-1)?.second ?? 0) + 15);
  const shown = succeededPerSecond.slice(0, last);
  const most = Math.max(1, ...shown);
  const step = (width - left) / last;
  const scale = (height - bottom - 10) / most;
  const floor = height - bottom;
  const bars = shown.map((count, second) => {
    const [x, y] = [left + second * step, floor - count * scale].map((value) => value.toFixed(1));
    return `<rect class="bar" x="${x}" y="${y}" width="${Math.max(0.5, step - 0.3).toFixed(1)}" height="${(count * scale).toFixed(1)}"/>`;
  });
  const faults = recoveries.map(({ second, kind }) => {
    const x = (left + second * step).toFixed(1);
    return `<line class="fault" x1="${x}" x2="${x}" y1="6" y2="${floor}"><title>${second} s: ${kind}</title></line>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="Successful requests per second, and faults">
<style>${style}
</style>
<text x="0" y="16">${most}/s</text>
<line class="axis" x1="${left}" x2="${width}" y1="${floor}" y2="${floor}"/>
${bars.join('\n')}
${faults.join('\n')}
<text x="${left}" y="${height - 12}">0 to ${last} s of seed ${plan.seed}: successful requests per second; each line is a fault</text>
</svg>
`;
}
