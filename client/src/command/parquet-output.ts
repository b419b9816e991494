import { ByteWriter, ParquetWriter, schemaFromColumnData } from 'hyparquet-writer';
import type { ResourceType } from '../generated/resources.ts';
import { type FieldSchema, schemas } from '../generated/schemas.ts';
import { writeBytes } from './terminal.ts';

/** A row group is buffered in memory until it is written. */
const rowsPerGroup = 10_000;

/**
 * Writes records as Parquet to standard output, a row group at a time. Times are texts, as in the API: the timestamp
 * type that every reader supports has milliseconds, and the service keeps microseconds.
 */
export class ParquetOutput {
  readonly #fields: readonly string[];
  readonly #bytes = new ByteWriter();
  readonly #writer: ParquetWriter;
  #columns: unknown[][];
  #rows = 0;

  constructor(type: ResourceType) {
    const { properties, required } = schemas[type];
    this.#fields = Object.keys(properties);
    this.#columns = this.#fields.map(() => []);
    const columnData = Object.entries(properties).map(([name, schema]) => ({
      name,
      data: [],
      type: typeOf(schema),
      nullable: !required.includes(name),
    }));
    const schema = schemaFromColumnData({ columnData });
    this.#writer = new ParquetWriter({ writer: this.#bytes, schema });
  }

  async add(record: object): Promise<void> {
    for (const [at, field] of this.#fields.entries())
      this.#columns[at]?.push((record as Record<string, unknown>)[field] ?? null);
    if (++this.#rows === rowsPerGroup) await this.#writeGroup();
  }

  async close(): Promise<void> {
    if (this.#rows > 0) await this.#writeGroup();
    this.#writer.finish();
    await this.#empty();
  }

  async #writeGroup(): Promise<void> {
    // Page indexes would stay in memory until the end, and a group has only a page or two per column.
    const columnData = this.#fields.map((name, at) => ({
      name,
      data: this.#columns[at] as unknown[],
      offsetIndex: false,
    }));
    this.#writer.write({ columnData, rowGroupSize: rowsPerGroup });
    this.#columns = this.#fields.map(() => []);
    this.#rows = 0;
    await this.#empty();
  }

  async #empty(): Promise<void> {
    await writeBytes(new Uint8Array(this.#bytes.getBuffer()));
    this.#bytes.index = 0;
  }
}

function typeOf({ type }: FieldSchema): 'DOUBLE' | 'BOOLEAN' | 'STRING' {
  if (type.includes('number')) return 'DOUBLE';
  return type.includes('boolean') ? 'BOOLEAN' : 'STRING';
}
