interface Sized {
  /** A query with its own order and limit. */
  readonly rows: string;
  /** Columns that give the rows a total order. */
  readonly order: string;
  /** The column with the text. */
  readonly text?: string;
  /** A number or a parameter. */
  readonly bytesMax: number | string;
}

/**
 * Part of a statement: the first of the rows, until their texts exceed the bytes together. `rows_in_all` is the number
 * of rows without this limit.
 */
export function withinBytes({ rows, order, text = 'record', bytesMax }: Sized): string {
  // The sum is null for the first row, and as long as all texts before a row are null.
  const before = `sum(octet_length(${text})) over (order by ${order} rows between unbounded preceding and 1 preceding)`;
  return `(
    select * from (
      select *, coalesce(${before}, 0) as bytes_before, (count(*) over ())::integer as rows_in_all
      from (${rows}) as all_rows) as sized
    where bytes_before < ${bytesMax})`;
}
