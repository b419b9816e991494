/**
 * Standard output for the log: lines of the same moment go out in one write. A write for each line was the most
 * expensive thing about a small request.
 */
export class GroupedOutput {
  #lines = '';

  constructor() {
    // What was said last is often why the process ends.
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
