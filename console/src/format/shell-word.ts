/** A value as one word of a shell line. Values come from addresses, and a reader pastes the line into a terminal. */
export function shellWord(value: string): string {
  return /^[\w.:@/-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

/** Options of a command, such as " --type shops"; those without a value are left out. */
export function shellOptions(options: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(options)
    .map(([name, value]) => (value === undefined ? '' : ` --${name} ${shellWord(value)}`))
    .join('');
}
