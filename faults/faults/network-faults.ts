import type { Random } from '../../test/fault/erasure-mixture/random.ts';
import type { FaultProxy } from '../world/fault-proxy.ts';
import type { World } from '../world/world.ts';
import type { FaultKind } from './fault.ts';

/** Faults of the network between each two processes. */

interface Place {
  readonly name: string;
  readonly proxies: (world: World) => readonly FaultProxy[];
}

const places: readonly Place[] = [
  { name: 'clients and nginx', proxies: ({ proxies }) => [proxies.clients] },
  { name: 'nginx and serve', proxies: ({ proxies }) => proxies.serve },
  { name: 'serve and PostgreSQL', proxies: ({ proxies }) => proxies.database },
  { name: 'lake and PostgreSQL', proxies: ({ proxies }) => [proxies.lakeDatabase] },
  { name: 'serve and Redis', proxies: ({ proxies }) => (proxies.redis ? [proxies.redis] : []) },
];

const actions: readonly {
  readonly name: string;
  play(proxy: FaultProxy, random: Random): Promise<void> | void;
}[] = [
  { name: 'connections cut', play: (proxy, random) => proxy.cut(0.7, () => random.next(), false) },
  { name: 'connections reset', play: (proxy, random) => proxy.cut(0.7, () => random.next(), true) },
  { name: 'answers lost', play: (proxy, random) => proxy.loseAnswers(20 + random.below(400)) },
  { name: 'nothing forwarded', play: (proxy, random) => proxy.stall(500 + random.below(5_000)) },
  {
    name: 'everything delayed',
    play: (proxy, random) => proxy.delay(5 + random.below(120), 1_000 + random.below(3_000)),
  },
  { name: 'connections refused', play: (proxy, random) => proxy.refuse(200 + random.below(3_000)) },
];

export const networkFaults: readonly FaultKind[] = places.flatMap((place) =>
  actions.map((action) => ({
    name: `${action.name} between ${place.name}`,
    weight: place.name.includes('Redis') ? 0.4 : 1.5,
    suits: (world: World) => place.proxies(world).length > 0,
    play: async ({ world, random }) => {
      const all = place.proxies(world);
      const some = random.chance(0.3) ? all : [random.pick(all)];
      await Promise.all(some.map((proxy) => action.play(proxy, random)));
    },
  })),
);
