/**
 * Standard output for the log: lines of one event-loop turn go out in one write. One write per line was the largest
 * cost of a small request.
 */
export class GroupedOutput {
  #lines = '';

  constructor() {
    // The last lines often say why the process ends.
    process.once('exit', () => this.#flush());
  }

  write(line: string): void {
    if (this.#lines === '') setImmediate(() => this.#flush());
    this.#lines += line;
  }

  #flush(): void {
    if (this.#lines !== '') process.stdout.write(this.#lines);
    this.#lines = '';
  }
}
