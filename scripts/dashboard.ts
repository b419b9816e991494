/** What a dashboard is made of; `npm run generate` writes deploy/observability/dashboards/ from scripts/dashboards.ts. */

/** Series with these names have these colours, here and in Grafana. The others take turns. */
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

/** A number that is green up to the first step, orange up to the second and red above. */
export type Steps = readonly [orange: number, red: number];

export interface Panel {
  readonly title: string;
  /** What a person should look for. */
  readonly help: string;
  /** As Grafana calls it. */
  readonly unit: 'reqps' | 's' | 'd' | 'bytes' | 'percentunit' | 'short';
  /** Each expression with the text of its legend. */
  readonly queries: Readonly<Record<string, string>>;
  /** Of the 24 columns; 12 if not given. */
  readonly width?: number;
  /** A single number instead of a chart. Without steps it is neither good nor bad; `name` shows the legend in its place. */
  readonly tile?: { readonly steps?: Steps; readonly name?: true };
  /** A bar for each series while it has a value, in place of a chart. */
  readonly bars?: true;
}

export interface Section {
  /** Undefined for the first, which needs no heading. */
  readonly title?: string;
  /** Opened by a click. */
  readonly isClosed?: true;
  readonly panels: readonly Panel[];
}

export interface Dashboard {
  /** Also the name of its file. */
  readonly uid: string;
  readonly title: string;
  readonly sections: readonly Section[];
}

/** A metric of the processes that are chosen above the dashboard. */
export const own = (metric: string, labels = '') =>
  `${metric}{${[labels, 'instance=~"$instance"'].filter(Boolean).join(',')}}`;
export const perSecond = (series: string) => `rate(${series}[$__rate_interval])`;
export const sumOf = (series: string, by?: string) => `sum${by ? ` by (${by})` : ''} (${perSecond(series)})`;
export const quantile = (share: number, metric: string, by = 'le') =>
  `histogram_quantile(${share}, sum by (${by}) (${perSecond(own(`${metric}_bucket`))}))`;
