/** Writes the lines of an event-loop turn together. A write per line was the largest cost of a small request. */
export class GroupedOutput {
  #lines = '';

  constructor() {
    // The last lines often explain why the process exits.
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
