import { type Bench, type Case, interleave, median, percentile, ratiosOf } from '../case.ts';
import { cycleFor, sendInTurn, withConnections } from '../http-load.ts';
import {
  createBareInteractions,
  expectRecorded,
  expectStored,
  interactionRequests,
  sameForAll,
} from '../interactions.ts';
import { referencePrefix } from '../records.ts';
import { storeReferences } from '../tables.ts';

const goal = { atLeast: 1 };
const floor = 0.25;
const p99MsMax = 50;
const clients = 64;
const items = 5_000;
const tables = ['bare.interactions', 'public.interactions'];

/** Sends one interaction per request, as many users would, compared with pgbench inserting the same single row. */
export const interactions: Case = {
  name: 'interactions',
  what: `interactions of ${clients} clients compared with pgbench inserting the same row`,
  quick: true,
  async run(bench) {
    const { cluster, tenant, service, seconds } = bench;
    for (const type of ['shops', 'customers'] as const) {
      await storeReferences(cluster, [tenant.organisationId], type, items);
    }
    await createBareInteractions(bench);
    const requests = interactionRequests(tenant, items);
    const p50: number[] = [];
    const p99: number[] = [];
    const { service: intake, pgbench: bare } = await interleave(bench, {
      pgbench: async () => {
        await cluster.clean(...tables);
        const said = await cluster.pgbench(
          insertScript(bench),
          ...['-M', 'prepared', '-c', String(clients), '-j', '2', '-T', String(seconds)],
        );
        return Number(/tps = ([\d.]+)/.exec(said)?.[1]);
      },
      service: async () => {
        await cluster.clean(...tables);
        const load = await withConnections(service.port, clients, (connections) =>
          sendInTurn(connections, cycleFor(requests, seconds), expectRecorded),
        );
        await expectStored(bench, load.answers);
        p50.push(percentile(load.latenciesMs, 0.5));
        p99.push(percentile(load.latenciesMs, 0.99));
        return load.answers / load.seconds;
      },
    });
    // Skip the first value, which is from the warm-up.
    p50.shift();
    p99.shift();
    return [
      {
        name: 'interactions',
        yardstick: `pgbench -M prepared, ${clients} clients`,
        unit: 'requests/s',
        bare,
        intake,
        ratios: ratiosOf(intake, bare),
        goal,
        floor,
        notes: [`closed loop of ${clients} clients; p50 ${median(p50).toFixed(1)} ms`],
      },
      {
        name: 'interactions, p99',
        yardstick: `a limit of ${p99MsMax} ms`,
        unit: 'ms',
        bare: p99.map(() => p99MsMax),
        intake: p99,
        ratios: p99.map((ms) => ms / p99MsMax),
        goal: { atMost: 1 },
      },
    ];
  },
};

/** Returns the pgbench script. Ids start with the time, as in the service. Constant values are not sent as parameters. */
function insertScript({ tenant }: Bench): string {
  const time = Date.now().toString(16).padStart(12, '0');
  const columns = Object.keys(sameForAll)
    .map((name) => `, ${name}`)
    .join('');
  const values = Object.entries(sameForAll).map(([name, value]) =>
    name === 'event_timestamp' ? `, '"${value}"'::jsonb` : `, '${value}'`,
  );
  const uuid = (prefix: string, variable: string) =>
    `('${prefix}' || lpad(:${variable}::text, 12, '0'))::uuid`;
  return `
\\set item random(1, ${items})
\\set student random(1, ${items})
insert into bare.interactions
  (organisation_id, interaction_id, item_id, student_id, user_id, event_time${columns})
values
  ('${tenant.organisationId}', ('${time.slice(0, 8)}-${time.slice(8)}-7' || substr(gen_random_uuid()::text, 16))::uuid,
   ${uuid(referencePrefix('shops'), 'item')}, ${uuid(referencePrefix('customers'), 'student')},
   'visitor-' || :student::text, '${sameForAll.event_timestamp}'${values.join('')});
`;
}
