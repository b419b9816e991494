import { setTimeout as sleep } from 'node:timers/promises';
import { startBackgroundUploads } from '../background-uploads.ts';
import { type Bench, type Case, interleave, median, percentile, ratiosOf } from '../case.ts';
import { cpuSecondsOfEach } from '../cpu-time.ts';
import { clockMs, type FeedReaders, startFeedReaders } from '../feed-readers.ts';
import { requestOf, withConnections } from '../http-load.ts';
import { fieldsOf, makeRecords, type Recipe, referencesDefault } from '../records.ts';
import { storeReferences } from '../tables.ts';
import { uploadRequests } from '../upload.ts';

const lagGoalMs = 1_000;
const readers = 3;
const uploaders = 8;
const bodySizes = [1_000, 2_000, 5_000];
const markerEveryMs = 50;
/** The minimum duration, because a shorter run would not reveal a reader that slowly falls behind. */
const secondsMin = 15;
/** How long to wait for a reader to catch up. */
const catchUpMs = 120_000;
const amountAt = fieldsOf('transactions').indexOf('amount');

/** Measures the delay from the response to an upload until its change is read, while uploads saturate the machine. */
export const feed: Case = {
  name: 'feed',
  what: `lag of ${readers} readers of the change feed while ${uploaders} uploaders saturate the service`,
  async run(given) {
    const bench = { ...given, seconds: Math.max(given.seconds, secondsMin) };
    const { cluster, tenant } = bench;
    await storeReferences(cluster, [tenant.organisationId], 'shops', referencesDefault);
    await cluster.query(
      `update api_keys set permissions = permissions || '{interactions:read}' where organisation_id = $1`,
      [tenant.organisationId],
    );
    bench.progress('preparing bodies');
    const requests = requestsOf(bench);
    const lags: number[][] = [];
    const usage = { alone: [] as Usage[], beside: [] as Usage[] };
    const { alone, 'with readers': beside } = await interleave(bench, {
      alone: async () => {
        const used = await uploadFor(bench, requests, () => sleep(bench.seconds * 1_000));
        usage.alone.push(used);
        return used.records / used.seconds;
      },
      'with readers': async () => {
        const reading = await startReaders(bench);
        const sent = new Map<string, number>();
        const used = await uploadFor(bench, requests, () => sendMarkers(bench, sent));
        usage.beside.push(used);
        await untilRead(sent, reading);
        await reading.stop();
        lags.push(lagsOf(sent, reading));
        return used.records / used.seconds;
      },
    });
    const p99 = lags.slice(1).map((all) => percentile(all, 0.99));
    const p50 = lags.slice(1).map((all) => percentile(all, 0.5));
    const goals = p99.map(() => lagGoalMs);
    return [
      {
        name: 'feed, p99 of the lag',
        yardstick: 'the promise',
        unit: 'ms',
        bare: goals,
        intake: p99,
        ratios: ratiosOf(p99, goals),
        goal: { atMost: 1 },
        notes: [`p50 ${Math.round(median(p50))} ms`],
      },
      {
        name: 'feed, uploads',
        yardstick: 'uploads without readers',
        unit: 'records/s',
        bare: alone,
        intake: beside,
        ratios: ratiosOf(beside, alone),
        notes: [costOf('without readers', usage.alone), costOf(`with ${readers} readers`, usage.beside)],
      },
    ];
  },
};

/** Creates upload requests. In the first pass the records are new, and in every later pass all records are changed. */
function requestsOf(bench: Bench): Buffer[] {
  const recipe: Recipe = { type: 'transactions', count: Math.ceil(bench.rows / bodySizes.length), seed: 11 };
  const dearer = (_: number, values: unknown[]) => {
    values[amountAt] = Number(values[amountAt]) + 1;
  };
  const mixed = (alter?: Recipe['alter']) => {
    const ofSizes = bodySizes.map((perBody, at) =>
      uploadRequests(bench, { ...recipe, seed: recipe.seed + at, perBody, ...(alter && { alter }) }),
    );
    const longest = Math.max(...ofSizes.map(({ length }) => length));
    return Array.from({ length: longest }, (_, at) => ofSizes.flatMap((some) => some[at] ?? [])).flat();
  };
  return [...mixed(), ...mixed(dearer)];
}

interface Usage {
  readonly records: number;
  readonly seconds: number;
  readonly service: number;
  readonly postgres: number;
}

/**
 * Uploads while `work` runs. Returns the number of stored records according to the change log, the elapsed time, and
 * the CPU time.
 */
async function uploadFor(
  bench: Bench,
  requests: readonly Uint8Array[],
  work: () => Promise<void>,
): Promise<Usage> {
  const { cluster, service } = bench;
  await cluster.clean('public.transactions');
  const recordsStored = async () => {
    const [row] = await cluster.query<{ sum: string }>('select coalesce(sum(size), 0) as sum from changes');
    return Number(row?.sum);
  };
  const before = { records: await recordsStored(), ...cpuSecondsOfEach(bench), ms: clockMs() };
  const uploads = await startBackgroundUploads({ port: service.port, connections: uploaders, requests });
  await work().finally(() => uploads.stop());
  const seconds = (clockMs() - before.ms) / 1_000;
  const cpu = cpuSecondsOfEach(bench);
  return {
    records: (await recordsStored()) - before.records,
    seconds,
    service: cpu.service - before.service,
    postgres: cpu.postgres - before.postgres,
  };
}

function costOf(what: string, used: readonly Usage[]): string {
  const perRecord = (part: 'service' | 'postgres') =>
    (median(used.slice(1).map((one) => one[part] / one.records)) * 1e6).toFixed(1);
  return `${what}: ${perRecord('service')} µs of CPU a record in the service, ${perRecord('postgres')} in PostgreSQL`;
}

async function startReaders({ service, tenant }: Bench): Promise<FeedReaders> {
  const exported = await fetch(`http://127.0.0.1:${service.port}/v1/data/tags?include_deleted=true`, {
    headers: { authorization: `Bearer ${tenant.key}`, accept: 'application/x-ndjson' },
  });
  await exported.arrayBuffer();
  const after = exported.headers.get('changes-cursor');
  if (after === null) throw new Error(`an export without a cursor: ${exported.status}`);
  return startFeedReaders({ port: service.port, key: tenant.key, after, readers });
}

let markerSeed = 1_000;

/** Uploads one tag after another and records when each upload was answered. */
async function sendMarkers({ service, tenant, seconds }: Bench, sent: Map<string, number>): Promise<void> {
  const names = fieldsOf('tags');
  await withConnections(service.port, 1, async ([connection]) => {
    for (const endMs = clockMs() + seconds * 1_000; clockMs() < endMs; ) {
      const [values = []] = makeRecords({ type: 'tags', count: 1, seed: ++markerSeed });
      const record = Object.fromEntries(names.map((name, at) => [name, values[at]]));
      const body = Buffer.from(JSON.stringify({ records: [record] }));
      const answer = await connection?.send(requestOf('/v1/data/tags', tenant.key, body));
      if (answer?.status !== 200) throw new Error(`a marker was answered ${answer?.status}`);
      sent.set(String(values[0]), clockMs());
      await sleep(markerEveryMs);
    }
  });
}

async function untilRead(sent: ReadonlyMap<string, number>, { arrived }: FeedReaders): Promise<void> {
  const endMs = clockMs() + catchUpMs;
  while (arrived.some((ids) => ids.size < sent.size)) {
    if (clockMs() > endMs) throw new Error('a reader has not caught up within two minutes');
    await sleep(20);
  }
}

function lagsOf(sent: ReadonlyMap<string, number>, { arrived }: FeedReaders): number[] {
  return arrived.flatMap((ids) => [...sent].map(([id, ms]) => Math.max(0, (ids.get(id) ?? NaN) - ms)));
}
