import { countOf } from '../../../format/format.ts';
import type { Tone } from '../../../parts/badge.tsx';
import type { ChoreState, ProcessState, ServiceState, WaitingWork } from '../../api/types.ts';

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

/** The alert IntakeWorkLate uses the same limit. */
const lateAfterSeconds = 86_400;

export function isLate({ count, oldest_seconds }: Pick<WaitingWork, 'count' | 'oldest_seconds'>): boolean {
  return count > 0 && oldest_seconds > lateAfterSeconds;
}

export function hasEnded({ ends_at }: { readonly ends_at: string }, nowMs: number): boolean {
  return Date.parse(ends_at) <= nowMs;
}

/** Returns a sentence for everything that is not in order, the most urgent first. */
export function problemsIn(state: ServiceState, nowMs: number): readonly string[] {
  const { processes, maintenance, waiting, partitions, nodes } = state;
  const missing = processes.filter((process) => isMissing(process, nowMs));
  return [
    ...partitions.flatMap(({ table, ends_at }) =>
      hasEnded({ ends_at }, nowMs) ? `New rows of ${table} have no partition.` : [],
    ),
    ...(nodes ?? []).flatMap(({ name, is_active }) => (is_active ? [] : `The node ${name} is inactive.`)),
    ...(processes.length > 0 && isWithoutLeader(processes, nowMs) ? ['No process runs maintenance.'] : []),
    ...maintenance.flatMap((chore) => (isFailing(chore) ? `The chore “${chore.chore}” fails.` : [])),
    ...waiting.flatMap((one) => (isLate(one) ? `Waiting for more than a day: ${one.work}.` : [])),
    ...(missing.length > 0 ? [`${countOf(missing.length, 'process', 'processes')} stopped reporting.`] : []),
  ];
}

function isFailing({ ran_at, failed_at }: Pick<ChoreState, 'ran_at' | 'failed_at'>): boolean {
  return failed_at !== null && (ran_at === null || Date.parse(failed_at) > Date.parse(ran_at));
}

/** Returns a chore's state. A failure counts until the chore's next successful run. */
export function choreStateOf(chore: Pick<ChoreState, 'ran_at' | 'failed_at'>): {
  readonly tone: Tone;
  readonly text: string;
} {
  if (isFailing(chore)) return { tone: 'bad', text: 'Failing' };
  return chore.ran_at === null ? { tone: 'plain', text: 'Has not run' } : { tone: 'good', text: 'OK' };
}
