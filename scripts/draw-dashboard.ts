import { readFileSync } from 'node:fs';
import { drawDashboard, type Picture, type Series } from './dashboard-picture.ts';

/**
 * Draws a dashboard from what a Prometheus has: `node scripts/draw-dashboard.ts <dashboard.json> <http://prometheus:9090>
 * <seconds> > dashboard.svg` for the last seconds.
 */
export async function pictureOf(
  file: string,
  prometheus: string,
  { fromSeconds, toSeconds }: { readonly fromSeconds: number; readonly toSeconds: number },
): Promise<string> {
  const dashboard = JSON.parse(readFileSync(file, 'utf8')) as Grafana;
  const stepSeconds = Math.max(1, Math.round((toSeconds - fromSeconds) / 150));
  const ask = (expression: string, legend: string) =>
    rangeOf(prometheus, expression, legend, { fromSeconds, toSeconds, stepSeconds });
  const panels: Picture['panels'] = await Promise.all(
    dashboard.panels.map(async ({ title, fieldConfig, targets }) => {
      const series = await Promise.all(targets.map(({ expr, legendFormat }) => ask(expr, legendFormat)));
      return { title, unit: fieldConfig.defaults.unit, series: series.flat() };
    }),
  );
  const alerts = await ask('max by (alertname) (ALERTS{alertstate="firing"})', '{{alertname}}');
  return drawDashboard({ title: dashboard.title, fromSeconds, toSeconds, stepSeconds, panels, alerts });
}

interface Grafana {
  readonly title: string;
  readonly panels: readonly {
    readonly title: string;
    readonly fieldConfig: { readonly defaults: { readonly unit: string } };
    readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
}

interface Range {
  readonly fromSeconds: number;
  readonly toSeconds: number;
  readonly stepSeconds: number;
}

async function rangeOf(
  prometheus: string,
  expression: string,
  legend: string,
  { fromSeconds, toSeconds, stepSeconds }: Range,
): Promise<Series[]> {
  // Grafana takes at least four scrapes; here the Prometheus of a short run scrapes every second.
  const query = expression.replaceAll('$__rate_interval', `${Math.max(5, 2 * stepSeconds)}s`);
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
    name: legend.replace(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ''),
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
