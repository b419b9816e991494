/** Values for the Helm chart that set each one to something other than its default. */
export const everyValue = {
  image: {
    repository: 'registry.example.com/intake',
    tag: 'tried',
    digest: `sha256:${'a'.repeat(64)}`,
    pullPolicy: 'Always',
    pullSecrets: ['registry'],
  },
  replicas: 5,
  autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 9, cpuPercent: 55 },
  database: { secret: 'intake-urls', serveKey: 'serve', migrateKey: 'migrate', caSecret: 'intake-ca' },
  redis: { secret: 'intake-redis', key: 'redis-url' },
  tls: { secret: 'intake-tls' },
  trustedProxy: '10.0.0.0/8',
  lake: {
    url: 's3://bucket/prefix',
    secret: 'intake-lake',
    replicas: 2,
    resources: { requests: { cpu: '300m', memory: '600Mi' }, limits: { memory: '2Gi' } },
  },
  serviceAccount: { annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::123456789012:role/intake' } },
  settings: { LOG_LEVEL: 'warn', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' },
  secretEnv: { ERASURE_KEYS: { secret: 'intake-erasure', key: 'erasure-keys' } },
  admin: {
    secret: 'intake-operators',
    key: 'url',
    port: 8082,
    from: [{ podSelector: { matchLabels: { app: 'operators-proxy' } } }],
  },
  logBackup: { claim: 'intake-log', secret: 'intake-operators', key: 'ops-url', schedule: '5 * * * *' },
  ingress: {
    enabled: true,
    className: 'nginx',
    host: 'intake.example.com',
    tlsSecret: 'intake-example-com',
    annotations: { 'nginx.ingress.kubernetes.io/proxy-body-size': '64m' },
  },
  migrate: { enabled: true, timeoutSeconds: 10_000_000 },
  service: { type: 'LoadBalancer', port: 443, annotations: { 'example.com/internal': 'true' } },
  metrics: {
    port: 9999,
    serviceMonitor: { enabled: true, labels: { release: 'prometheus' }, interval: '30s' },
    prometheusRule: {
      enabled: true,
      labels: { release: 'prometheus' },
      runbookUrl: 'https://docs.example.com/runbook',
    },
  },
  networkPolicy: {
    enabled: true,
    from: [{ ipBlock: { cidr: '10.0.0.0/8' } }],
    metricsFrom: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
    databasePort: 6432,
    redisPort: 6380,
    collectorPort: 4319,
    lakePort: 9000,
  },
  stopTimeoutSeconds: 20,
  preStopSeconds: 7,
  resources: { requests: { cpu: '1', memory: '512Mi' }, limits: { memory: '2Gi' } },
  podAnnotations: { 'example.com/team': 'data' },
  podLabels: { 'azure.workload.identity/use': 'true' },
  nodeSelector: { 'kubernetes.io/arch': 'amd64' },
  tolerations: [{ key: 'dedicated', operator: 'Exists', effect: 'NoSchedule' }],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a', 'b'] }] }],
      },
    },
  },
};

export interface Leaf {
  readonly path: string;
  readonly value: unknown;
}

/** Returns the values in an object of values, each with its path. Lists and empty objects count as one value. */
export function leavesOf(values: object, above = ''): Leaf[] {
  return Object.entries(values).flatMap(([name, value]) => {
    const path = above + name;
    const isGroup = typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length > 0;
    return isGroup ? leavesOf(value, `${path}.`) : [{ path, value }];
  });
}

/** Returns a copy in which one value is replaced. */
export function withValue(values: object, { path, value }: Leaf): object {
  const copy = structuredClone(values);
  const names = path.split('.');
  const last = names.pop() ?? '';
  const group = names.reduce<object>((above, name) => Reflect.get(above, name) as object, copy);
  Reflect.set(group, last, value);
  return copy;
}
