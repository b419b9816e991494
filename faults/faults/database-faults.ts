import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { World } from '../world/world.ts';
import type { FaultKind } from './fault.ts';

/** Faults of PostgreSQL as a whole, and of its sessions. */

/** Ends PostgreSQL with a signal, and starts it again after this time. */
async function restart(world: World, signal: 'SIGKILL' | 'SIGQUIT', ms: number): Promise<void> {
  const { database, proxies } = world;
  await database.end(signal);
  await sleep(ms);
  await database.restart();
  for (const proxy of [...proxies.database, proxies.lakeDatabase]) proxy.leadTo(database.port);
}

export const databaseFaults: readonly FaultKind[] = [
  {
    name: 'PostgreSQL killed',
    weight: 4,
    play: ({ world, random }) => restart(world, 'SIGKILL', random.below(2_000)),
  },
  {
    name: 'PostgreSQL stopped at once',
    weight: 3,
    play: ({ world, random }) => restart(world, 'SIGQUIT', random.below(2_000)),
  },
  {
    name: 'PostgreSQL frozen',
    weight: 3,
    async play({ world, random }) {
      world.database.signal('SIGSTOP');
      await sleep(500 + random.below(9_000));
      world.database.signal('SIGCONT');
    },
  },
  {
    name: 'sessions of PostgreSQL terminated',
    weight: 5,
    async play({ world, random }) {
      await world.database.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where usename like 'intake_faults%' and random() < $1`,
        [0.2 + random.next() * 0.8],
      );
    },
  },
  {
    name: 'statements of PostgreSQL cancelled',
    weight: 3,
    async play({ world }) {
      for (let time = 0; time < 10; time++) {
        await world.database.query(
          `select pg_cancel_backend(pid) from pg_stat_activity
           where usename like 'intake_faults%' and state = 'active'`,
        );
        await sleep(50);
      }
    },
  },
  {
    name: 'PostgreSQL out of connections',
    weight: 3,
    async play({ world, random }) {
      const { database, proxies } = world;
      const taken: pg.Client[] = [];
      const url = new URL(database.url);
      url.username = 'intake_faults';
      try {
        for (let more = 0; more < 200; more++) {
          const client = new pg.Client({ connectionString: url.href });
          client.on('error', () => {});
          await client.connect();
          taken.push(client);
        }
      } catch {
        // All connections are taken.
      }
      // The processes have to connect again, and cannot.
      const [proxy] = proxies.database;
      proxy?.cut(1, () => 0, true);
      await sleep(500 + random.below(4_000));
      await Promise.all(taken.map((client) => client.end().catch(() => {})));
    },
  },
  {
    name: 'a table locked',
    weight: 2,
    async play({ world, random }) {
      const table = random.pick([
        'transactions',
        'customers',
        'interactions',
        'rejections',
        'changes',
        'receipts',
      ]);
      await world.database.connected(async (client) => {
        await client.query('begin');
        await client.query(`set local lock_timeout = '5s'`);
        const got = await client.query(`lock table ${table} in access exclusive mode`).catch(() => null);
        if (got) await sleep(500 + random.below(4_000));
        await client.query('rollback');
      });
    },
  },
  {
    name: 'transactions held before they end',
    weight: 3,
    async play({ world, random }) {
      // Every transaction that stores something adds to the change log last.
      await world.database.connected(async (client) => {
        await client.query('begin');
        await client.query(`set local lock_timeout = '5s'`);
        const got = await client.query('lock table changes in exclusive mode').catch(() => null);
        if (got) await sleep(1_000 + random.below(4_000));
        await client.query('rollback');
      });
    },
  },
];
