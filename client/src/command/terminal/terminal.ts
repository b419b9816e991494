import type { WriteStream } from 'node:tty';

/**
 * This is the only file that writes to standard output and standard error. Service responses, cells and file names may contain
 * escape sequences that change what a terminal shows, or newlines that could fake messages from this command. Messages
 * therefore go to standard error line by line, and tables go to standard output line by line, with every unsafe character
 * escaped. Data goes to standard output unchanged unless standard output is a terminal.
 */

const shownCharactersMax = 10_000;
const cellCharactersMax = 1_000;

/** Matches control characters, characters that change the text direction, and Unicode line separators. */
const unsafe = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** Escapes unsafe characters as JSON does, so that JSON output keeps its meaning. */
function escaped(text: string): string {
  return text.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function shown(text: string, charactersMax = shownCharactersMax): string {
  return escaped(text.length <= charactersMax ? text : `${text.slice(0, charactersMax)}…`);
}

const styles = { bold: [1, 22], red: [31, 39], yellow: [33, 39] } as const;

/** Adds colour to the text if the stream is a terminal. */
function styled(style: keyof typeof styles, text: string, stream: WriteStream): string {
  if (!stream.isTTY || process.env.NO_COLOR) return text;
  const [on, off] = styles[style];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}

/** Prints messages to standard error. Each argument is one line. */
export function say(...lines: readonly string[]): void {
  process.stderr.write(`${linesOf(lines)}\n`);
}

export function warn(message: string): void {
  process.stderr.write(
    `${linesOf([`Warning: ${message}`]).replace(/^Warning:/, styled('yellow', 'Warning:', process.stderr))}\n`,
  );
}

export function sayError(first = '', ...lines: readonly string[]): void {
  process.stderr.write(
    `${linesOf([`Error: ${first}`, ...lines]).replace(/^Error:/, styled('red', 'Error:', process.stderr))}\n`,
  );
}

/** Prints a question. The user types the response on the same line. */
export function prompt(question: string): void {
  process.stderr.write(shown(question));
}

/** Redraws the terminal's last line, or clears the line if there is no text. */
export function drawLine(text = ''): void {
  process.stderr.write(`\r\u001b[K${shown(text)}`);
}

function linesOf(lines: readonly string[]): string {
  const width = process.stderr.isTTY ? process.stderr.columns || 80 : Infinity;
  return lines.flatMap((line) => wrapped(shown(line), width)).join('\n');
}

/** Prints lines to standard output. Each argument is one line. */
export function print(...lines: readonly string[]): Promise<void> {
  return write(`${lines.map((line) => shown(line)).join('\n')}\n`);
}

export function printTitle(title: string): Promise<void> {
  return write(`\n${styled('bold', shown(title), process.stdout)}\n`);
}

/** Prints text that has many lines or that a program may read. */
export function printData(text: string): Promise<void> {
  const isShown = process.stdout.isTTY;
  return write(`${isShown ? text.split('\n').map(escaped).join('\n') : text}\n`);
}

/** Writes bytes to a file or a pipe, never to a terminal. */
export function writeBytes(bytes: Uint8Array): Promise<void> {
  return write(bytes);
}

export function printJson(value: unknown): Promise<void> {
  return printData(JSON.stringify(value, null, process.stdout.isTTY ? 2 : undefined));
}

/** Prints a value as one line of JSON. */
export function printJsonLine(value: unknown): Promise<void> {
  return printData(JSON.stringify(value));
}

let onOutputError = (error: NodeJS.ErrnoException): void => {
  // It is not an error if the program that reads the output, such as `head`, closes the pipe early.
  if (error.code !== 'EPIPE') sayError(`Standard output cannot be written: ${reasonOf(error)}.`);
  process.exit(error.code === 'EPIPE' ? (process.exitCode ?? 0) : 2);
};

/**
 * Handles output that cannot be written. If messages cannot be written, only the exit code can say so, and the command
 * continues.
 */
export function handleOutputErrors(): void {
  process.stdout.on('error', (error) => onOutputError(error));
  let isLost = false;
  process.stderr.on('error', ({ code }: NodeJS.ErrnoException) => {
    isLost ||= code !== 'EPIPE';
  });
  process.on('exit', () => {
    if (isLost) process.exitCode = 2;
  });
}

/** From now on, failures to write are remembered. The result waits for all output, and returns why it was not written. */
export function watchOutput(): () => Promise<string | undefined> {
  let failed: NodeJS.ErrnoException | undefined;
  onOutputError = (error) => {
    failed ??= error;
  };
  return async () => {
    await new Promise<void>((resolve) => process.stdout.write('', () => resolve()));
    return failed && reasonOf(failed);
  };
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOSPC') return 'the disk is full';
  return code === 'EPIPE' ? 'the program that reads it has ended' : message;
}

async function write(data: string | Uint8Array): Promise<void> {
  if (process.stdout.destroyed) return;
  // Apply back-pressure: wait if the program that reads the output is slower than the service.
  if (!process.stdout.write(data))
    await new Promise<void>((resolve) => {
      const done = () => {
        process.stdout.off('drain', done).off('close', done);
        resolve();
      };
      process.stdout.on('drain', done).on('close', done);
    });
}

/** Formats 1234567 as 1,234,567, in every locale. */
export function grouped(value: number): string {
  return value.toLocaleString('en-US');
}

/** Wraps text at spaces to fit the terminal. Long words are not broken, so that ids can be copied. */
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

/** The last column is not wrapped if it would be narrower than this. */
const wrappedWidthMin = 24;

/**
 * Prints a table with numbers aligned right and text aligned left, and wraps the last column. In a narrow terminal each cell
 * gets its own line.
 */
export function printTable(
  header: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): Promise<void> {
  const cells = rows.map((row) =>
    row.map((cell) => shown(typeof cell === 'number' ? grouped(cell) : String(cell), cellCharactersMax)),
  );
  const isNumber = header.map((_, column) => rows.every((row) => typeof row[column] === 'number'));
  return write(`${table(header, cells, isNumber)}\n`);
}

function table(
  header: readonly string[],
  cells: readonly (readonly string[])[],
  isNumber: readonly boolean[],
): string {
  const widths = header.map((name, column) => longest([name, ...cells.map((row) => row[column] ?? '')]));
  const last = header.length - 1;
  const before = widths.slice(0, last).reduce((sum, each) => sum + each + 2, 0);
  const room = process.stdout.isTTY ? (process.stdout.columns || 80) - before : Infinity;
  const fits = before + (widths[last] ?? 0) <= before + room;
  const longestWord = longest(cells.flatMap((row) => row[last]?.split(' ') ?? []));
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
  const bold = styled('bold', line(header).trimEnd(), process.stdout);
  return [bold, ...cells.map((row) => line(row).trimEnd())].join('\n');
}

function blocks(header: readonly string[], cells: readonly (readonly string[])[], columns: number): string {
  const width = longest(header) + 2;
  const line = (cell: string, column: number) =>
    styled('bold', (header[column] ?? '').padEnd(width), process.stdout) +
    wrapped(cell, columns - width).join(`\n${' '.repeat(width)}`);
  return cells.map((row) => row.map(line).join('\n')).join('\n\n');
}

function longest(texts: readonly string[]): number {
  return texts.reduce((most, { length }) => Math.max(most, length), 0);
}
