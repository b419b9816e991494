/** A file that cannot be read, or not any further. The message says what is wrong, then what to do. */
export class FileError extends Error {
  override readonly name = 'FileError';
  /** One for each thing that is wrong. Kept apart, because the name of a column may have a newline in it. */
  readonly lines: readonly string[];

  constructor(...lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** An error whose message already says at which record. */
export class PlacedError extends FileError {}

/** Adds the path to an error; several complaints become a list. */
export function withPath(path: string, error: unknown): unknown {
  if (!(error instanceof FileError)) return error;
  const name = path === '-' ? 'standard input' : path;
  const { lines } = error;
  return lines.length === 1
    ? new FileError(`${name}: ${lines[0]}`)
    : new FileError(`${name}:`, ...lines.map((each) => `  ${each}`));
}
