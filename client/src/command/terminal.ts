import type { WriteStream } from 'node:tty';

/** Messages go to standard error, data to standard output; colours only to a terminal. */

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
  // Back-pressure: waits for a reader that is slower than the service.
  if (!process.stdout.write(data)) await new Promise((resolve) => process.stdout.once('drain', resolve));
}

export function printJson(value: unknown): Promise<void> {
  return print(JSON.stringify(value, null, process.stdout.isTTY ? 2 : undefined));
}

/** 1234567 as 1,234,567, in every locale. */
export function grouped(value: number): string {
  return value.toLocaleString('en-US');
}

/** Replaces control characters: file names and ids come from elsewhere, and a terminal would interpret them. */
export function harmless(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced.
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, '\ufffd');
}

/** Wraps text at spaces to the width of the terminal; longer words stay whole, so that ids can be copied. */
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

/** If the last column would be narrower than this, it is not wrapped. */
const wrappedWidthMin = 24;

/** Numbers align right, text left, and the last column wraps. In a narrow terminal each cell has its own line. */
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
