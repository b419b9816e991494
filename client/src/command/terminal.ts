import type { WriteStream } from 'node:tty';

/** What people see: messages on standard error, data on standard output, colours only on a terminal. */

const styles = { bold: [1, 22], red: [31, 39], yellow: [33, 39], dim: [2, 22] } as const;

export function styled(
  style: keyof typeof styles,
  text: string,
  stream: WriteStream = process.stdout,
): string {
  if (!stream.isTTY || process.env.NO_COLOR) return text;
  const [on, off] = styles[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}

export function say(message: string): void {
  process.stderr.write(`${linesOf(message)}\n`);
}

export function warn(message: string): void {
  process.stderr.write(
    `${linesOf(`Warning: ${message}`).replace(/^Warning:/, styled('yellow', 'Warning:', process.stderr))}\n`,
  );
}

export function sayError(message: string): void {
  process.stderr.write(
    `${linesOf(`Error: ${message}`).replace(/^Error:/, styled('red', 'Error:', process.stderr))}\n`,
  );
}

function linesOf(message: string): string {
  const width = process.stderr.isTTY ? process.stderr.columns || 80 : Infinity;
  return message
    .split('\n')
    .flatMap((line) => wrapped(line, width))
    .join('\n');
}

export function print(text: string): Promise<void> {
  return writeOut(`${text}\n`);
}

export async function writeOut(data: string | Uint8Array): Promise<void> {
  // A reader that is slower than the service must slow it down.
  if (!process.stdout.write(data)) await new Promise((resolve) => process.stdout.once('drain', resolve));
}

export function printJson(value: unknown): Promise<void> {
  return print(JSON.stringify(value, null, process.stdout.isTTY ? 2 : undefined));
}

/** 1234567 as 1,234,567: the same everywhere. */
export function grouped(value: number): string {
  return value.toLocaleString('en-US');
}

/** Names of files and ids come from elsewhere: a terminal must not take them for commands. */
export function harmless(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced.
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd');
}

/** Breaks text between words where it is wider than the terminal; longer words stay whole, for ids are copied. */
function wrapped(text: string, width: number): string[] {
  const indent = /^ */.exec(text)?.[0] ?? '';
  const lines: string[] = [];
  let line = '';
  for (const word of text.trimStart().split(' ')) {
    if (line !== '' && indent.length + line.length + 1 + word.length > width) {
      lines.push(indent + line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, indent + line];
}

/** Narrower than this, the last column of a table is not worth wrapping. */
const wrappedWidthMin = 24;

/** Numbers to the right, text to the left, the last column wrapped. In a narrow terminal, a line for each cell. */
export function table(header: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const cells = rows.map((row) =>
    row.map((cell) => (typeof cell === 'number' ? grouped(cell) : harmless(cell))),
  );
  const isNumber = header.map((_, column) => rows.every((row) => typeof row[column] === 'number'));
  const widths = header.map((name, column) =>
    Math.max(name.length, ...cells.map((row) => row[column]?.length ?? 0)),
  );
  const last = header.length - 1;
  const before = widths.slice(0, last).reduce((sum, each) => sum + each + 2, 0);
  const room = process.stdout.isTTY ? (process.stdout.columns || 80) - before : Infinity;
  const fits = before + (widths[last] ?? 0) <= before + room;
  const longestWord = Math.max(
    0,
    ...cells.flatMap((row) => row[last]?.split(' ') ?? []).map((word) => word.length),
  );
  if (!fits && (isNumber[last] || room < Math.max(wrappedWidthMin, longestWord)))
    return blocks(header, cells, before + room);
  const line = (row: readonly string[]) => {
    const start = row
      .slice(0, last)
      .map((cell, column) =>
        isNumber[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .map((cell) => `${cell}  `)
      .join('');
    const end = row[last] ?? '';
    return (
      start +
      (isNumber[last] ? end.padStart(widths[last] ?? 0) : wrapped(end, room).join(`\n${' '.repeat(before)}`))
    );
  };
  return [styled('bold', line(header)), ...cells.map(line)].map((each) => each.trimEnd()).join('\n');
}

function blocks(header: readonly string[], cells: readonly (readonly string[])[], columns: number): string {
  const width = Math.max(...header.map((name) => name.length)) + 2;
  const line = (cell: string, column: number) =>
    styled('bold', (header[column] ?? '').padEnd(width)) +
    wrapped(cell, columns - width).join(`\n${' '.repeat(width)}`);
  return cells.map((row) => row.map(line).join('\n')).join('\n\n');
}
