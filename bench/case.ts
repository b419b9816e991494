import type { Cluster } from './cluster.ts';
import type { Service } from './service.ts';
import type { Tenant } from './tables.ts';

/** What a case works with. */
export interface Bench {
  readonly cluster: Cluster;
  readonly service: Service;
  readonly tenant: Tenant;
  readonly rounds: number;
  /** Rows of an upload; the other cases' sizes follow from it. */
  readonly rows: number;
  /** Of those who upload. */
  readonly connections: number;
  /** How long a measurement takes that is bounded by time. */
  readonly seconds: number;
  /** Whether it is the run that a change must pass, where every second counts. */
  readonly quick: boolean;
  /** Where to write the costs that were measured, for `intake-server plan --costs`. */
  readonly save: string | undefined;
  /** The git ref that the cases compare and record measure against. */
  readonly base: string | undefined;
  progress(what: string): void;
  /** Ends something at the end of the run, also of one that is broken off. */
  defer(end: () => Promise<void>): void;
}

export type Goal = { readonly atLeast: number } | { readonly atMost: number };

/** One line of the report: the same work by the yardstick and through the service, round by round. */
export interface Comparison {
  readonly name: string;
  readonly yardstick: string;
  readonly unit: string;
  readonly bare: readonly number[];
  readonly intake: readonly number[];
  readonly ratios: readonly number[];
  readonly goal?: Goal;
  /** Instead of a goal: at most so many times the yardstick and at least that part of it, or a full run fails. */
  readonly within?: number;
  /** Far below the goal: under it something is broken, whatever the noise. */
  readonly floor?: number;
  readonly notes?: readonly string[];
}

export interface Case {
  readonly name: string;
  readonly what: string;
  /** Part of the run that a change must pass. */
  readonly quick?: true;
  /** Runs only when it is named, or everything is asked for. */
  readonly long?: true;
  run(bench: Bench): Promise<Comparison[]>;
}

export type Way = () => Promise<number>;

/**
 * Measures every way once a round, in turn, so that a slow minute of the machine falls on all of them. A round
 * before the first is not counted: it is for the compiler and everyone's caches.
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

/** The way with the best median, and what it reached. */
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
