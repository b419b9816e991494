/** A file that cannot be read, or not any further. The message says what is wrong, then what to do. */
export class FileError extends Error {
  override readonly name = 'FileError';
}

/** An error whose message already says at which record. */
export class PlacedError extends FileError {}

/** Adds the path to an error; several complaints become a list. */
export function withPath(path: string, error: unknown): unknown {
  if (!(error instanceof FileError)) return error;
  const name = path === '-' ? 'standard input' : path;
  const complaints = error.message.split('\n');
  return new FileError(
    complaints.length === 1
      ? `${name}: ${error.message}`
      : `${name}:\n${complaints.map((each) => `  ${each}`).join('\n')}`,
  );
}
