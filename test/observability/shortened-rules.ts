import { readFileSync } from 'node:fs';

/** The rules that operators are given, with seconds for minutes: an alert fires about 7 seconds after its cause. */
export function shortenedRules(): string {
  const rules = readFileSync(new URL('../../deploy/observability/alerts.yml', import.meta.url), 'utf8');
  return (
    rules
      .replace(/for: \d+[smh]/g, 'for: 2s')
      .replace(/\[\d+[sm]\]/g, '[5s]')
      .replace(/\[\d+m:30s\]/g, '[5s:1s]')
      // Counts are rolled up every ten seconds.
      .replace('> 120', '> 13')
      // Changes are numbered, and counted for reports, every ten seconds each.
      .replace('> 900', '> 30')
  );
}
