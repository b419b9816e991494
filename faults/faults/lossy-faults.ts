import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Database } from '../world/database.ts';
import type { World } from '../world/world.ts';
import type { FaultKind, Scene } from './fault.ts';

/**
 * Faults after which another copy of the database takes over: restored from a backup, or promoted. If commits are lost, the
 * operator repeats the audit log and the erasures, as docs/operating/day-two.md says.
 */

const programsOf = ({ serve, lake }: World) => [...serve, lake];

/** Stops every process, changes the database, and starts the processes again. */
async function whileStopped(world: World, change: () => Promise<void>): Promise<void> {
  await Promise.all(programsOf(world).map((program) => program.stop('SIGKILL')));
  await change();
  leadTo(world, world.database);
  for (const program of programsOf(world)) program.start();
}

function leadTo({ proxies }: World, { port }: Database): void {
  for (const proxy of [...proxies.database, proxies.lakeDatabase]) proxy.leadTo(port);
}

/** Copies what the old database knows of revoked keys and erased people, and repeats it on the new one. */
async function afterLoss(world: World, replace: () => Promise<void>): Promise<void> {
  const [audit, erasures] = ['audit.json', 'erasures.ndjson'].map((name) => join(world.folder, name));
  writeFileSync(audit as string, world.command('audit', '--json', '--limit', '10000'));
  writeFileSync(erasures as string, world.command('erasures'));
  await replace();
  world.command('after-restore', '--audit', audit as string, '--erasures', erasures as string);
}

/** Makes a copy of the running database that follows it, like a standby. */
async function startStandby({ database, folder }: World, random: Scene['random']): Promise<Database> {
  const home = join(folder, `standby-${random.hex(6)}`);
  await database.copyTo(home);
  const { port } = new URL(database.url);
  const source = `host=127.0.0.1 port=${port} user=postgres password=${database.password}`;
  writeFileSync(join(home, 'data', 'standby.signal'), '');
  // As an option of the command, it could not be changed while the standby runs.
  appendFileSync(join(home, 'data', 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`);
  return Database.start(home, database.setup);
}

async function until(holds: () => Promise<boolean>): Promise<boolean> {
  for (let attempt = 0; attempt < 600; attempt++, await sleep(50)) if (await holds()) return true;
  return false;
}

/** Waits until the standby has received everything that is committed so far. */
async function catchUp(primary: Database, standby: Database): Promise<void> {
  const [now] = await primary.query<{ lsn: string }>('select pg_current_wal_lsn()::text as lsn');
  const has = async () => {
    const [row] = await standby.query<{ has: boolean }>(
      'select pg_last_wal_receive_lsn() >= $1::pg_lsn as has',
      [now?.lsn],
    );
    return row?.has === true;
  };
  if (!(await until(has))) throw new Error('the standby does not follow');
}

/** They take long, and need a second server for a while. */
const hasStandbys = ({ options }: World): boolean => !options.isSmall;

export const lossyFaults: readonly FaultKind[] = [
  {
    name: 'restored from a backup',
    weight: 1,
    suits: hasStandbys,
    async play({ world, organisations, random }) {
      const backup = join(world.folder, 'backup');
      for (const { ledger } of organisations) ledger.remember();
      await world.database.copyTo(backup);
      for (const { ledger } of organisations) ledger.remembered();
      await sleep(2_000 + random.below(6_000));
      await whileStopped(world, async () => {
        await afterLoss(world, () => world.database.replaceBy(backup));
        for (const organisation of organisations) organisation.rewind();
      });
      rmSync(backup, { recursive: true, force: true });
    },
  },
  {
    name: 'failed over without loss',
    weight: 1,
    suits: hasStandbys,
    async play({ world, random }) {
      const primary = world.database;
      const standby = await startStandby(world, random);
      await catchUp(primary, standby);
      // From now on, commits wait for the standby.
      await primary.query(`alter system set synchronous_standby_names = '*'`);
      await primary.query('select pg_reload_conf()');
      await sleep(1_000);
      await catchUp(primary, standby);
      await sleep(1_000 + random.below(4_000));
      await primary.end('SIGKILL');
      await standby.query('select pg_promote()');
      await standby.query('alter system reset synchronous_standby_names');
      await standby.query('select pg_reload_conf()');
      world.database = standby;
      leadTo(world, standby);
      primary.remove();
    },
  },
  {
    name: 'failed over with loss',
    weight: 1,
    suits: hasStandbys,
    async play({ world, organisations, random }) {
      const primary = world.database;
      const standby = await startStandby(world, random);
      await catchUp(primary, standby);
      for (const { ledger } of organisations) ledger.remember();
      await catchUp(primary, standby);
      await standby.query(`alter system set primary_conninfo = ''`);
      await standby.query('select pg_reload_conf()');
      const isAlone = async () => (await primary.query('select from pg_stat_replication')).length === 0;
      if (!(await until(isAlone))) throw new Error('the standby still follows');
      for (const { ledger } of organisations) ledger.remembered();
      await sleep(1_000 + random.below(4_000));
      await whileStopped(world, async () => {
        await afterLoss(world, async () => {
          await primary.end('SIGKILL');
          await standby.query('select pg_promote()');
          world.database = standby;
        });
        for (const organisation of organisations) organisation.rewind();
      });
      primary.remove();
    },
  },
];
