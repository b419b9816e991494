import { readFileSync } from 'node:fs';
import { type DrawnTile, drawDashboard, type Picture, type Series, valueText } from './dashboard-picture.ts';

/**
 * Draws a dashboard from the last `<seconds>` seconds of a Prometheus server's data. Collapsed sections are skipped.
 * Usage: `node scripts/draw-dashboard.ts <dashboard.json> <http://prometheus:9090> <seconds> > dashboard.svg`
 */
export async function pictureOf(
  file: string,
  prometheus: string,
  { fromSeconds, toSeconds, scrapeSeconds = 15 }: Shown,
): Promise<string> {
  const dashboard = JSON.parse(readFileSync(file, 'utf8')) as Grafana;
  const stepSeconds = Math.max(1, Math.round((toSeconds - fromSeconds) / 150));
  // This is the same formula as in Grafana.
  const rateSeconds = Math.max(4 * scrapeSeconds, stepSeconds + scrapeSeconds);
  const range = { fromSeconds, toSeconds, stepSeconds, rateSeconds };
  const ask = (expression: string, legend: string) => rangeOf(prometheus, expression, legend, range);
  const seriesOf = async ({ targets }: GrafanaPanel) =>
    (await Promise.all(targets.map(({ expr, legendFormat }) => ask(expr, legendFormat)))).flat();
  const ofType = (type: string) => dashboard.panels.filter((panel) => panel.type === type);
  const panels: Picture['panels'] = await Promise.all(
    ofType('timeseries').map(async (panel) => ({
      title: panel.title,
      unit: panel.fieldConfig.defaults.unit,
      series: await seriesOf(panel),
    })),
  );
  const tiles = await Promise.all(ofType('stat').map(async (panel) => tileOf(panel, await seriesOf(panel))));
  const alerts = (await Promise.all(ofType('state-timeline').map(seriesOf))).flat();
  return drawDashboard({ title: dashboard.title, ...range, tiles, panels, alerts });
}

/** Returns a tile with the newest value. */
function tileOf({ title, fieldConfig, options }: GrafanaPanel, series: readonly Series[]): DrawnTile {
  const { unit, thresholds } = fieldConfig.defaults;
  const [, value = Number.NaN] = series[0]?.points.at(-1) ?? [];
  const steps = thresholds?.steps ?? [];
  const { color = 'blue' } = steps.findLast((step) => step.value === null || value >= step.value) ?? {};
  if (options.textMode === 'name')
    return { title, text: series.map(({ name }) => name).join(', ') || '–', colour: color };
  return { title, text: Number.isFinite(value) ? valueText(value, unit) : '–', colour: color };
}

interface Shown {
  readonly fromSeconds: number;
  readonly toSeconds: number;
  /** The Prometheus server's scrape interval. */
  readonly scrapeSeconds?: number;
}

interface Grafana {
  readonly title: string;
  readonly panels: readonly GrafanaPanel[];
}

interface GrafanaPanel {
  readonly type: string;
  readonly title: string;
  readonly options: { readonly textMode?: string };
  readonly fieldConfig: {
    readonly defaults: {
      readonly unit: string;
      readonly thresholds?: { readonly steps: readonly { color: string; value: number | null }[] };
    };
  };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Range {
  readonly fromSeconds: number;
  readonly toSeconds: number;
  readonly stepSeconds: number;
  readonly rateSeconds: number;
}

async function rangeOf(
  prometheus: string,
  expression: string,
  legend: string,
  { fromSeconds, toSeconds, stepSeconds, rateSeconds }: Range,
): Promise<Series[]> {
  const query = expression.replaceAll('$__rate_interval', `${rateSeconds}s`).replaceAll('$instance', '.*');
  const parameters = new URLSearchParams({
    query,
    start: String(fromSeconds),
    end: String(toSeconds),
    step: String(stepSeconds),
  });
  const response = await fetch(`${prometheus}/api/v1/query_range?${parameters}`);
  const { data, error } = (await response.json()) as { data: Matrix; error?: string };
  if (error !== undefined) throw new Error(`${query}: ${error}`);
  return data.result.map(({ metric, values }) => ({
    name: legend.replace(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '').trim(),
    points: values.map(([seconds, value]) => [seconds, Number(value)] as const),
  }));
}

interface Matrix {
  readonly result: readonly { metric: Record<string, string>; values: readonly [number, string][] }[];
}

if (import.meta.main) {
  const [file, prometheus, seconds] = process.argv.slice(2);
  if (!file || !prometheus || !seconds)
    throw new Error('node scripts/draw-dashboard.ts <dashboard.json> <http://prometheus:9090> <seconds>');
  const toSeconds = Date.now() / 1_000;
  process.stdout.write(
    await pictureOf(file, prometheus, { fromSeconds: toSeconds - Number(seconds), toSeconds }),
  );
}
