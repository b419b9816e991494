import { type Bench, type Case, type Comparison, interleave, ratiosOf } from '../case.ts';
import { buildCheckout } from '../checkout.ts';
import { cpuSecondsOfEach } from '../cpu-time.ts';
import { cycleFor, sendInTurn, withConnections } from '../http-load.ts';
import { expectRecorded, interactionRequests } from '../interactions.ts';
import { type Recipe, referenceId } from '../records.ts';
import { migrateWithService, runCommand, type Service, startService, untilReady } from '../service.ts';
import type { Tenant } from '../tables.ts';
import { uploadRate, uploadRequests } from '../upload.ts';

const items = 1_000;
const clients = 64;

/**
 * One version of the service, with its own database. All data is stored through the service's API, because the
 * versions' schemas may differ.
 */
interface Side {
  readonly service: Service;
  readonly tenant: Tenant;
  /** The number of uploads so far. Each upload contains new records. */
  uploads: number;
}

/**
 * Compares this version with another version. The two are measured in turn, and each is paused while the other runs.
 */
export const compare: Case = {
  name: 'compare',
  what: 'this version compared with --base: uploads, interactions, reading the change feed',
  long: true,
  async run(bench) {
    if (bench.base === undefined) {
      bench.progress('skipped: it needs --base');
      return [];
    }
    bench.progress(`building ${bench.base}`);
    const { commit, main, remove } = await buildCheckout(bench.base);
    bench.defer(remove);
    const sides = {
      old: await startSide(bench, 'compare_old', { main }),
      new: await startSide(bench, 'compare_new', {}),
    };
    // Pause the service that the other cases use, because it would also put load on PostgreSQL.
    bench.service.pause();
    try {
      return [
        ...(await compareWork(bench, sides, commit, 'uploads', 'records', upload)),
        ...(await compareWork(bench, sides, commit, 'interactions', 'requests', interact)),
        ...(await compareWork(bench, sides, commit, 'feed', 'changes', readFeed)),
      ];
    } finally {
      bench.service.resume();
    }
  },
};

async function startSide(bench: Bench, name: string, version: { main?: string }): Promise<Side> {
  const { cluster } = bench;
  bench.progress(`starting ${name}`);
  await cluster.query(`drop database if exists ${name}`);
  await cluster.query(`create database ${name}`);
  const url = new URL(cluster.url);
  url.pathname = `/${name}`;
  const target = { ...version, url: url.href };
  await migrateWithService(target);
  await runCommand(target, 'organisations', 'create', 'bench');
  const issued = JSON.parse(await runCommand(target, 'keys', 'issue', '--organisation', 'bench', '--json'));
  const service = await startService({ ...target, folder: cluster.folder });
  bench.defer(() => service.stop());
  const side = { service, tenant: { organisationId: '', key: issued.key }, uploads: 0 };
  for (const type of ['shops', 'customers'] as const) {
    const alter = (number: number, values: unknown[]) => {
      values[0] = referenceId(type, number + 1);
    };
    await uploadAll(bench, side, { type, count: items, seed: 1, alter });
  }
  service.pause();
  return side;
}

/** Does the work and returns how much was done, in total and per second. */
type Work = (bench: Bench, side: Side) => Promise<{ done: number; perSecond: number }>;

async function compareWork(
  bench: Bench,
  sides: Readonly<Record<'old' | 'new', Side>>,
  commit: string,
  name: string,
  unit: string,
  work: Work,
): Promise<Comparison[]> {
  const cpu = { old: [] as Cpu[], new: [] as Cpu[] };
  const way = (which: 'old' | 'new') => async () => {
    const { perSecond, ...used } = await measure(bench, sides[which], work);
    cpu[which].push(used);
    return perSecond;
  };
  const rates = await interleave(bench, { old: way('old'), new: way('new') });
  const cpuOf = (which: 'old' | 'new', part: keyof Cpu) => cpu[which].slice(1).map((one) => one[part]);
  const lineOf = (what: string, unitOfLine: string, bare: number[], intake: number[]) => ({
    name: what,
    yardstick: commit,
    unit: unitOfLine,
    bare,
    intake,
    ratios: ratiosOf(intake, bare),
  });
  const parts = ['service', 'postgres'] as const;
  return [
    lineOf(name, `${unit}/s`, rates.old, rates.new),
    ...parts.map((part) =>
      lineOf(`${name}, CPU of ${part}`, `µs for each of the ${unit}`, cpuOf('old', part), cpuOf('new', part)),
    ),
  ];
}

interface Cpu {
  readonly service: number;
  readonly postgres: number;
}

/** Measures the CPU time per item of work in microseconds. */
async function measure(bench: Bench, side: Side, work: Work): Promise<Cpu & { perSecond: number }> {
  const { cluster } = bench;
  const { service } = side;
  service.resume();
  try {
    await untilReady(service);
    await cluster.query('checkpoint');
    const before = cpuSecondsOfEach({ service, cluster });
    const { done, perSecond } = await work(bench, side);
    const after = cpuSecondsOfEach({ service, cluster });
    const each = (part: keyof Cpu) => ((after[part] - before[part]) / done) * 1e6;
    return { service: each('service'), postgres: each('postgres'), perSecond };
  } finally {
    service.pause();
  }
}

async function upload(bench: Bench, side: Side) {
  const recipe: Recipe = {
    type: 'transactions',
    count: bench.rows,
    seed: 100 + side.uploads++,
    references: items,
  };
  return { done: bench.rows, perSecond: await uploadAll(bench, side, recipe) };
}

function uploadAll({ connections, ...bench }: Bench, { service, tenant }: Side, recipe: Recipe) {
  const requests = uploadRequests({ ...bench, connections, tenant }, recipe);
  return uploadRate({ port: service.port, connections }, requests, { created: recipe.count });
}

async function interact({ seconds }: Bench, { service, tenant }: Side) {
  const requests = interactionRequests(tenant, items);
  const load = await withConnections(service.port, clients, (connections) =>
    sendInTurn(connections, cycleFor(requests, seconds), expectRecorded),
  );
  return { done: load.answers, perSecond: load.answers / load.seconds };
}

const page = 1_000;

/** Reads pages starting with the oldest change, and starts over at the end. */
async function readFeed({ seconds }: Bench, { service, tenant }: Side) {
  let after = '';
  let done = 0;
  const requestOfNext = () =>
    Buffer.from(
      `GET /v1/changes?limit=${page}${after} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${tenant.key}\r\n\r\n`,
    );
  const began = performance.now();
  await withConnections(service.port, 1, async ([connection]) => {
    while (performance.now() - began < seconds * 1_000) {
      const answer = await connection?.send(requestOfNext());
      const end = answer?.body.toString('latin1', answer.body.length - 200) ?? '';
      const next = /"next_cursor":"([^"]+)","has_more":(true|false)/.exec(end);
      if (answer?.status !== 200 || !next)
        throw new Error(`a page of changes was answered ${answer?.status}`);
      after = next[2] === 'true' ? `&after=${next[1]}` : '';
      // The last page is shorter, but one page in hundreds makes no difference.
      done += page;
    }
  });
  return { done, perSecond: done / ((performance.now() - began) / 1_000) };
}
