import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LakeColumn, LakeSchema, LakeType } from './lake-schema.ts';
import { tableLimits } from './limits.ts';
import type { Outcome, Row } from './parquet-child.ts';

export interface ParquetSettings {
  /**
   * A new folder that only its owner can read, because the files contain personal data, or a function that creates one on
   * first use. Creating it here would accept a folder that another user has created in a shared `/tmp`. `close` removes it.
   */
  readonly folder: string | (() => string);
  readonly memoryMb: number;
  readonly threads: number;
  readonly answerMs?: number;
}

/** A Parquet file that is not part of a table yet. */
export interface Written {
  readonly localFile: string;
  readonly rows: number;
  readonly bytes: number;
  readonly stats: Stats;
}

/** Minimum and maximum ids are omitted, because they would reveal erased people. */
export interface Stats {
  readonly numRecords: number;
  readonly minValues: Readonly<Record<string, string>>;
  readonly maxValues: Readonly<Record<string, string>>;
}

const sqlTypes: Readonly<Record<LakeType, string>> = {
  string: 'varchar',
  timestamp: 'timestamptz',
  date: 'date',
  'decimal(38,9)': 'decimal(38,9)',
  double: 'double',
  boolean: 'boolean',
  long: 'bigint',
};

/** Writes and merges Parquet files with DuckDB in a child process, one file at a time. */
export class ParquetWriter {
  readonly #settings: ParquetSettings;
  #folder: string | undefined;
  #child: ChildProcess | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #idle: NodeJS.Timeout | undefined;

  constructor(settings: ParquetSettings) {
    this.#settings = settings;
  }

  get folder(): string {
    const { folder } = this.#settings;
    this.#folder ??= typeof folder === 'string' ? folder : folder();
    return this.#folder;
  }

  newFile(extension: string): string {
    return join(this.folder, `${randomUUID()}.${extension}`);
  }

  /**
   * `lines` is the path of a local file with one JSON object per line. If the table has days, all rows must be from `day`. Skips rows whose
   * ids are in one of the local Parquet files in `except`. Returns undefined if no rows are left.
   */
  write(
    lines: string,
    schema: LakeSchema,
    { day, except = [] }: { day?: string; except?: readonly string[] } = {},
  ): Promise<Written | undefined> {
    const types = schema.columns.map(({ name, type }) => `${literal(name)}: ${literal(sentType(type))}`);
    const rows = `read_ndjson(${literal(lines)}, columns = {${types.join(', ')}})`;
    const columns = schema.columns.map(selectedOf).join(', ');
    const query = `select ${columns} from ${rows}${withoutRowsOf(schema, except)}`;
    return this.copy(query, schema, day).then((written) => this.#withNewest(written, schema));
  }

  /** Keeps the order of the files. In a version table, keeps only the newest version of each id. */
  merge(
    files: readonly string[],
    schema: LakeSchema,
    { day }: { day?: string } = {},
  ): Promise<Written | undefined> {
    return this.copy(`select * from ${newestIn(files, schema)}`, schema, day);
  }

  /**
   * Splits the merged rows by one hexadecimal digit of their id's hash. `digit` is the position of that digit, counted
   * from 0. The hash is MD5, because all versions of an id must end up in the same file with every release of DuckDB.
   */
  async split(
    files: readonly string[],
    schema: LakeSchema,
    digit: number,
  ): Promise<readonly { digit: string; written: Written }[]> {
    const folder = this.newFile('split');
    const parts: { digit: string; written: Written }[] = [];
    const rows = `select *, substr(md5(${quote(idOf(schema))}), ${digit + 1}, 1) as digit from ${newestIn(files, schema)}`;
    try {
      await this.run([
        `copy (${rows}) to ${literal(folder)} (format parquet, compression zstd, partition_by (digit))`,
      ]);
      for (const path of await readdir(folder, { recursive: true })) {
        if (!path.endsWith('.parquet')) continue;
        const localFile = this.newFile('parquet');
        await rename(join(folder, path), localFile);
        const written = await this.#written(localFile, schema);
        if (written) parts.push({ digit: path.charAt('digit='.length), written });
      }
      return parts;
    } catch (error) {
      for (const { written } of parts) await rm(written.localFile, { force: true });
      throw error;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** Returns the rows of the last statement. */
  run(statements: readonly string[]): Promise<readonly Row[]> {
    const answered = this.#last.then(() => this.#ask(statements));
    this.#last = answered.catch(() => {});
    return answered;
  }

  async close(): Promise<void> {
    await this.#last;
    this.#end();
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
  }

  /** If the table has days, all rows must be from the day `partition`. Returns undefined if there are no rows. */
  async copy(query: string, schema: LakeSchema, partition: string | undefined): Promise<Written | undefined> {
    const localFile = this.newFile('parquet');
    const copy = `copy (${query}) to ${literal(localFile)} (format parquet, compression zstd)`;
    return this.#written(localFile, schema, partition, [copy]);
  }

  /** A step can contain several versions of the same id. */
  async #withNewest(written: Written | undefined, schema: LakeSchema): Promise<Written | undefined> {
    if (!written || schema.newestBy === undefined) return written;
    const { localFile, rows } = written;
    const [found] = await this.run([
      `select count(distinct ${quote(idOf(schema))})::varchar as ids from read_parquet(${literal(localFile)})`,
    ]);
    if (Number(found?.ids) === rows) return written;
    try {
      return await this.merge([localFile], schema);
    } finally {
      await rm(localFile);
    }
  }

  /** Deletes the file if it has no rows. */
  async #written(
    localFile: string,
    schema: LakeSchema,
    partition?: string,
    statements: readonly string[] = [],
  ): Promise<Written | undefined> {
    const times = schema.columns.filter(({ type }) => type === 'timestamp').map(({ name }) => name);
    const bounds = times.flatMap((name) => [
      `epoch_us(min(${quote(name)}))::varchar as ${quote(`min ${name}`)}`,
      `epoch_us(max(${quote(name)}))::varchar as ${quote(`max ${name}`)}`,
    ]);
    try {
      const [found = {}] = await this.run([
        ...statements,
        `select ${['count(*)::varchar as rows', ...bounds].join(', ')} from read_parquet(${literal(localFile)})`,
      ]);
      const stats = statsOf(found, times);
      if (schema.day && partition !== undefined) refuseOtherDays(stats, schema, partition);
      const { size } = await stat(localFile);
      if (stats.numRecords > 0) return { localFile, rows: stats.numRecords, bytes: size, stats };
    } catch (error) {
      await rm(localFile, { force: true });
      throw error;
    }
    await rm(localFile);
    return undefined;
  }

  async #ask(statements: readonly string[]): Promise<readonly Row[]> {
    clearTimeout(this.#idle);
    this.#child ??= this.#start();
    const child = this.#child;
    const waiting = new AbortController();
    const { signal } = waiting;
    const { answerMs = tableLimits.childAnswerMs } = this.#settings;
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
    }, answerMs);
    try {
      const answer = once(child, 'message', { signal });
      const ended = once(child, 'exit', { signal }).then(([code, killedBy]) => {
        const how = isLate ? `killed, because it did not answer within ${answerMs} ms` : (killedBy ?? code);
        throw new Error(`the process that writes Parquet ended: ${how}`);
      });
      child.send(statements);
      const [outcome] = (await Promise.race([answer, ended])) as [Outcome];
      if ('failed' in outcome) throw new Error(`DuckDB: ${outcome.failed}`);
      return outcome.rows;
    } finally {
      waiting.abort();
      clearTimeout(timer);
      // Ending the process is the only reliable way to return the memory that DuckDB has freed to the system.
      this.#idle = setTimeout(() => this.#end(), tableLimits.childIdleMs).unref();
    }
  }

  #start(): ChildProcess {
    const { folder } = this;
    const { memoryMb, threads } = this.#settings;
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const program = fileURLToPath(new URL(`./parquet-child.${extension}`, import.meta.url));
    const child = fork(program, [folder, String(memoryMb), String(threads)], {
      // The child needs none of our environment variables, least of all the credentials.
      env: {},
      execArgv: [`--max-old-space-size=${tableLimits.childHeapMb}`],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const forget = () => {
      if (this.#child !== child) return;
      this.#child = undefined;
      // A child that was killed leaves its spill files behind.
      rmSync(join(folder, 'spilled'), { recursive: true, force: true });
    };
    child.on('exit', forget).on('error', forget);
    return child;
  }

  #end(): void {
    clearTimeout(this.#idle);
    const child = this.#child;
    this.#child = undefined;
    if (child?.connected) child.disconnect();
  }
}

/** Decimals are read as text, so that one with too many digits becomes null instead of blocking the table. */
function sentType(type: LakeType): string {
  return type === 'decimal(38,9)' ? 'varchar' : sqlTypes[type];
}

function selectedOf({ name, type }: LakeColumn): string {
  if (type !== 'decimal(38,9)') return quote(name);
  return `try_cast(${quote(name)} as ${sqlTypes[type]}) as ${quote(name)}`;
}

function withoutRowsOf(schema: LakeSchema, files: readonly string[]): string {
  if (files.length === 0) return '';
  const id = quote(idOf(schema));
  return ` anti join (select ${id} from read_parquet(${list(files)})) using (${id})`;
}

/**
 * Tables other than version tables keep all rows. The row numbers are found first, because a window function over whole
 * rows would need too much memory.
 */
function newestIn(files: readonly string[], schema: LakeSchema): string {
  const { columns, newestBy } = schema;
  if (newestBy === undefined) return rowsIn(files, schema);
  const numbered = files.map(
    (file, at) =>
      `select *, ${at * 1e9} + file_row_number as row from read_parquet(${literal(file)}, file_row_number = true)`,
  );
  const all = `(${noRows(schema)} union all by name ${numbered.join(' union all by name ')})`;
  const newest = `select max_by(row, ${quote(newestBy)}) as row from ${all} group by ${quote(idOf(schema))}`;
  return `(select ${columns.map(({ name }) => quote(name)).join(', ')} from ${all} semi join (${newest}) using (row))`;
}

function idOf({ columns }: LakeSchema): string {
  return (columns[0] as LakeColumn).name;
}

function statsOf(found: Row, times: readonly string[]): Stats {
  const minValues: Record<string, string> = {};
  const maxValues: Record<string, string> = {};
  for (const name of times) {
    const least = found[`min ${name}`];
    const greatest = found[`max ${name}`];
    if (typeof least !== 'string' || typeof greatest !== 'string') continue;
    // Readers expect milliseconds, so the range is rounded outwards, unless that would extend it past the year 9999.
    const from = isoOf(BigInt(least), 0n);
    const to = isoOf(BigInt(greatest), 999n);
    if (to.startsWith('+')) continue;
    minValues[name] = from;
    maxValues[name] = to;
  }
  return { numRecords: Number(found.rows), minValues, maxValues };
}

/** Rounds the sum, which is in microseconds, down to a millisecond. */
function isoOf(micros: bigint, added: bigint): string {
  const sum = micros + added;
  const beyond = ((sum % 1_000n) + 1_000n) % 1_000n;
  return new Date(Number((sum - beyond) / 1_000n)).toISOString();
}

/** Readers that filter by day would not find a row of another day. */
function refuseOtherDays(
  { numRecords, minValues, maxValues }: Stats,
  { day }: LakeSchema,
  asked: string,
): void {
  const { of = '' } = day ?? {};
  if (numRecords === 0) return;
  for (const bound of [minValues[of], maxValues[of]])
    if (bound?.slice(0, 10) !== asked) throw new Error('a file contains rows from another day');
}

export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Older files lack the columns that were added later. */
export function rowsIn(files: readonly string[], schema: LakeSchema): string {
  return `(${noRows(schema)} union all by name
    select * from read_parquet(${list(files)}, union_by_name = true))`;
}

function noRows({ columns }: LakeSchema): string {
  const nulls = columns.map(({ name, type }) => `null::${sqlTypes[type]} as ${quote(name)}`);
  return `select ${nulls.join(', ')} where false`;
}

function list(files: readonly string[]): string {
  return `[${files.map(literal).join(', ')}]`;
}

/**
 * npm leaves out DuckDB's package for this platform if optional packages are omitted. The package is not loaded,
 * because only the child process may do that.
 */
export function isDuckDbInstalled(): boolean {
  const name = `@duckdb/node-bindings-${process.platform}-${process.arch}`;
  try {
    // The package may be nested, so resolve it from the package that depends on it.
    const api = createRequire(import.meta.url).resolve('@duckdb/node-api');
    const bindings = createRequire(createRequire(api).resolve('@duckdb/node-bindings'));
    return [name, `${name}-musl`].some((one) => resolves(bindings, one));
  } catch {
    return false;
  }
}

function resolves(from: NodeJS.Require, name: string): boolean {
  try {
    from.resolve(`${name}/duckdb.node`);
    return true;
  } catch {
    return false;
  }
}
