import type { Tone } from '../../../parts/badge.tsx';
import type { ChoreState, ProcessState } from '../../api/types.ts';

/** A process reports every minute, so if it has been silent for this long, it has missed a report. */
const missingAfterMs = 120_000;

export function isMissing({ seen_at }: Pick<ProcessState, 'seen_at'>, nowMs: number): boolean {
  return nowMs - Date.parse(seen_at) > missingAfterMs;
}

/**
 * Returns whether no process runs the maintenance. Returns false if a process has just started, because that process will
 * soon become the leader and report it within a minute.
 */
export function isWithoutLeader(
  processes: readonly Pick<ProcessState, 'seen_at' | 'started_at' | 'is_leader'>[],
  nowMs: number,
): boolean {
  const running = processes.filter((process) => !isMissing(process, nowMs));
  return running.every(
    ({ is_leader, started_at }) => !is_leader && nowMs - Date.parse(started_at) > missingAfterMs,
  );
}

/** Moves rows with problems to the top, where they are visible without scrolling. The other rows keep their order. */
export function troubledFirst<Row>(rows: readonly Row[], isTroubled: (row: Row) => boolean): Row[] {
  return rows.toSorted((one, other) => Number(isTroubled(other)) - Number(isTroubled(one)));
}

/** Returns a chore's state. A failure counts until the chore's next successful run. */
export function choreStateOf({ ran_at, failed_at }: Pick<ChoreState, 'ran_at' | 'failed_at'>): {
  readonly tone: Tone;
  readonly text: string;
} {
  if (failed_at !== null && (ran_at === null || Date.parse(failed_at) > Date.parse(ran_at)))
    return { tone: 'bad', text: 'Failing' };
  return ran_at === null ? { tone: 'plain', text: 'Has not run' } : { tone: 'good', text: 'OK' };
}
