import { randomUUID } from 'node:crypto';
import { type Bench, type Case, type Comparison, interleave, median, percentile, ratiosOf } from '../case.ts';
import { cpuSecondsOfEach } from '../cpu-time.ts';
import { cycleFor, sendInTurn, withConnections } from '../http-load.ts';
import { expectRecorded, expectStored, interactionRequests } from '../interactions.ts';
import { storeReferences } from '../tables.ts';

const items = 5_000;
const tables = ['public.interactions', 'public.interaction_idempotency_keys'];
/** A placeholder with the length of a UUID, which is replaced with a new key in each request. */
const placeholder = 'k'.repeat(36);

/** Measures the cost of an Idempotency-Key, which our client always sends. */
export const interactionsKeys: Case = {
  name: 'interactions-keys',
  what: 'interactions with an Idempotency-Key compared with the same without, at 64 and 512 connections',
  async run(bench) {
    for (const type of ['shops', 'customers'] as const)
      await storeReferences(bench.cluster, [bench.tenant.organisationId], type, items);
    return [...(await compareAt(bench, 64)), ...(await compareAt(bench, 512))];
  },
};

interface Measured {
  readonly service: number[];
  readonly postgres: number[];
  readonly p99: number[];
}

async function compareAt(bench: Bench, clients: number): Promise<Comparison[]> {
  const measured: Record<string, Measured> = {};
  const wayOf = (name: string, requests: readonly Buffer[]) => async () => {
    const { cluster, service, seconds } = bench;
    await cluster.clean(...tables);
    const next = cycleFor(requests, seconds);
    const before = cpuSecondsOfEach({ service, cluster });
    const {
      answers,
      seconds: taken,
      latenciesMs,
    } = await withConnections(service.port, clients, (connections) =>
      sendInTurn(connections, () => withNewKey(next()), expectRecorded),
    );
    const after = cpuSecondsOfEach({ service, cluster });
    await expectStored(bench, answers);
    measured[name] ??= { service: [], postgres: [], p99: [] };
    measured[name].service.push(((after.service - before.service) / answers) * 1e6);
    measured[name].postgres.push(((after.postgres - before.postgres) / answers) * 1e6);
    measured[name].p99.push(percentile(latenciesMs, 0.99));
    return answers / taken;
  };
  const rates = await interleave(bench, {
    without: wayOf('without', interactionRequests(bench.tenant, items)),
    with: wayOf('with', interactionRequests(bench.tenant, items, `Idempotency-Key: ${placeholder}\r\n`)),
  });
  const { with: keyed, without: plain } = measured as { with: Measured; without: Measured };
  const compare = (name: string, unit: string, bare: number[], intake: number[]) => ({
    name: `${name} with a key, ${clients} connections`,
    yardstick: 'the same without a key',
    unit,
    bare,
    intake,
    ratios: ratiosOf(intake, bare),
  });
  // Skip the first value, which is from the warm-up.
  const cpu = (part: 'service' | 'postgres') => [plain[part].slice(1), keyed[part].slice(1)] as const;
  return [
    {
      ...compare('interactions', 'requests/s', rates.without, rates.with),
      goal: { atLeast: 0.8 },
      notes: [
        `p99 ${median(keyed.p99.slice(1)).toFixed(0)} ms, without ${median(plain.p99.slice(1)).toFixed(0)} ms`,
      ],
    },
    compare('CPU of the service', 'µs each', ...cpu('service')),
    { ...compare('CPU of PostgreSQL', 'µs each', ...cpu('postgres')), goal: { atMost: 2.5 } },
  ];
}

/** Copies a request. If the request has a key, the copy gets a new key. */
function withNewKey(request: Uint8Array | undefined): Uint8Array | undefined {
  const at = (request as Buffer | undefined)?.indexOf(placeholder) ?? -1;
  if (request === undefined || at === -1) return request;
  const copy = Buffer.from(request);
  copy.write(randomUUID(), at);
  return copy;
}
