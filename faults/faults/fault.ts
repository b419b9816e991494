import type { Random } from '../../test/fault/erasure-mixture/random.ts';
import type { Organisation } from '../world/organisation.ts';
import type { World } from '../world/world.ts';

/** What a fault can reach. */
export interface Scene {
  readonly world: World;
  readonly organisations: readonly Organisation[];
  readonly random: Random;
  violate(kind: string, detail: unknown): void;
}

/** A kind of fault. To add one, list it in `kinds.ts`. */
export interface FaultKind {
  readonly name: string;
  /** Faults of this kind per hundred faults, roughly. */
  readonly weight: number;
  /** Whether this world can have the fault. */
  readonly suits?: (world: World) => boolean;
  /** Causes the fault and ends it. Afterwards everything must recover without help. */
  play(scene: Scene): Promise<void>;
}
