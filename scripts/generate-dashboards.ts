import { colours, type Dashboard, type Panel, type Section } from './dashboard.ts';
import { dashboards } from './dashboards.ts';
import { writeOrCheck } from './write-or-check.ts';

/** The sizes of panels on Grafana's grid of 24 columns. */
const [chart, tile, bars, heading] = [
  { w: 12, h: 8 },
  { w: 3, h: 4 },
  { w: 24, h: 6 },
  { w: 24, h: 1 },
];
const overrides = colours.map(([name, fixedColor]) => ({
  matcher: { id: 'byRegexp', options: String(name) },
  properties: [{ id: 'color', value: { mode: 'fixed', fixedColor } }],
}));
const datasource = { type: 'prometheus', uid: '$datasource' };

for (const dashboard of dashboards)
  writeOrCheck(
    `deploy/observability/dashboards/${dashboard.uid}.json`,
    linesOf(grafanaOf(dashboard)),
    'scripts/dashboards.ts says',
  );

/** Writes each panel on one line, so that a diff shows which panel has changed. */
function linesOf(grafana: object): string {
  const lines = Object.entries(grafana).map(([name, value]) => {
    const items = name === 'panels' ? (value as object[]).map((panel) => `    ${JSON.stringify(panel)}`) : [];
    const text = items.length > 0 ? `[\n${items.join(',\n')}\n  ]` : JSON.stringify(value);
    return `  ${JSON.stringify(name)}: ${text}`;
  });
  return `{\n${lines.join(',\n')}\n}\n`;
}

function grafanaOf({ uid, title, sections }: Dashboard): object {
  return {
    uid,
    title,
    tags: ['intake'],
    timezone: 'browser',
    schemaVersion: 39,
    refresh: '15s',
    time: { from: 'now-1h', to: 'now' },
    // If there are several Prometheus servers, the first one is used until the user selects another.
    templating: {
      list: [
        { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
        {
          name: 'instance',
          label: 'Process',
          type: 'query',
          datasource,
          query: 'label_values(up{job="intake"}, instance)',
          refresh: 2,
          sort: 1,
          multi: true,
          includeAll: true,
          allValue: '.*',
          current: { text: 'All', value: '$__all' },
        },
      ],
    },
    panels: placed(sections),
  };
}

/** Places panels from left to right and top to bottom. A collapsed section contains its panels. */
function placed(sections: readonly Section[]): object[] {
  const all: object[] = [];
  let [id, y] = [0, 0];
  for (const { title, isClosed, panels } of sections) {
    const inside: object[] = [];
    const row = {
      id: ++id,
      type: 'row',
      title,
      collapsed: isClosed === true,
      gridPos: { ...heading, x: 0, y },
    };
    if (title !== undefined) {
      all.push({ ...row, panels: isClosed ? inside : [] });
      y += heading.h;
    }
    let [x, bottom] = [0, y];
    for (const panel of panels) {
      const { w, h } = sizeOf(panel);
      if (x + w > heading.w) [x, y] = [0, bottom];
      const made = panelOf(panel, ++id, { w, h, x, y });
      (isClosed ? inside : all).push(made);
      x += w;
      bottom = Math.max(bottom, y + h);
    }
    y = bottom;
  }
  return all;
}

function sizeOf({ tile: isTile, bars: hasBars, width }: Panel): { w: number; h: number } {
  const size = isTile ? tile : hasBars ? bars : chart;
  return { ...size, w: width ?? size.w };
}

function panelOf(panel: Panel, id: number, gridPos: object): object {
  const { title, help, unit, queries } = panel;
  const { type, defaults, options, range } = kindOf(panel);
  return {
    id,
    type,
    title,
    description: help,
    datasource,
    gridPos,
    fieldConfig: { defaults: { unit, ...defaults }, overrides: type === 'timeseries' ? overrides : [] },
    options,
    targets: Object.entries(queries).map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat,
      ...(!range && { instant: true }),
    })),
  };
}

function kindOf({ tile: shown, bars: hasBars }: Panel) {
  if (shown) {
    const [orange, red] = shown.steps ?? [];
    const steps = [
      { color: orange === undefined ? 'blue' : 'green', value: null },
      ...(orange === undefined || orange === red ? [] : [{ color: 'orange', value: orange }]),
      ...(red === undefined ? [] : [{ color: 'red', value: red }]),
    ];
    const defaults = { color: { mode: 'thresholds' }, thresholds: { mode: 'absolute', steps }, noValue: '–' };
    const options = {
      colorMode: 'background',
      graphMode: 'none',
      textMode: shown.name ? 'name' : 'value',
      reduceOptions: { calcs: ['lastNotNull'] },
    };
    return { type: 'stat', defaults, options, range: false };
  }
  if (hasBars) {
    const defaults = { color: { mode: 'fixed', fixedColor: 'red' }, noValue: 'none' };
    const options = { showValue: 'never', mergeValues: true, legend: { showLegend: false } };
    return { type: 'state-timeline', defaults, options, range: true };
  }
  const defaults = { min: 0, custom: { fillOpacity: 10, showPoints: 'never', lineWidth: 2 } };
  const options = {
    legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
    tooltip: { mode: 'multi', sort: 'desc' },
  };
  return { type: 'timeseries', defaults, options, range: true };
}
