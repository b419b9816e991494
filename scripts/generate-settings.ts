import { type Setting, settings } from '../src/settings.ts';
import { writeOrCheck } from './write-or-check.ts';

/** The headings of the page, each before the setting that it begins with. */
const headings: Readonly<Record<string, string>> = {
  DATABASE_URL: 'PostgreSQL',
  HOST: 'Listening and TLS',
  ADMIN_DATABASE_URL: 'Admin API',
  METRICS_PORT: 'Metrics',
  REDIS_URL: 'Limits per organisation',
  RECORDS_PER_REQUEST_MAX: 'Size of a request',
  HEADERS_TIMEOUT_MS: 'Timeouts and client connections',
  RECEIPTS_KEPT_DAYS: 'Retention, reference, log',
};

const opening = `# Settings

Generated from \`src/settings.ts\` by \`npm run generate\`.

Intake reads its settings from environment variables when it starts. A wrong value stops the start, and the message names
the setting. A variable that is nearly the name of a setting is logged as a warning:

\`\`\`text
RECEIPT_KEPT_DAYS is not a setting; did you mean RECEIPTS_KEPT_DAYS?
\`\`\`

Names that end in \`_MS\` are milliseconds. [operating.md](operating.md) shows most of these settings in use.
`;

function rowOf([variable, kind, purpose]: Setting): string {
  const heading = headings[variable];
  const head = heading
    ? `\n## ${heading}\n\n| Setting | Default | Allowed | Meaning |\n|---|---|---|---|\n`
    : '';
  return `${head}| \`${variable}\` | ${kind.fallback} | ${allowed(kind)} | ${purpose} |\n`;
}

function allowed(kind: Setting[1]): string {
  if ('min' in kind) return `${kind.min} to ${kind.max}`;
  return 'options' in kind ? kind.options.join(', ') : '';
}

const rows = Object.values<Setting>(settings).map(rowOf);
writeOrCheck('docs/settings.md', opening + rows.join(''), 'src/settings.ts says');
