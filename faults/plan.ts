import { Random } from '../test/fault/erasure-mixture/random.ts';
import { clientKinds } from './clients/kinds.ts';
import type { FaultKind } from './faults/fault.ts';

/** PostgreSQL's disk: without limits, small for all of its data or for the log alone, or one that can be slow. */
export type Disk = 'any' | 'small' | 'small for the log' | 'slow';

/** What a run does, drawn from its seed. Each part has a seed of its own, so that leaving parts out changes no other. */
export interface Plan {
  readonly seed: number;
  readonly seconds: number;
  readonly isSmall: boolean;
  readonly organisations: number;
  readonly lake: 'folder' | 's3';
  readonly hasRedis: boolean;
  readonly disk: Disk;
  readonly clients: readonly PlannedClient[];
  readonly faults: readonly PlannedFault[];
}

export interface PlannedClient {
  readonly kind: string;
  readonly organisation: number;
  readonly seed: number;
}

export interface PlannedFault {
  readonly kind: string;
  /** The pause after the fault before. */
  readonly pauseMs: number;
  readonly seed: number;
}

export interface PlanOptions {
  readonly seed: number;
  readonly seconds: number;
  /** The kinds of faults that may be drawn. */
  readonly faults: readonly FaultKind[];
  /** For CI: a lake in a folder and two organisations. */
  readonly isSmall?: boolean;
}

/** More faults than fit into a run, which ends after its time. */
const faultsPerSecond = 0.5;

export function drawPlan({ seed, seconds, faults, isSmall = false }: PlanOptions): Plan {
  const random = new Random(seed);
  const organisations = isSmall ? 2 : 3;
  const lake = !isSmall && random.chance(0.3) ? 's3' : 'folder';
  const hasRedis = !isSmall && random.chance(0.5);
  const disk = isSmall ? 'any' : random.pick<Disk>(['any', 'small', 'small for the log', 'slow']);
  const clients = Array.from({ length: organisations }, (_, organisation) => organisation).flatMap(
    (organisation) =>
      clientKinds.flatMap(({ name, perOrganisation }) => {
        const count = perOrganisation < 1 ? Number(random.chance(perOrganisation)) : perOrganisation;
        return Array.from({ length: count }, () => ({
          kind: name,
          organisation,
          seed: random.below(2 ** 31),
        }));
      }),
  );
  const total = faults.reduce((sum, { weight }) => sum + weight, 0);
  const draw = () => {
    const drawn = random.next() * total;
    let sum = 0;
    for (const { name, weight } of faults) {
      sum += weight;
      if (drawn < sum) return name;
    }
    return faults.at(-1)?.name as string;
  };
  const planned = Array.from({ length: Math.ceil(seconds * faultsPerSecond) }, () => ({
    kind: draw(),
    pauseMs: 200 + random.below(1_800),
    seed: random.below(2 ** 31),
  }));
  return { seed, seconds, isSmall, organisations, lake, hasRedis, disk, clients, faults: planned };
}

/**
 * Returns shorter plans, each with about half of the parts: the first or the second half of the faults, half of the
 * clients, half of the time.
 */
export function halvesOf(plan: Plan): Plan[] {
  const { faults, clients, seconds } = plan;
  const middle = Math.ceil(faults.length / 2);
  const halves: Plan[] = [];
  if (faults.length > 1) {
    halves.push({ ...plan, faults: faults.slice(0, middle), seconds: Math.ceil(seconds * 0.6) });
    halves.push({ ...plan, faults: faults.slice(middle), seconds: Math.ceil(seconds * 0.6) });
  }
  if (clients.length > 1) {
    halves.push({ ...plan, clients: clients.filter((_, at) => at % 2 === 0) });
    halves.push({ ...plan, clients: clients.filter((_, at) => at % 2 === 1) });
  }
  return halves;
}
