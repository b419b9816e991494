import { basename } from 'node:path';
import { drawLine, grouped, say } from './terminal.ts';

export interface ProgressState {
  readonly path: string;
  /** The number of bytes read, and the total number of bytes, which is undefined if it is unknown. */
  readonly bytesRead: number;
  readonly bytes: number | undefined;
  /** The number of records answered during this run. */
  readonly records: number;
  readonly failed: number;
}

const redrawMs = 200;
const logLineMs = 10_000;

/** Shows the progress on one line that is redrawn on a terminal, or prints a line every ten seconds to a log. */
export class Progress {
  readonly #startedMs = performance.now();
  #shownMs = -Infinity;
  #isDrawn = false;

  show(state: ProgressState): void {
    const nowMs = performance.now();
    const dueMs = process.stderr.isTTY ? redrawMs : logLineMs;
    // Do not print to a log at the start, when there is no progress to report yet.
    if (nowMs - Math.max(this.#shownMs, process.stderr.isTTY ? -Infinity : this.#startedMs) < dueMs) return;
    this.#shownMs = nowMs;
    const elapsedS = (nowMs - this.#startedMs) / 1000;
    if (process.stderr.isTTY) {
      drawLine(drawnLine(state, elapsedS, process.stderr.columns || 80));
      this.#isDrawn = true;
    } else say(logLine(state, elapsedS));
  }

  /** Clears the progress line. Called before a message is printed and at the end. */
  clear(): void {
    if (this.#isDrawn) drawLine();
    this.#isDrawn = false;
    this.#shownMs = -Infinity;
  }
}

function factsOf({ bytesRead, bytes, records, failed }: ProgressState, elapsedS: number) {
  const share = bytes ? Math.min(1, bytesRead / bytes) : undefined;
  const rate = elapsedS > 0 ? Math.round(records / elapsedS) : 0;
  const leftS = share ? (elapsedS / share) * (1 - share) : undefined;
  return {
    share,
    percent: share === undefined ? `${grouped(records)} records` : `${Math.floor(share * 100)}%`,
    rate: `${grouped(rate)}/s`,
    failed: failed === 0 ? '' : `${grouped(failed)} failed`,
    left: leftS === undefined || records === 0 ? '' : `${duration(leftS)} left`,
  };
}

function logLine(state: ProgressState, elapsedS: number): string {
  const { share, percent, rate, failed, left } = factsOf(state, elapsedS);
  const records = share === undefined ? '' : `${grouped(state.records)} records`;
  return `${state.path}: ${[percent, records, rate, failed, left].filter(Boolean).join(', ')}`;
}

/** Returns the progress line. If the line is too long, the bar is dropped first, then the name. */
function drawnLine(state: ProgressState, elapsedS: number, columns: number): string {
  const { share, percent, rate, failed, left } = factsOf(state, elapsedS);
  const facts = [percent, rate, failed, left].filter(Boolean).join('  ');
  const name = basename(state.path);
  const room = columns - 1 - facts.length;
  if (room < name.length + 2) return facts.slice(0, columns - 1);
  const barWidth = Math.min(30, room - name.length - 6);
  if (share === undefined || barWidth < 5) return `${name}  ${facts}`;
  const done = Math.round(share * barWidth);
  return `${name}  [${'='.repeat(done)}${' '.repeat(barWidth - done)}]  ${facts}`;
}

export function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${whole % 60}s`;
  return `${Math.floor(whole / 3600)}h ${Math.floor((whole % 3600) / 60)}m`;
}
