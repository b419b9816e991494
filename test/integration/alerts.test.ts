// @module-tag full

import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { described } from '../../src/metrics/metric-definitions.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = `${root}/deploy/observability`;
const rules = readFileSync(`${folder}/alerts.yml`, 'utf8');
const tests = readFileSync(`${folder}/alerts-test.yml`, 'utf8');
const alerts = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name);

it.skipIf(!existsSync('/usr/bin/promtool'))(
  "the alerts fire when they should and only then, and Prometheus accepts its configuration (needs Debian's prometheus)",
  () => {
    const promtool = (...args: string[]) =>
      execFileSync('/usr/bin/promtool', args, { cwd: folder }).toString();
    expect(promtool('check', 'rules', 'alerts.yml')).toContain(`${alerts.length} rules found`);
    expect(promtool('test', 'rules', 'alerts-test.yml')).toContain('SUCCESS');
    expect(promtool('check', 'config', 'prometheus.yml')).toContain('is valid prometheus config');
  },
);

it('every alert is tested, with numbers and with running processes, and links to its section of the runbook', () => {
  const real = readFileSync(`${root}/test/observability/alerts-fire.test.ts`, 'utf8');
  const runbook = readFileSync(`${root}/docs/operating/runbook.md`, 'utf8');
  expect(alerts.length).toBeGreaterThan(10);
  // An operator should know all of them.
  expect(alerts.length).toBeLessThanOrEqual(15);
  for (const alert of alerts) {
    expect(tests).toContain(`alertname: ${alert}`);
    expect(rules).toContain(`runbook_url: docs/operating/runbook.md#${alert.toLowerCase()}\n`);
    expect(runbook).toContain(`\n## ${alert}\n`);
    expect(real).toContain(`'${alert}`);
  }
});

it('an alert or a panel uses each metric', () => {
  const panels = globSync(`${folder}/dashboards/*.json`).map((file) => readFileSync(file, 'utf8'));
  const used = [rules, ...panels].join('\n');
  const isUsed = (name: string) => new RegExp(`\\b${name}(_bucket|_count|_sum)?\\b`).test(used);
  expect(Object.values(described).filter(({ name }) => !isUsed(name))).toEqual([]);
});

it('the alerts and the pages for operators name metrics that exist', () => {
  const known = Object.values(described).map(({ name }) => name as string);
  for (const text of [
    rules,
    tests,
    ...globSync('docs/operating/*.md', { cwd: root }).map((file) => readFileSync(`${root}/${file}`, 'utf8')),
  ]) {
    // API keys have the same prefix as metrics, but contain upper-case letters.
    const named = [...text.matchAll(/\bintake(?:_[a-z]+)+(?!\w)/g)].map(([name]) =>
      name.replace(/_(bucket|count|sum)$/, ''),
    );
    const roles = ['intake_serve', 'intake_admin', 'intake_app', 'intake_ops', 'intake_read_all'];
    expect(named.filter((name) => !known.includes(name) && !roles.includes(name))).toEqual([]);
  }
});
