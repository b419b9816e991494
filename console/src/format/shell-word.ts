/**
 * Quotes a value as one shell word. Quoting is necessary because values come from URLs, and users paste the line into a
 * terminal.
 */
export function shellWord(value: string): string {
  return /^[\w.:@/-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

/** Returns command options such as " --type shops", without options that have no value. */
export function shellOptions(options: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(options)
    .map(([name, value]) =>
      value === undefined ? '' : ` --${name.replaceAll('_', '-')} ${shellWord(value)}`,
    )
    .join('');
}
