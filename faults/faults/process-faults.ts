import { setTimeout as sleep } from 'node:timers/promises';
import type { Program } from '../world/program.ts';
import type { FaultKind, Scene } from './fault.ts';

/** Faults of single processes: killed, frozen, stopped, or deprived of being the leader. */

const anyServe = ({ world, random }: Scene): Program => random.pick(world.serve);

async function freeze(program: Program, ms: number): Promise<void> {
  program.signal('SIGSTOP');
  await sleep(ms);
  program.signal('SIGCONT');
}

export const processFaults: readonly FaultKind[] = [
  {
    name: 'serve killed',
    weight: 10,
    async play(scene) {
      anyServe(scene).signal('SIGKILL');
    },
  },
  {
    name: 'both serve killed',
    weight: 3,
    async play({ world }) {
      for (const program of world.serve) program.signal('SIGKILL');
    },
  },
  {
    name: 'serve frozen',
    weight: 6,
    play: (scene) => freeze(anyServe(scene), 500 + scene.random.below(4_000)),
  },
  {
    name: 'serve stopped in order',
    weight: 4,
    async play(scene) {
      anyServe(scene).signal('SIGTERM');
    },
  },
  {
    name: 'leader replaced',
    weight: 4,
    async play({ world }) {
      await world.database.query('delete from leases');
    },
  },
  {
    name: 'leader frozen until another one leads',
    weight: 3,
    async play(scene) {
      const { world, random } = scene;
      const frozen = (await world.leader()) ?? anyServe(scene);
      frozen.signal('SIGSTOP');
      await world.database.query('delete from leases').catch(() => {});
      const endMs = performance.now() + 8_000;
      const isReplaced = async () => ![undefined, frozen].includes(await world.leader());
      while (!(await isReplaced()) && performance.now() < endMs) await sleep(100);
      await sleep(random.below(2_000));
      frozen.signal('SIGCONT');
    },
  },
  {
    name: 'lake killed',
    weight: 5,
    async play({ world }) {
      world.lake.signal('SIGKILL');
    },
  },
  {
    name: 'lake frozen',
    weight: 3,
    play: ({ world, random }) => freeze(world.lake, 500 + random.below(6_000)),
  },
  {
    name: 'nginx killed',
    weight: 2,
    play: ({ world }) => world.nginx.restart(),
  },
  {
    name: 'nginx frozen',
    weight: 2,
    async play({ world, random }) {
      world.nginx.signal('SIGSTOP');
      await sleep(500 + random.below(4_000));
      world.nginx.signal('SIGCONT');
    },
  },
  {
    name: 'Redis killed',
    weight: 2,
    suits: ({ redis }) => redis !== undefined,
    async play({ world, random }) {
      await world.redis?.kill();
      await sleep(random.below(3_000));
      await world.redis?.restart();
    },
  },
  {
    name: 'Redis frozen',
    weight: 2,
    suits: ({ redis }) => redis !== undefined,
    async play({ world, random }) {
      world.redis?.freeze();
      await sleep(500 + random.below(4_000));
      world.redis?.thaw();
    },
  },
];
