import { readFileSync } from 'node:fs';
import { writeOrCheck } from './write-or-check.ts';

/** Copies the version in package.json to the other files that state it, and the alerts into the chart. */

const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
const { version } = JSON.parse(read('package.json'));

const places: readonly (readonly [file: string, pattern: RegExp])[] = [
  ['client/package.json', /(?<=^ {2}"version": ")[^"]+/m],
  ['console/package.json', /(?<=^ {2}"version": ")[^"]+/m],
  [
    'package-lock.json',
    /(?<=^ {2}"version": "|"name": "intake-(server|client|console)",\s+"version": ")[^"]+/gm,
  ],
  ['deploy/helm/intake/Chart.yaml', /(?<=^(version|appVersion): ).+/gm],
  ['deploy/Dockerfile', /(?<=^ARG VERSION=).+/m],
];
for (const [file, pattern] of places) {
  const text = read(file);
  if (text.search(pattern) < 0) throw new Error(`${file} does not state a version`);
  writeOrCheck(file, text.replace(pattern, version), 'package.json states as the version');
}

// Helm reads only files inside the chart.
const alerts = read('deploy/observability/alerts.yml');
writeOrCheck(
  'deploy/helm/intake/alerts.yml',
  alerts.slice(alerts.indexOf('groups:\n')),
  'deploy/observability/alerts.yml contains',
);
