// @module-tag full

import { randomUUID } from 'node:crypto';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pictureOf } from '../../scripts/draw-dashboard.ts';
import { described } from '../../src/metrics/metric-definitions.ts';
import { apiOf } from '../support/api.ts';
import { type BuiltServer, startBuiltServer } from '../support/built-server.ts';
import { makeCertificate } from '../support/certificate.ts';
import { freePort } from '../support/free-port.ts';
import { type FreezablePostgres, startFreezablePostgres } from '../support/freezable-postgres.ts';
import { badTag, many, newTag } from '../support/new-records.ts';
import {
  type Exporter,
  type Prometheus,
  prometheusIsInstalled,
  startPostgresExporter,
  startPrometheus,
} from '../support/prometheus.ts';
import { type OpenLoad, startOpenLoad } from './open-load.ts';
import { shortenedRules } from './shortened-rules.ts';

/**
 * The dashboards show data from a Prometheus server that scraped processes under load. `npm run drills` draws the picture in
 * the documents.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));
const files = globSync('deploy/observability/dashboards/*.json', { cwd: root }).sort();

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
  /** The panels in a collapsed section. */
  readonly panels?: readonly Panel[];
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
}

const panelsOf = (file: string): readonly Panel[] =>
  JSON.parse(readFileSync(join(root, file), 'utf8')).panels;
const expressions = files.flatMap((file) =>
  panelsOf(file)
    .flatMap((panel) => [panel, ...(panel.panels ?? [])])
    .flatMap(({ type, title, targets = [] }) => targets.map(({ expr }) => ({ file, type, title, expr }))),
);

const ofExporters = [
  /^up$/,
  /^process_(cpu_seconds_total|resident_memory_bytes)$/,
  /^nodejs_eventloop_lag_p99_seconds$/,
  /^pg_(up|database_size_bytes|locks_count|settings_max_connections)$/,
  /^pg_stat_activity_(count|max_tx_duration)$/,
  /^pg_stat_database_(xact_commit|xact_rollback|deadlocks|tup_(inserted|updated|deleted|fetched)|blks_(hit|read))$/,
];

it('every dashboard only mentions existing metrics', () => {
  expect(files).toHaveLength(3);
  const own = Object.values(described).map(({ name }) => name as string);
  const unknown = expressions.flatMap(({ expr }) =>
    [...expr.matchAll(/\b(?:intake|pg|process|nodejs|node)_\w+|\bup(?=\{)/g)]
      .map(([name]) => name.replace(/_(bucket|count|sum)$/, (end) => (name.startsWith('intake_') ? '' : end)))
      .filter((name) => !own.includes(name) && !ofExporters.some((known) => known.test(name))),
  );
  expect(unknown).toEqual([]);
});

it('the first row of the service answers "healthy now?" in single numbers, and panels do not overlap', () => {
  const panels = panelsOf('deploy/observability/dashboards/intake-service.json');
  const first = panels.filter(({ gridPos }) => gridPos.y === 0);
  expect(first.map(({ type }) => type)).toEqual(first.map(() => 'stat'));
  expect(first.reduce((width, { gridPos }) => width + gridPos.w, 0)).toBe(24);
  expect(panels.filter(({ type }) => type === 'timeseries').length).toBeLessThan(7);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    many(w * h, (at) => `${x + (at % w)}:${y + Math.floor(at / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
});

it('every panel about processes can be filtered by process, and rates have windows of four scrapes', () => {
  for (const { expr } of expressions) {
    for (const [, window] of expr.matchAll(/\[([^\]]+)\]/g)) expect(window).toBe('$__rate_interval');
    if (!/maintenance|partitions|certificate|rejections_open|quotas|work_/.test(expr))
      for (const [metric] of expr.matchAll(/\bintake_\w+(?!\w)[^}]{0,60}/g))
        expect(metric).toContain('instance=~"$instance"');
  }
});

it('no panel has a series for each organisation or key', () => {
  for (const { expr } of expressions) expect(expr).not.toMatch(/organisation|key_id|tenant/);
});

const secondsShown = 6;

describe.skipIf(!prometheusIsInstalled)("dashboards (need Debian's prometheus and its exporters)", () => {
  const folder = mkdtempSync(join(tmpdir(), 'intake-dashboards-'));
  const certificate = makeCertificate(folder, 'days', 'ec', 90);
  let postgres: FreezablePostgres;
  let exporter: Exporter;
  let prometheus: Prometheus;
  const servers: BuiltServer[] = [];
  const loads: OpenLoad[] = [];

  beforeAll(async () => {
    postgres = await startFreezablePostgres();
    const ports = await Promise.all(many(3, freePort));
    const tls = { TLS_CERT_FILE: certificate.certFile, TLS_KEY_FILE: certificate.keyFile };
    servers.push(
      ...(await Promise.all(
        ports.map((port, at) =>
          startBuiltServer({
            DATABASE_URL: postgres.url,
            METRICS_PORT: String(port),
            ...(at === 2 && tls),
          }),
        ),
      )),
    );
    exporter = await startPostgresExporter(postgres.url);
    const targets = ports.map((port) => `127.0.0.1:${port}`);
    prometheus = await startPrometheus({ intake: targets, postgres: [exporter.target] }, shortenedRules());
    loads.push(...(await startLoads(servers[0] as BuiltServer, servers[1] as BuiltServer)));
  });
  afterAll(async () => {
    postgres?.thaw();
    await Promise.all(loads.map((load) => load.stop()));
    await Promise.all([...servers, exporter, prometheus].map((started) => started?.stop()));
    await postgres?.stop();
    rmSync(folder, { recursive: true });
  });

  it('every panel shows data, and can be drawn', async () => {
    // Until its first scrape, Prometheus reports a process as missing. The picture should not show that.
    const scraped = 'min(count_over_time(up{job="intake"}[1m])) > 6';
    await expect.poll(() => prometheus.query(scraped)).toHaveLength(1);
    await expect.poll(() => prometheus.firing()).toEqual([]);
    const fromSeconds = Date.now() / 1_000;
    await sleep(secondsShown * 1_000);
    await expect.poll(emptyPanels).toEqual([]);
    const range = { fromSeconds, toSeconds: Date.now() / 1_000, scrapeSeconds: 1 };
    for (const file of files) {
      const svg = await pictureOf(join(root, file), `http://${prometheus.target}`, range);
      expect(svg).not.toContain('no data');
      expect(svg).not.toMatch(/NaN|undefined|Infinity/);
      expect(svg.length).toBeLessThan(150_000);
    }
  });

  async function emptyPanels(): Promise<string[]> {
    const answers = await Promise.all(
      // State timelines show alerts, so they are skipped: no alert should fire in this test.
      expressions
        .filter(({ type }) => type !== 'state-timeline')
        .map(async ({ title, expr }) => {
          const query = expr.replaceAll('$__rate_interval', '5s').replaceAll('$instance', '.*');
          const found = await prometheus.query(query);
          return found.some(({ value }) => Number.isFinite(value)) ? [] : [`${title}: ${expr}`];
        }),
    );
    return answers.flat();
  }
});

/** Simulates typical clients: good and bad uploads, a refused request, interactions, and one client that is too fast. */
async function startLoads(first: BuiltServer, second: BuiltServer): Promise<OpenLoad[]> {
  const key = await first.createKey('acme');
  const fast = await first.createKey('fast');
  await first.run('organisations', 'limit', 'fast', '--requests-per-second', '1');
  const tag = newTag();
  await apiOf(first.url, key).upload('tags', [tag]);
  const interaction = () => ({
    interaction_type: 'SHARE',
    platform: 'WEB',
    event_timestamp: new Date().toISOString(),
    item_type: 'TAG',
    item_id: tag.tag_id,
  });
  const uploads = [first, second].map(({ url }) =>
    startOpenLoad(2, () => apiOf(url, key).upload('tags', many(10, () => newTag()).concat([badTag(), tag]))),
  );
  return [
    ...uploads,
    startOpenLoad(5, () => apiOf(second.url, key).post('/user-interactions', interaction())),
    startOpenLoad(2, () => apiOf(first.url, key).get(`/v1/data/tags/${randomUUID()}`)),
    // This is nearly twice the limit, so some requests are refused even on a slow machine, but too few for an alert.
    startOpenLoad(1.8, () => apiOf(second.url, fast).get('/v1/data')),
  ];
}
