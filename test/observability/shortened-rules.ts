import { readFileSync } from 'node:fs';

/** Returns the shipped rules with seconds instead of minutes, so that an alert fires about 7 seconds after its cause. */
export function shortenedRules(): string {
  const rules = readFileSync(new URL('../../deploy/observability/alerts.yml', import.meta.url), 'utf8');
  return (
    rules
      .replace(/for: \d+[smh]/g, 'for: 2s')
      .replace(/\[\d+[sm]\]/g, '[5s]')
      .replace(/\[\d+m:30s\]/g, '[5s:1s]')
      // Counts are rolled up every ten seconds.
      .replace('> 120', '> 13')
      // Numbering changes and counting them for reports are two chores that each run every ten seconds.
      .replace('> 900', '> 30')
      .replace('> 7200', '> 30')
  );
}
