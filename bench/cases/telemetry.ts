import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createSocket } from 'node:net';
import { type Bench, type Case, type Comparison, type Goal, interleave, ratiosOf } from '../case.ts';
import { cpuSeconds } from '../cpu-time.ts';
import { cycleFor, sendInTurn, withConnections } from '../http-load.ts';
import { expectRecorded, interactionRequests } from '../interactions.ts';
import { type Recipe, referencesDefault } from '../records.ts';
import { type Service, startService, untilReady } from '../service.ts';
import { publicTable, storeReferences } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

/** The maximum combined cost of all kinds of telemetry. */
const goals: Readonly<Record<string, Goal>> = { uploads: { atMost: 1.05 }, interactions: { atMost: 1.1 } };
const items = 5_000;
const clients = 64;

type Way = 'nothing' | 'metrics' | 'log' | 'traces' | 'all';

/**
 * Measures the cost of telemetry: the CPU time that the service and PostgreSQL take for the same work, with and without each
 * kind.
 */
export const telemetry: Case = {
  name: 'telemetry',
  what: 'uploads and interactions with metrics, log, traces and all of them, compared with none',
  long: true,
  async run(bench) {
    const collector = await startCollector();
    const services = await startServices(bench, collector);
    // Pause all services, because a service that is not being measured would also put load on PostgreSQL.
    for (const service of [bench.service, ...Object.values(services)]) service.pause();
    try {
      return [
        ...(await compareWays(bench, 'uploads', 'rows', await uploading(bench, services))),
        ...(await compareWays(bench, 'interactions', 'requests', await interacting(bench, services))),
      ];
    } finally {
      bench.service.resume();
      for (const service of Object.values(services)) await service.stop();
      collector.closeAllConnections();
      collector.close();
    }
  },
};

interface Measured {
  readonly perSecond: number;
  readonly cpuMicrosEach: number;
}

type Measure = (service: Service) => Promise<Measured>;

async function startServices(bench: Bench, collector: Server): Promise<Record<Way, Service>> {
  const { port } = collector.address() as AddressInfo;
  const quiet = { LOG_LEVEL: 'warn' };
  const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
  const metrics = async () => ({ METRICS_PORT: String(await freePort()) });
  const start = async (env: Record<string, string>) =>
    startService(bench.cluster, { PORT: String(await freePort()), ...env });
  return {
    nothing: await start(quiet),
    metrics: await start({ ...quiet, ...(await metrics()) }),
    log: await start({}),
    traces: await start({ ...quiet, ...traces }),
    all: await start({ ...traces, ...(await metrics()) }),
  };
}

async function compareWays(
  bench: Bench,
  name: string,
  unit: string,
  measure: Measure & { readonly services: Record<Way, Service> },
): Promise<Comparison[]> {
  const rates: Record<string, number[]> = {};
  const { services } = measure;
  const ways = Object.fromEntries(
    Object.entries(services).map(([way, service]) => [
      way,
      async () => {
        service.resume();
        await untilReady(service);
        const { perSecond, cpuMicrosEach } = await measure(service).finally(() => service.pause());
        rates[way] = [...(rates[way] ?? []), perSecond];
        return cpuMicrosEach;
      },
    ]),
  ) as Record<Way, () => Promise<number>>;
  const { nothing, ...others } = await interleave(bench, ways);
  return Object.entries(others).map(([way, cpu]) => ({
    name: `${name}, ${way}`,
    yardstick: 'the same without telemetry',
    unit: `µs of CPU for each of the ${unit}`,
    bare: nothing,
    intake: cpu,
    ratios: ratiosOf(cpu, nothing),
    ...(way === 'all' && goals[name] && { goal: goals[name] }),
    // Skip the first value, which is from the warm-up.
    notes: [`${unit}/s: ${(rates[way] ?? []).slice(1).map(Math.round).join(', ')}`],
  }));
}

async function uploading(bench: Bench, services: Record<Way, Service>) {
  const { cluster, tenant, connections, rows } = bench;
  await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
  const recipe: Recipe = { type: 'transactions', count: rows, seed: 7 };
  const requests = uploadRequests(bench, recipe);
  const measure = async (service: Service) => {
    await cluster.clean(publicTable('transactions'));
    const before = cpuSeconds({ service, cluster });
    const perSecond = await uploadRate({ port: service.port, connections }, requests, { created: rows });
    return { perSecond, cpuMicrosEach: ((cpuSeconds({ service, cluster }) - before) / rows) * 1e6 };
  };
  return Object.assign(measure, { services });
}

async function interacting(bench: Bench, services: Record<Way, Service>) {
  const { cluster, tenant, seconds } = bench;
  for (const type of ['shops', 'customers'] as const)
    await storeReferences(cluster, [tenant.organisationId], type, items);
  const requests = interactionRequests(tenant, items);
  const measure = async (service: Service) => {
    await cluster.clean('public.interactions');
    const before = cpuSeconds({ service, cluster });
    const load = await withConnections(service.port, clients, (connections) =>
      sendInTurn(connections, cycleFor(requests, seconds), expectRecorded),
    );
    const spent = cpuSeconds({ service, cluster }) - before;
    return { perSecond: load.answers / load.seconds, cpuMicrosEach: (spent / load.answers) * 1e6 };
  };
  return Object.assign(measure, { services });
}

/** Starts a server that reads and discards everything it receives. */
async function startCollector(): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(200).end('{}'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

async function freePort(): Promise<number> {
  const socket = createSocket();
  await new Promise<void>((resolve) => socket.listen(0, '127.0.0.1', resolve));
  const { port } = socket.address() as AddressInfo;
  await new Promise((resolve) => socket.close(resolve));
  return port;
}
