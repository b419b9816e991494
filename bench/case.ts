import type { Cluster } from './cluster.ts';
import type { Service } from './service.ts';
import type { Tenant } from './tables.ts';

/** Everything that a benchmark case needs. */
export interface Bench {
  readonly cluster: Cluster;
  readonly service: Service;
  readonly tenant: Tenant;
  readonly rounds: number;
  /** The number of rows in an upload. Other cases derive their sizes from it. */
  readonly rows: number;
  /** The number of connections used for uploads. */
  readonly connections: number;
  /** The duration of a timed measurement. */
  readonly seconds: number;
  /** Whether this is the quick run that every change must pass. */
  readonly quick: boolean;
  /** The git ref to compare with, for the `compare` and `record` cases. */
  readonly base: string | undefined;
  progress(what: string): void;
  /** Registers a cleanup function that is called at the end of the run, even if the run is interrupted. */
  defer(end: () => Promise<void>): void;
}

export type Goal = { readonly atLeast: number } | { readonly atMost: number };

/** One line in the report. It compares the same work done by the yardstick and by the service, round by round. */
export interface Comparison {
  readonly name: string;
  readonly yardstick: string;
  readonly unit: string;
  readonly bare: readonly number[];
  readonly intake: readonly number[];
  readonly ratios: readonly number[];
  readonly goal?: Goal;
  /** An alternative to a goal. A full run fails if the ratio is above this number or below its inverse. */
  readonly within?: number;
  /**
   * A ratio far below the goal. If the measured ratio is even lower, something is broken, no matter how noisy the machine
   * is.
   */
  readonly floor?: number;
  readonly notes?: readonly string[];
}

export interface Case {
  readonly name: string;
  readonly what: string;
  /** Whether the case is part of the quick run. */
  readonly quick?: true;
  /** Whether the case runs only if it is specified by name or with --all. */
  readonly long?: true;
  run(bench: Bench): Promise<Comparison[]>;
}

export type Way = () => Promise<number>;

/**
 * Measures every variant once per round, in turn, so that if the machine is slow for a minute, all of them are
 * affected. The first round is not counted, because it only warms up the compiler and the caches.
 */
export async function interleave<K extends string>(
  bench: Bench,
  ways: Readonly<Record<K, Way>>,
): Promise<Record<K, number[]>> {
  const entries = Object.entries<Way>(ways) as [K, Way][];
  const measured = Object.fromEntries(entries.map(([name]) => [name, []])) as unknown as Record<K, number[]>;
  for (let round = 0; round <= bench.rounds; round++) {
    for (const [name, measure] of entries) {
      bench.progress(round === 0 ? `warm-up: ${name}` : `round ${round} of ${bench.rounds}: ${name}`);
      const value = await measure();
      if (round > 0) measured[name].push(value);
    }
  }
  return measured;
}

/** Returns the variant with the best median, and its result. */
export function bestOf(measured: Readonly<Record<string, number[]>>): { name: string; rates: number[] } {
  const ordered = Object.entries(measured).sort(([, a], [, b]) => median(b) - median(a));
  const [name, rates] = ordered[0] as [string, number[]];
  return { name, rates };
}

export function ratiosOf(intake: readonly number[], bare: readonly number[]): number[] {
  return intake.map((value, round) => value / (bare[round] as number));
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)] as number;
  const high = sorted[Math.ceil(at)] as number;
  return low + (high - low) * (at - Math.floor(at));
}

export function isMet({ ratios, goal, within }: Comparison): boolean | undefined {
  const ratio = median(ratios);
  if (within !== undefined) return ratio <= within && ratio >= 1 / within;
  if (!goal) return undefined;
  return 'atLeast' in goal ? ratio >= goal.atLeast : ratio <= goal.atMost;
}
