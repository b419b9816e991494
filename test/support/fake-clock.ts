import { globSync, mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [library] = globSync('/usr/lib/*/faketime/libfaketime.so.1');

export const fakeClockIsInstalled = library !== undefined;
if (!fakeClockIsInstalled)
  console.log("No process gets a wrong clock: Debian's package faketime is not installed");

/** A clock for a process, which differs from the machine's by a number of days. */
export class FakeClock {
  readonly #file = join(mkdtempSync(join(tmpdir(), 'intake-clock-')), 'days');

  constructor(days: number) {
    this.set(days);
  }

  /** Changes the clock, which the process notices within a second. */
  set(days: number): void {
    writeFileSync(`${this.#file}.new`, `${days < 0 ? '' : '+'}${days}d\n`);
    renameSync(`${this.#file}.new`, this.#file);
  }

  /** The environment of the process. As with a real clock that is set, its monotonic clock does not jump. */
  get env(): Record<string, string> {
    return {
      LD_PRELOAD: library ?? '',
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    };
  }
}
