// @module-tag full

import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { pictureOf } from '../../scripts/draw-dashboard.ts';
import { prometheusIsInstalled } from '../support/prometheus.ts';
import { type Drill, drills } from './drills.ts';
import { rowOf, runDrill } from './run-drill.ts';

/**
 * `npm run drills` runs every outage on real processes, with the shipped alert rules and their full delays. This takes
 * 15 minutes. alerts-fire.test.ts is the short version for the checks.
 */

const root = fileURLToPath(new URL('../..', import.meta.url));
const runbook = `${root}docs/operating/runbook.md`;
/** The drill during which docs/operating/dashboard.svg is drawn. */
const drawn = process.env.DRILLS_WRITE ? 'lock' : undefined;
const wanted = process.env.DRILLS?.split(',') ?? [];
const chosen = Object.entries<Drill>(drills).filter(([name]) => wanted.includes(name));
const [beginning, end] = ['<!-- drills -->\n', '<!-- /drills -->\n'];
/**
 * The number of concurrent drills. More drills would slow each other down, because each has two processes, a Prometheus
 * server and clients.
 */
const atOnce = 4;

describe.skipIf(chosen.length === 0 || !prometheusIsInstalled)('drills (npm run drills)', () => {
  const rows = new Map<string, string>();

  it('each is reported by its alert, which ends once it is repaired', { timeout: 3_600_000 }, async () => {
    const left = [...chosen];
    const work = async () => {
      for (let next = left.shift(); next; next = left.shift()) {
        const [name, drill] = next;
        const outage = await runDrill(drill, 'shipped', name === drawn ? draw : undefined);
        if (!outage) console.log(`${name}: not possible on this machine`);
        else rows.set(name, rowOf(drill, outage));
        console.log(rows.get(name));
      }
    };
    const done = await Promise.allSettled(Array.from({ length: atOnce }, work));
    const table = chosen.flatMap(([name]) => rows.get(name) ?? []).join('\n');
    console.log(table);
    if (process.env.DRILLS_WRITE) writeTable(rows);
    expect(done.filter(({ status }) => status === 'rejected')).toEqual([]);
  });
});

/** Draws the dashboard during the outage. */
async function draw(prometheus: string, fromSeconds: number): Promise<void> {
  const range = { fromSeconds, toSeconds: Date.now() / 1_000 };
  const svg = await pictureOf(
    `${root}deploy/observability/dashboards/intake-service.json`,
    prometheus,
    range,
  );
  expect(svg).not.toMatch(/no data|NaN|undefined|Infinity/);
  writeFileSync(`${root}docs/operating/dashboard.svg`, svg);
}

/** Replaces the table's measured rows, and keeps its other rows. */
function writeTable(rows: ReadonlyMap<string, string>): void {
  const text = readFileSync(runbook, 'utf8');
  const [before, rest] = text.split(beginning);
  const [table, after] = rest?.split(end) ?? [];
  if (before === undefined || table === undefined || after === undefined)
    throw new Error('docs/operating/runbook.md has lost the marks around the table of drills');
  const old = table.trimEnd().split('\n').slice(2);
  const all = Object.entries<Drill>(drills).flatMap(
    ([name, { title }]) => rows.get(name) ?? old.find((row) => row.startsWith(`| ${title} |`)) ?? [],
  );
  const head = '| Drill | Clients | Readiness | Alerts |\n|---|---|---|---|';
  writeFileSync(runbook, `${before}${beginning}${[head, ...all].join('\n')}\n${end}${after}`);
}
