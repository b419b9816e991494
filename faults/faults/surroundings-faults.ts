import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { Fault } from '../../test/support/s3-server.ts';
import type { Program } from '../world/program.ts';
import type { World } from '../world/world.ts';
import type { FaultKind, Scene } from './fault.ts';

/** Faults of what surrounds the processes: clocks, disks, the store of the lake, and processes that differ. */

const faketime = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';

/** Restarts one program with other settings for this time. */
async function differ(program: Program, settings: Record<string, string>, ms: number): Promise<void> {
  const { env } = program;
  program.env = { ...env, ...settings };
  program.signal('SIGKILL');
  await sleep(ms);
  program.env = env;
  program.signal('SIGKILL');
}

const anyProgram = ({ world, random }: Scene) => random.pick([...world.serve, ...world.serve, world.lake]);

function s3Fault(fault: Exclude<Fault, undefined>): FaultKind {
  return {
    name: `S3: ${fault}`,
    weight: 1.5,
    suits: ({ s3 }) => s3 !== undefined,
    async play({ world, random }) {
      const share = 0.2 + random.next() * 0.8;
      world.s3?.fail(() => (random.next() < share ? fault : undefined));
      await sleep(1_000 + random.below(5_000));
      world.s3?.fail(() => undefined);
    },
  };
}

/** Fills a disk to the last byte, and frees it after this time. */
async function fill(folder: string, ms: number): Promise<void> {
  const ballast = join(folder, 'ballast');
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) {
    for (const bytes of [1024 * 1024, 4096]) {
      try {
        for (;;) appendFileSync(ballast, Buffer.alloc(bytes));
      } catch {
        // A block of this size no longer fits.
      }
    }
    await sleep(100);
  }
  rmSync(ballast, { force: true });
}

export const surroundingsFaults: readonly FaultKind[] = [
  ...(['server error', 'lost answer', 'cut', 'no access', 'timeout'] as const).map(s3Fault),
  {
    name: 'a clock an hour off',
    weight: 3,
    suits: () => existsSync(faketime),
    play: (scene) => {
      const FAKETIME = `${scene.random.pick(['+', '-'])}3600`;
      // Timers and timeouts use the monotonic clock, which no step of a clock changes.
      const settings = { LD_PRELOAD: faketime, FAKETIME, DONT_FAKE_MONOTONIC: '1', FAKETIME_DONT_RESET: '1' };
      return differ(anyProgram(scene), settings, 4_000 + scene.random.below(8_000));
    },
  },
  {
    name: 'a process with another erasure key',
    weight: 1,
    play: (scene) => {
      const ERASURE_KEYS = 'another key of 32 characters or more';
      return differ(anyProgram(scene), { ERASURE_KEYS }, 3_000 + scene.random.below(5_000));
    },
  },
  {
    name: 'a process with another place for the lake',
    weight: 1,
    async play(scene) {
      const other = mkdtempSync(join(scene.world.folder, 'other-lake-'));
      const settings = { LAKE_URL: pathToFileURL(other).href };
      await differ(anyProgram(scene), settings, 3_000 + scene.random.below(5_000));
      const written = scene.organisations.filter(({ id }) => existsSync(join(other, id)));
      if (written.length > 0) scene.violate('I12: a lake was written to another place', settings);
    },
  },
  {
    name: 'a process with lower limits',
    weight: 1,
    play: ({ world, random }) => {
      const settings = { RECORDS_PER_REQUEST_MAX: '500', BODY_BYTES_MAX: '300000' };
      return differ(random.pick(world.serve), settings, 3_000 + random.below(6_000));
    },
  },
  {
    name: 'a process of the older version',
    weight: 3,
    suits: ({ options }) => options.oldMain !== undefined,
    async play({ world, random }) {
      const program = random.pick(world.serve);
      const { main } = program;
      program.main = world.options.oldMain as string;
      program.signal('SIGTERM');
      await sleep(4_000 + random.below(8_000));
      program.main = main;
      program.signal('SIGTERM');
    },
  },
  {
    name: 'the disk of PostgreSQL full',
    weight: 3,
    suits: ({ disk, options }) => disk !== undefined && options.disk === 'small',
    play: fillDatabase,
  },
  {
    name: 'the disk of the log of PostgreSQL full',
    weight: 3,
    suits: ({ disk, options, database }) =>
      disk !== undefined && options.disk === 'small for the log' && database.hasMovedLog,
    play: fillDatabase,
  },
  {
    name: 'the disk of PostgreSQL slow',
    weight: 3,
    suits: ({ slowDisk }) => slowDisk !== undefined,
    async play({ world: { slowDisk }, random }) {
      slowDisk?.delay(10 + random.below(300));
      await sleep(1_000 + random.below(4_000));
      slowDisk?.delay(0);
    },
  },
];

async function fillDatabase({ world, random }: Scene): Promise<void> {
  await fill(world.disk as string, 1_000 + random.below(4_000));
  // If its log could not be written, PostgreSQL has stopped.
  if (!(await isUp(world))) await restartDatabase(world);
}

const isUp = (world: World) =>
  world.database.query('select 1').then(
    () => true,
    () => false,
  );

async function restartDatabase({ database, proxies }: World): Promise<void> {
  await database.end('SIGKILL');
  await database.restart();
  for (const proxy of [...proxies.database, proxies.lakeDatabase]) proxy.leadTo(database.port);
}

/** Mounts a disk that can be filled, if that is possible here. */
export function mountDisk(folder: string, megabytes: number): boolean {
  const options = `size=${megabytes}m,mode=755`;
  return spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder]).status === 0;
}

export function unmountDisk(folder: string): void {
  spawnSync('umount', ['--lazy', folder]);
}
