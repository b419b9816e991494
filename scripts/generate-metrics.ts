import { type DescribedMetric, described } from '../src/metrics/metric-definitions.ts';
import { writeOrCheck } from './write-or-check.ts';

const opening = `# Metrics

Generated from \`src/metrics/metric-definitions.ts\` by \`npm run generate\`.

If \`METRICS_PORT\` is set, a process serves its metrics for Prometheus at \`/metrics\` on that port. The number of series does
not grow with the number of organisations, keys or records. The process also serves Node's metrics, such as
\`nodejs_eventloop_lag_seconds\`, \`process_cpu_seconds_total\` and \`process_resident_memory_bytes\`.

Each histogram has the series \`_bucket\`, \`_sum\` and \`_count\`.

| Metric | Kind | Labels | Meaning |
|---|---|---|---|
`;

const rows = Object.values<DescribedMetric>(described).map(
  ({ name, kind, labels, help }) =>
    `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${help} |\n`,
);

writeOrCheck('docs/operating/metrics.md', opening + rows.join(''), 'src/metrics/metric-definitions.ts says');
