import type { Tone } from '../../../parts/badge.tsx';
import type { ChoreState, ProcessState } from '../../api/types.ts';

/** A process reports every minute, so by then it has missed a report. */
const missingAfterMs = 120_000;

export function isMissing({ seen_at }: Pick<ProcessState, 'seen_at'>, nowMs: number): boolean {
  return nowMs - Date.parse(seen_at) > missingAfterMs;
}

/**
 * Whether maintenance is left undone. A process that started just now does not count: it becomes the leader soon, and
 * reports that a minute later.
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

/** What needs somebody is seen without scrolling; the others keep their order. */
export function troubledFirst<Row>(rows: readonly Row[], isTroubled: (row: Row) => boolean): Row[] {
  return rows.toSorted((one, other) => Number(isTroubled(other)) - Number(isTroubled(one)));
}

/** A failure counts until the chore has run again. */
export function choreStateOf({ ran_at, failed_at }: Pick<ChoreState, 'ran_at' | 'failed_at'>): {
  readonly tone: Tone;
  readonly text: string;
} {
  if (failed_at !== null && (ran_at === null || Date.parse(failed_at) > Date.parse(ran_at)))
    return { tone: 'bad', text: 'Failing' };
  return ran_at === null ? { tone: 'plain', text: 'Has not run' } : { tone: 'good', text: 'OK' };
}
