import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import pg from 'pg';
import {
  citusNodes,
  cloneCitusDatabase,
  createCitusTemplate,
  dropCitusDatabase,
} from '../../test/support/citus.ts';
import {
  type Bench,
  type Case,
  type Comparison,
  type Goal,
  interleave,
  median,
  ratiosOf,
  type Way,
} from '../case.ts';
import type { Cluster } from '../cluster.ts';
import { cpuSecondsOfEach } from '../cpu-time.ts';
import { cycleFor, requestOf, sendInTurn, withConnections } from '../http-load.ts';
import { expectRecorded, interactionRequests } from '../interactions.ts';
import { bodiesOf, referencesDefault } from '../records.ts';
import { migrateWithService, runCommand, type Service, startService } from '../service.ts';
import { createTenants, publicTable, storeReferencesIn, type Tenant } from '../tables.ts';
import { uploadRate } from '../upload.ts';

const goalOfUploads = { atLeast: 0.6 };
const goalOfOne = { atLeast: 0.6 };
const goalOfEight = { atLeast: 0.5 };
const organisations = 8;
const clients = 64;
const items = 1_000;

/** The service on one of the two databases. */
interface Side {
  readonly database: Pick<Cluster, 'query'>;
  readonly service: Service;
  readonly tenants: readonly Tenant[];
  recorded: number;
}

/**
 * Measures the cost of Citus without its benefit: all Citus nodes share one machine, whereas the plain database has the
 * machine to itself.
 */
export const citus: Case = {
  name: 'citus',
  what: "distributed over the cluster of CITUS_URL against a plain database of its coordinator's server",
  long: true,
  async run(bench) {
    const url = process.env.CITUS_URL;
    if (!url) {
      bench.progress('skipped: it needs CITUS_URL, the superuser on the coordinator of a Citus cluster');
      return [];
    }
    const nodes = await citusNodes(url);
    for (const node of nodes) await expectDurable(node);
    await using made = new AsyncDisposableStack();
    const plain = await startSide(bench, made, await plainDatabase(made, nodes[0] as string));
    const spread = await startSide(bench, made, await distributedDatabase(bench, made, nodes));
    const settle = () => Promise.all(nodes.map((node) => ask(node, 'checkpoint')));
    const postmasters = await Promise.all(nodes.map(postmasterOf));
    const compare = async (
      name: string,
      unit: string,
      goal: Goal,
      way: (side: Side) => () => Promise<Measured>,
    ): Promise<Comparison> => {
      const micros = { plain: [] as number[], citus: [] as number[] };
      const measure = (side: Side, which: keyof typeof micros): Way => {
        const work = way(side);
        return async () => {
          await settle();
          const before = cpuOf(side, postmasters);
          const { count, seconds } = await work();
          micros[which].push(((cpuOf(side, postmasters) - before) * 1e6) / count);
          return count / seconds;
        };
      };
      const { plain: bare, citus: intake } = await interleave(bench, {
        plain: measure(plain, 'plain'),
        citus: measure(spread, 'citus'),
      });
      const ratios = ratiosOf(intake, bare);
      const yardstick = 'through the service on a plain database';
      // Skip the first value, which is from the warm-up.
      const cpu = (which: keyof typeof micros) => median(micros[which].slice(1)).toFixed(0);
      const notes = [`CPU of service and nodes, each: ${cpu('plain')} µs plain, ${cpu('citus')} on Citus`];
      return { name, yardstick, unit, bare, intake, ratios, goal, notes };
    };
    const compared = [
      await compare('citus, uploads', 'rows/s', goalOfUploads, (side) => uploading(bench, side)),
      await compare('citus, interactions of 1', 'requests/s', goalOfOne, (side) => recording(bench, side, 1)),
      await compare(`citus, interactions of ${organisations}`, 'requests/s', goalOfEight, (side) =>
        recording(bench, side, organisations),
      ),
    ];
    for (const side of [plain, spread]) await expectAllStored(side);
    return compared;
  },
};

interface Measured {
  readonly count: number;
  readonly seconds: number;
}

/**
 * Uploads new transactions for all organisations. Each upload contains different records, because the tables are not
 * emptied.
 */
function uploading({ rows, connections }: Bench, { service, tenants }: Side): () => Promise<Measured> {
  let seed = 100;
  return async () => {
    const each = Math.ceil(rows / tenants.length);
    const count = each * tenants.length;
    const requests = tenants.flatMap(({ key }) =>
      bodiesOf({ type: 'transactions', count: each, seed: seed++, perBody: 1_000 }).map((body) =>
        requestOf('/v1/data/transactions', key, body),
      ),
    );
    const rate = await uploadRate({ port: service.port, connections }, requests, { created: count });
    return { count, seconds: count / rate };
  };
}

function recording({ seconds }: Bench, side: Side, count: number): () => Promise<Measured> {
  const each = side.tenants.slice(0, count).map((tenant) => interactionRequests(tenant, items));
  // Interleave the organisations' requests.
  const requests = Array.from({ length: items }, (_, at) => each.map((own) => own[at] as Buffer)).flat();
  return async () => {
    const load = await withConnections(side.service.port, clients, (open) =>
      sendInTurn(open, cycleFor(requests, seconds), expectRecorded),
    );
    side.recorded += load.answers;
    return { count: load.answers, seconds: load.seconds };
  };
}

/** Returns the process id of a node's postmaster, or zero if the node is on another machine. */
async function postmasterOf(node: string): Promise<number> {
  const [row] = await ask<{ pid: string; folder: string }>(
    node,
    `select split_part(pg_read_file('postmaster.pid'), e'\\n', 1) as pid, current_setting('data_directory') as folder`,
  );
  return existsSync(`${row?.folder}/postmaster.pid`) ? Number(row?.pid) : 0;
}

/** Returns the CPU seconds used so far by one side's service and by all nodes. The other side is idle. */
function cpuOf({ service }: Side, postmasters: readonly number[]): number {
  const used = postmasters.map((postmasterPid) => cpuSecondsOfEach({ service, cluster: { postmasterPid } }));
  return used.reduce((sum, { postgres }) => sum + postgres, used[0]?.service ?? 0);
}

async function startSide(bench: Bench, made: AsyncDisposableStack, url: string): Promise<Side> {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  made.defer(() => pool.end());
  const database = {
    query: async <R extends pg.QueryResultRow>(text: string, values: unknown[] = []) =>
      (await pool.query<R>(text, values)).rows,
  };
  const tenants = await createTenants(database, organisations);
  const ids = tenants.map(({ organisationId }) => organisationId);
  await storeReferencesIn(publicTable('shops'), database, ids, 'shops', Math.max(items, referencesDefault));
  await storeReferencesIn(publicTable('customers'), database, ids, 'customers', items);
  const service = await startService({ url, folder: bench.cluster.folder });
  made.defer(() => service.stop());
  return { database, service, tenants, recorded: 0 };
}

async function plainDatabase(made: AsyncDisposableStack, server: string): Promise<string> {
  const name = newName();
  await ask(server, `create database ${name}`);
  made.defer(async () => void (await ask(server, `drop database ${name} with (force)`)));
  const url = on(server, name);
  await migrateWithService({ url });
  return url;
}

async function distributedDatabase(
  bench: Bench,
  made: AsyncDisposableStack,
  nodes: readonly string[],
): Promise<string> {
  const [template, name] = [newName(), newName()];
  made.defer(() => dropCitusDatabase(nodes, template));
  bench.progress('distributing a database');
  await createCitusTemplate(nodes, template, async (url) => {
    await migrateWithService({ url });
    await runCommand({ url }, 'distribute');
  });
  made.defer(() => dropCitusDatabase(nodes, name));
  await cloneCitusDatabase(nodes, template, name);
  return on(nodes[0] as string, name);
}

async function expectAllStored({ database, recorded }: Side): Promise<void> {
  const [row] = await database.query<{ stored: string }>('select count(*) as stored from interactions');
  if (Number(row?.stored) !== recorded)
    throw new Error(`${recorded} interactions were answered and ${row?.stored} are stored`);
}

async function expectDurable(node: string): Promise<void> {
  const [row] = await ask<{ fsync: string }>(node, 'show fsync');
  if (row?.fsync !== 'on') throw new Error(`fsync is off at ${new URL(node).host}; turn it on to measure`);
}

const newName = () => `bench_${randomBytes(4).toString('hex')}`;

function on(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

async function ask<R extends pg.QueryResultRow>(url: string, text: string): Promise<R[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<R>(text)).rows;
  } finally {
    await client.end();
  }
}
