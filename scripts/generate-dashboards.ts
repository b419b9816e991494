import { alarming, type Dashboard, dashboards, type Panel } from './dashboards.ts';
import { writeOrCheck } from './write-or-check.ts';

/** Two panels to a row, on Grafana's grid of 24 columns. */
const size = { w: 12, h: 8 };
const red = {
  matcher: { id: 'byRegexp', options: String(alarming) },
  properties: [{ id: 'color', value: { mode: 'fixed', fixedColor: 'red' } }],
};
const datasource = { type: 'prometheus', uid: '$datasource' };

for (const dashboard of dashboards)
  writeOrCheck(
    `deploy/observability/dashboards/${dashboard.uid}.json`,
    linesOf(grafanaOf(dashboard)),
    'scripts/dashboards.ts says',
  );

/** A line for each panel, so that a difference shows which one has changed. */
function linesOf(grafana: object): string {
  const lines = Object.entries(grafana).map(([name, value]) => {
    const items = name === 'panels' ? (value as object[]).map((panel) => `    ${JSON.stringify(panel)}`) : [];
    const text = items.length > 0 ? `[\n${items.join(',\n')}\n  ]` : JSON.stringify(value);
    return `  ${JSON.stringify(name)}: ${text}`;
  });
  return `{\n${lines.join(',\n')}\n}\n`;
}

function grafanaOf({ uid, title, panels }: Dashboard): object {
  return {
    uid,
    title,
    tags: ['intake'],
    timezone: 'browser',
    schemaVersion: 39,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    // Whoever imports it has one Prometheus or chooses among several; the first is taken.
    templating: {
      list: [{ name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' }],
    },
    panels: panels.map(panelOf),
  };
}

function panelOf({ title, help, unit, queries }: Panel, at: number): object {
  return {
    id: at + 1,
    type: 'timeseries',
    title,
    description: help,
    datasource,
    gridPos: { ...size, x: (at % 2) * size.w, y: Math.floor(at / 2) * size.h },
    fieldConfig: {
      defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: 'never' } },
      overrides: [red],
    },
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    targets: Object.entries(queries).map(([expr, legendFormat], index) => ({
      refId: String.fromCharCode(65 + index),
      datasource,
      expr,
      legendFormat,
    })),
  };
}
