import { type View, views } from '../src/operator/analytics-views.ts';
import { writeOrCheck } from './write-or-check.ts';

const opening = `# Views for analysts

Generated from \`src/operator/analytics-views.ts\` and the record types by \`npm run generate\`. [analytics.md](analytics.md) says
how to get a login, and what to know before you count. The views are in the schema \`analytics_all\` and show all
organisations. In \`psql\`, \`\\d+ interactions\` shows these descriptions.
`;

function sectionOf({ name, about, columns }: View): string {
  const rows = columns.map((column) => `| \`${column.name}\` | ${column.type} | ${column.about} |`);
  return `\n## ${name}\n\n${about}\n\n| Column | Type | Meaning |\n|---|---|---|\n${rows.join('\n')}\n`;
}

writeOrCheck(
  'docs/analytics-views.md',
  opening + views.map(sectionOf).join(''),
  'src/operator/analytics-views.ts says',
);
