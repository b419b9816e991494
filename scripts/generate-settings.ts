import { advancedSettings, neededSettings, type Setting } from '../src/settings.ts';
import { writeOrCheck } from './write-or-check.ts';

/** The headings of the advanced settings, keyed by the first setting below each heading. */
const headings: Readonly<Record<string, string>> = {
  DATABASE_POOLER: 'PostgreSQL',
  REUSE_PORT: 'Listening',
  OTEL_EXPORTER_OTLP_ENDPOINT: 'Traces',
  REQUESTS_PER_SECOND_MAX: 'Limits per organisation',
  RECORDS_PER_REQUEST_MAX: 'Request size',
  HEADERS_TIMEOUT_MS: 'Timeouts and client connections',
  RECEIPTS_KEPT_DAYS: 'Retention, lake, reference, log',
};

const opening = `# Settings

Generated from \`src/settings.ts\` by \`npm run generate\`.

Intake reads its settings from environment variables when it starts. If a value is not valid, Intake does not start, and the
error message names the setting. If a variable's name resembles a setting, Intake logs a warning:

<!-- not run: a line of the log; test/acceptance/misspelt-settings.test.ts expects one -->
\`\`\`text
RECEIPT_KEPT_DAYS is not a setting; did you mean RECEIPTS_KEPT_DAYS?
\`\`\`

Settings whose names end in \`_MS\` are in milliseconds. [Setup](setup.md) shows most of these settings in use.
`;

const tableHead = '| Setting | Default | Allowed | Meaning |\n|---|---|---|---|\n';

function rowOf([variable, kind, purpose]: Setting): string {
  const heading = headings[variable];
  const head = heading ? `\n### ${heading}\n\n${tableHead}` : '';
  return `${head}| \`${variable}\` | ${kind.fallback} | ${allowed(kind)} | ${purpose} |\n`;
}

function allowed(kind: Setting[1]): string {
  if ('min' in kind) return `${kind.min} to ${kind.max}`;
  return 'options' in kind ? kind.options.join(', ') : '';
}

const rowsOf = (settings: Readonly<Record<string, Setting>>) => Object.values(settings).map(rowOf).join('');
const needed = `\n## Needed\n\n${tableHead}${rowsOf(neededSettings)}`;
const advanced = `\n## Advanced\n${rowsOf(advancedSettings)}`;
writeOrCheck('docs/operating/settings.md', opening + needed + advanced, 'src/settings.ts says');
