import { type DescribedMetric, described } from '../src/metrics/metric-definitions.ts';
import { writeOrCheck } from './write-or-check.ts';

const opening = `# Metrics

Generated from \`src/metrics/metric-definitions.ts\` by \`npm run generate\`.

With \`METRICS_PORT\` set, a process serves its metrics for Prometheus at \`/metrics\` on that port. No label grows with the
number of organisations, keys or records. Beside the metrics below there are those of Node and the process
(\`nodejs_eventloop_lag_seconds\`, \`process_cpu_seconds_total\`, \`process_resident_memory_bytes\` and others).

A histogram has the series \`_bucket\`, \`_sum\` and \`_count\`.

| Metric | Kind | Labels | Meaning |
|---|---|---|---|
`;

const rows = Object.values<DescribedMetric>(described).map(
  ({ name, kind, labels, help }) =>
    `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |\n`,
);

writeOrCheck('docs/metrics.md', opening + rows.join(''), 'src/metrics/metric-definitions.ts says');
