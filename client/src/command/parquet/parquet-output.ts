import type { SchemaElement } from 'hyparquet';
import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import { resources, type UploadType } from '../../generated/resources.ts';
import { type FieldSchema, type RecordSchema, schemas } from '../../generated/schemas.ts';
import { UsageError } from '../options/command.ts';
import { writeBytes } from '../terminal/terminal.ts';
import { daysOf, decimalForm, decimalOf, microsecondsOf } from './parquet-values.ts';

/** The number of rows in a row group. A row group is buffered in memory until it is complete. */
const rowsPerGroup = 10_000;

interface Column {
  readonly name: string;
  readonly element: SchemaElement;
  /** Converts a value, or returns undefined if the column cannot hold it. */
  readonly toValue: (value: never) => unknown;
}

/**
 * Writes records as Parquet to standard output, one row group at a time. Ids and text become strings, amounts of money
 * become decimals, and times are in UTC with microseconds, as in the service. With `hasDoubles`, all numbers become doubles.
 * The choice between decimals and doubles cannot depend on the values, because a column's type must be known before its
 * first value is written.
 */
export class ParquetOutput {
  readonly #type: UploadType;
  readonly #columns: readonly Column[];
  readonly #bytes = new ByteWriter();
  readonly #writer: ParquetWriter;
  #data: unknown[][];
  #rows = 0;

  constructor(type: UploadType, hasDoubles: boolean) {
    this.#type = type;
    const { properties, required } = storedSchemaOf(type);
    this.#columns = Object.entries(properties).map(([name, schema]) =>
      columnOf(name, schema, required.includes(name), hasDoubles),
    );
    this.#data = this.#columns.map(() => []);
    const root = { name: 'root', num_children: this.#columns.length };
    const schema = [root, ...this.#columns.map(({ element }) => element)];
    this.#writer = new ParquetWriter({ writer: this.#bytes, schema });
  }

  async add(record: object): Promise<void> {
    for (const [at, { name, toValue }] of this.#columns.entries()) {
      const given = (record as Record<string, unknown>)[name] ?? null;
      const value = given === null ? null : toValue(given as never);
      if (value === undefined) throw this.#tooLong(record, name, given);
      this.#data[at]?.push(value);
    }
    if (++this.#rows === rowsPerGroup) await this.#writeGroup();
  }

  async close(): Promise<void> {
    if (this.#rows > 0) await this.#writeGroup();
    this.#writer.finish();
    await this.#empty();
  }

  #tooLong(record: object, name: string, value: unknown): UsageError {
    const id = (record as Record<string, unknown>)[resources[this.#type].idField];
    const { precision, scale } = decimalForm;
    return new UsageError(
      `The export broke off: ${name} of ${this.#type} ${id} is ${value}, which DECIMAL(${precision},${scale}) cannot hold. Add --doubles to write numbers as DOUBLE, or export as NDJSON or CSV.`,
    );
  }

  async #writeGroup(): Promise<void> {
    // Do not write page indexes. They would stay in memory until the end, and they are of little use because a row group has
    // only one or two pages per column.
    const columnData = this.#columns.map(({ name }, at) => ({
      name,
      data: this.#data[at] as unknown[],
      offsetIndex: false,
    }));
    this.#writer.write({ columnData, rowGroupSize: rowsPerGroup });
    this.#data = this.#columns.map(() => []);
    this.#rows = 0;
    await this.#empty();
  }

  async #empty(): Promise<void> {
    await writeBytes(new Uint8Array(this.#bytes.getBuffer()));
    this.#bytes.index = 0;
  }
}

/**
 * Returns the schema of stored records. Stored interactions also have an id, an instant and a time of receipt, which are not
 * part of the upload schema.
 */
function storedSchemaOf(type: UploadType): Pick<RecordSchema, 'properties' | 'required'> {
  const { properties, required } = schemas[type];
  if (type !== 'interactions') return { properties, required };
  const { idField } = resources.interactions;
  const time = { type: 'string', format: 'date-time' };
  return {
    properties: {
      [idField]: { type: 'string', format: 'uuid' },
      ...properties,
      event_time: time,
      created: time,
    },
    required: [...required, idField, 'event_time', 'created'],
  };
}

const same = (value: unknown) => value;

function columnOf(name: string, schema: FieldSchema, isRequired: boolean, hasDoubles: boolean): Column {
  const base = { name, repetition_type: isRequired ? 'REQUIRED' : 'OPTIONAL' } as const;
  const { type, format } = schema;
  if (format === 'date-time') {
    const logical_type = { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' } as const;
    const element: SchemaElement = {
      ...base,
      type: 'INT64',
      converted_type: 'TIMESTAMP_MICROS',
      logical_type,
    };
    return { name, element, toValue: microsecondsOf };
  }
  if (format === 'date')
    return { name, element: { ...base, type: 'INT32', converted_type: 'DATE' }, toValue: daysOf };
  if (type.includes('boolean')) return { name, element: { ...base, type: 'BOOLEAN' }, toValue: same };
  if (!type.includes('number'))
    return { name, element: { ...base, type: 'BYTE_ARRAY', converted_type: 'UTF8' }, toValue: same };
  // Coordinates are measurements with any number of digits, whereas amounts of money have only a few.
  if (hasDoubles || schema.maximum !== undefined)
    return { name, element: { ...base, type: 'DOUBLE' }, toValue: same };
  const physical = { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16 } as const;
  const element: SchemaElement = { ...base, ...physical, converted_type: 'DECIMAL', ...decimalForm };
  return { name, element, toValue: decimalOf };
}
