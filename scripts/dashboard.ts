/**
 * The building blocks of a dashboard. `npm run generate` writes deploy/observability/dashboards/ from scripts/dashboards.ts.
 */

/** The fixed colours of series with these names, here and in Grafana. Other series take the palette's colours in turn. */
export const colours: readonly (readonly [
  name: RegExp,
  colour: 'red' | 'orange' | 'green' | 'blue' | 'purple',
])[] = [
  [/^5\d\d$|^(failed|database_unavailable)$/, 'red'],
  [/^4\d\d$|^(stale|overloaded|95 %)$/, 'orange'],
  [/^(200|created|no error|50 %)$/, 'green'],
  [/^(201|unchanged)$/, 'blue'],
  [/^(207|internal|99 %)$/, 'purple'],
];

/** The thresholds of a number, which is green up to the first step, orange up to the second, and red above that. */
export type Steps = readonly [orange: number, red: number];

export interface Panel {
  readonly title: string;
  /** A description of what to look for in the panel. */
  readonly help: string;
  /** The unit, with the name that Grafana uses. */
  readonly unit: 'reqps' | 's' | 'd' | 'bytes' | 'percentunit' | 'short';
  /** Maps each expression to its legend. */
  readonly queries: Readonly<Record<string, string>>;
  /** The panel's width, out of 24 columns. Default: 12. */
  readonly width?: number;
  /**
   * Shows a single number instead of a chart. A number without steps is neither good nor bad. With `name`, the legend is
   * shown instead of the number.
   */
  readonly tile?: { readonly steps?: Steps; readonly name?: true };
  /** Shows a bar for each series while it has a value, instead of a chart. */
  readonly bars?: true;
}

export interface Section {
  /** The heading, or undefined for the first section, which needs none. */
  readonly title?: string;
  /** Whether the section is collapsed until it is clicked. */
  readonly isClosed?: true;
  readonly panels: readonly Panel[];
}

export interface Dashboard {
  /** The dashboard's id, which is also used as the file name. */
  readonly uid: string;
  readonly title: string;
  readonly sections: readonly Section[];
}

/** Returns an expression for a metric, limited to the processes that are selected at the top of the dashboard. */
export const own = (metric: string, labels = '') =>
  `${metric}{${[labels, 'instance=~"$instance"'].filter(Boolean).join(',')}}`;
export const perSecond = (series: string) => `rate(${series}[$__rate_interval])`;
export const sumOf = (series: string, by?: string) => `sum${by ? ` by (${by})` : ''} (${perSecond(series)})`;
export const quantile = (share: number, metric: string, by = 'le') =>
  `histogram_quantile(${share}, sum by (${by}) (${perSecond(own(`${metric}_bucket`))}))`;
