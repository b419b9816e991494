import { views } from '../src/operator/analytics-views.ts';
import { writeOrCheck } from './write-or-check.ts';

const opening = `# Views for analysts

**0.3.0 removes these views.** Read [the lake](analytics.md#all-organisations) instead. The views are in the schema
\`analytics_all\` and show all organisations ([logins](analytics.md#sql-in-postgresql)). \`\\d+ interactions\` in \`psql\` describes the
columns, and [fields](uploading/fields.md) the fields of records.

| View | Rows | Columns after \`organisation_id\` |
|---|---|---|
`;

const rows = views.map(({ name, about, columns }) => {
  const names = columns.map((column) => `\`${column.name}\``).slice(1);
  return `| \`${name}\` | ${about} | ${names.join(', ')} |\n`;
});

writeOrCheck('docs/analytics-views.md', opening + rows.join(''), 'src/operator/analytics-views.ts says');
