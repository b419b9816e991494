import { appendFile, rm, writeFile } from 'node:fs/promises';
import { belongs } from '../../registry/personal.ts';
import { personalFields, type UploadType } from '../../registry/upload-types.ts';
import { type LakeColumn, lakeSchema } from './lake-schema.ts';
import { linesIn } from './lines-in.ts';
import { literal, type ParquetWriter, quote, rowsIn, type Written } from './parquet-writer.ts';

/** Selects some of the given ids. Called once per batch of ids. */
type Choose = (ids: readonly string[]) => Promise<Iterable<string>>;

/** Finds and removes people's rows in a local copy of a file. `close` deletes its temporary files. */
export class RowsOfPeople {
  readonly #parquet: ParquetWriter;
  readonly #type: UploadType;
  readonly #file: string;
  readonly #written: string[] = [];

  constructor(parquet: ParquetWriter, type: UploadType, file: string) {
    this.#parquet = parquet;
    this.#type = type;
    this.#file = file;
  }

  /** Returns a file with the chosen ids for `rewrite`, or undefined if nobody was chosen. */
  async people(choose: Choose): Promise<string | undefined> {
    const rows = this.#rows();
    const values = personalFields(this.#type).identifying.map(
      (name) => `select ${quote(name)} as id from ${rows}`,
    );
    return this.#choose(
      `select distinct id from (${values.join(' union all ')}) where id is not null`,
      choose,
    );
  }

  /**
   * Writes the file again without these people's rows. Rows that `staysOf` selects are kept without any personal data.
   * Other people's rows are kept without the ids that mention these people. Returns undefined if no rows are left.
   */
  async rewrite(
    people: string,
    staysOf: Choose,
    partition: string | undefined,
  ): Promise<Written | undefined> {
    const schema = lakeSchema(this.#type);
    const { name: rowId } = schema.columns[0] as LakeColumn;
    const fields = personalFields(this.#type);
    const isOneOfThem = (name: string) =>
      `coalesce(${quote(name)} in (select id from ${idsIn(people)}), false)`;
    const isOfThem = belongs(fields, isOneOfThem, quote);
    const rows = `(select *, ${isOfThem} as is_of_them from ${this.#rows()})`;
    const asked = `select ${quote(rowId)} as id from ${rows} where is_of_them`;
    const stay = await this.#choose(asked, staysOf);
    const columns = schema.columns.map(({ name }) => {
      if (!fields.all.includes(name)) return quote(name);
      const isKept = fields.alone.includes(name)
        ? `not is_of_them and not ${isOneOfThem(name)}`
        : 'not is_of_them';
      return `case when ${isKept} then ${quote(name)} end as ${quote(name)}`;
    });
    const stays = stay === undefined ? '' : ` or ${quote(rowId)} in (select id from ${idsIn(stay)})`;
    const query = `select ${columns.join(', ')} from ${rows} where not is_of_them${stays}`;
    return this.#parquet.copy(query, schema, partition);
  }

  async close(): Promise<void> {
    for (const file of this.#written) await rm(file, { force: true });
  }

  #rows(): string {
    return rowsIn([this.#file], lakeSchema(this.#type));
  }

  /** Ids are passed through files, because there can be as many ids as rows. */
  async #choose(query: string, choose: Choose): Promise<string | undefined> {
    const asked = this.#newFile();
    await this.#parquet.run([`copy (${query}) to ${literal(asked)} (format json)`]);
    const answered = this.#newFile();
    await writeFile(answered, '', { mode: 0o600 });
    let isEmpty = true;
    const decide = async (ids: readonly string[]) => {
      const lines = [...(await choose(ids))].map((id) => `${JSON.stringify({ id })}\n`);
      if (lines.length > 0) isEmpty = false;
      await appendFile(answered, lines.join(''));
    };
    for await (const lines of linesIn(asked)) await decide(lines.map((line) => JSON.parse(line).id));
    return isEmpty ? undefined : answered;
  }

  #newFile(): string {
    const file = this.#parquet.newFile('ndjson');
    this.#written.push(file);
    return file;
  }
}

function idsIn(file: string): string {
  return `read_ndjson(${literal(file)}, columns = {id: 'varchar'})`;
}
