/** Thrown if a file cannot be read, or cannot be read completely. The message states the problem, then how to fix it. */
export class FileError extends Error {
  override readonly name = 'FileError';
  /** The lines of the message, one per problem. They are kept separately, because column names may contain newlines. */
  readonly lines: readonly string[];

  constructor(...lines: readonly string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** An error whose message already states the record's position. */
export class PlacedError extends FileError {}

/** Adds the path to an error. Several problems become a list. */
export function withPath(path: string, error: unknown): unknown {
  if (!(error instanceof FileError)) return error;
  const name = path === '-' ? 'standard input' : path;
  const { lines } = error;
  return lines.length === 1
    ? new FileError(`${name}: ${lines[0]}`)
    : new FileError(`${name}:`, ...lines.map((each) => `  ${each}`));
}
