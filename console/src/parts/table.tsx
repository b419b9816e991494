import type { ReactNode } from 'react';
import { formatNumber } from '../format/format.ts';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  readonly numeric?: boolean;
}

/**
 * Shows a number in a table. A zero is muted, and it is hidden in stacked rows. With `bad`, any other number is highlighted.
 */
export function Count({ value, bad = false }: { readonly value: number; readonly bad?: boolean }) {
  if (value === 0) return <span className="muted count-zero">0</span>;
  return <span className={bad ? 'count-bad' : undefined}>{formatNumber(value)}</span>;
}

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /**
   * Whether the table is wide. On a narrow screen, a wide table scrolls in its own box, and in any other table each row
   * becomes a list.
   */
  readonly wide?: boolean;
}

export function Table<Row>({ caption, columns, rows, keyOf, wide = false }: TableProps<Row>) {
  const table = (
    <table className={wide ? 'table-wide' : 'table-stacked'}>
      <caption className="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ title, numeric }) => (
            <th key={title} scope="col" className={numeric ? 'numeric' : undefined}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ title, cell, numeric }) => (
              <td key={title} data-label={title} className={numeric ? 'numeric' : undefined}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
  if (!wide) return table;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard.
    <section className="scroll-box" tabIndex={0} aria-label={caption}>
      {table}
    </section>
  );
}
