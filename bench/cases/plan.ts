import { planCapacity } from '../../src/cli/capacity.ts';
import { measuredCosts as costs } from '../../src/cli/measured-costs.ts';
import { type Bench, type Case, type Comparison, ratiosOf } from '../case.ts';
import { sendAtRate, withConnections } from '../http-load.ts';
import { expectRecorded, interactionRequests } from '../interactions.ts';
import { storeReferences } from '../tables.ts';
import { countOutcomes, uploadRequests } from '../upload.ts';
import { type Usage, usageOf } from '../usage.ts';

/** Half of a core for the service: what two cores carry beside PostgreSQL and the one that sends. */
const demand = {
  recordsPerSecond: 10_000,
  recordsPerRequest: 1_000,
  interactionsPerSecond: 2_000,
  organisations: 1,
  retentionDays: 1,
};
const items = 5_000;
const within = 1.2;
/** Of the CPU: another machine may be half as fast, and a busy one takes longer for everything. */
const cpuFloor = 0.2;
/** Of bytes, which are the same everywhere but for the pages that PostgreSQL adds ahead when several wait for one. */
const bytesFloor = 0.5;

/** Uploads and interactions together at a steady rate, and what `intake-server plan` says of it. */
export const plan: Case = {
  name: 'plan',
  what: `what intake-server plan says of ${demand.recordsPerSecond} records and ${demand.interactionsPerSecond} interactions a second against what they take`,
  quick: true,
  async run(bench) {
    const { cluster, tenant, seconds, rounds } = bench;
    for (const type of ['shops', 'customers'] as const)
      await storeReferences(cluster, [tenant.organisationId], type, items);
    bench.progress('preparing bodies');
    const load = loadOf(bench);
    const used: Usage[] = [];
    for (let round = 0; round <= rounds; round++) {
      bench.progress(round === 0 ? 'warm-up' : `round ${round} of ${rounds}`);
      const usage = await usageOf(bench, load);
      if (round > 0) used.push(usage);
    }
    const { service, postgres, disk } = planCapacity(demand);
    const planned = (name: string) => (disk.find((part) => part.name === name)?.perDay ?? 0) / 86_400;
    // What comes when a day is over is not part of it: `costs` measures that.
    const { interactionsPerSecond: each } = demand;
    const now = {
      cores: postgres.cores - each * costs.indexing * 1e-6,
      bytes: each * costs.stored.interaction.written,
    };
    const compare = comparing(used.map(perSecondIn(seconds)));
    return [
      compare('service', 'cores', service.cores, cpuFloor),
      compare('postgres', 'cores', now.cores, cpuFloor),
      compare('records', 'bytes/s', planned('records'), bytesFloor),
      compare('interactions', 'bytes/s', now.bytes, bytesFloor),
      compare('wal', 'bytes/s', planned('WAL archive'), bytesFloor),
    ];
  },
};

function loadOf(bench: Bench): () => Promise<unknown> {
  const { tenant, service, seconds } = bench;
  const { recordsPerSecond, recordsPerRequest: perBody, interactionsPerSecond } = demand;
  const count = recordsPerSecond * seconds;
  const uploads = uploadRequests(bench, { type: 'transactions', count, seed: 7, perBody });
  const interactions = interactionRequests(tenant, items);
  const uploadsAt = { perSecond: recordsPerSecond / perBody, seconds };
  const interactionsAt = { perSecond: interactionsPerSecond, seconds };
  return () =>
    withConnections(service.port, 4, (uploaders) =>
      withConnections(service.port, 64, (clients) =>
        Promise.all([
          sendAtRate(uploaders, uploads, uploadsAt, (answer) => countOutcomes([answer])),
          sendAtRate(clients, interactions, interactionsAt, expectRecorded),
        ]),
      ),
    );
}

/** By the seconds it should have taken: falling behind does not make the work less. */
function perSecondIn(seconds: number): (usage: Usage) => Usage {
  return (usage) => ({
    ...usage,
    service: usage.service / seconds,
    postgres: usage.postgres / seconds,
    records: (usage.records + usage.recordKeys) / seconds,
    interactions: usage.interactions / seconds,
    wal: usage.wal / seconds,
  });
}

function comparing(used: readonly Usage[]) {
  return (part: keyof Usage, unit: string, planned: number, floor: number): Comparison => {
    const bare = used.map((usage) => usage[part]);
    const intake = bare.map(() => planned);
    const ratios = ratiosOf(intake, bare);
    return { name: `plan, ${part}`, yardstick: 'as measured', unit, bare, intake, ratios, within, floor };
  };
}
