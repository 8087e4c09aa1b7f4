/** A table: columns with titles, rows with keys. Wide ones scroll by themselves. */

import type { ComponentChildren, JSX } from "preact";

export interface Column<Row> {
  name: string;
  title?: ComponentChildren;
  /** Numbers are aligned to the right. */
  isNumeric?: boolean;
  cell: (row: Row) => ComponentChildren;
}

export function Table<Row>({
  caption,
  columns,
  rows,
  rowKey,
  selected,
}: {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row, index: number) => string | number;
  /** The key of the row that the keyboard is at. */
  selected?: string | number | null;
}): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={column.isNumeric === true ? "numeric" : undefined}>
                {column.title ?? column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => {
            const key = rowKey(row, index);
            return (
              <tr key={key} aria-current={selected === key ? "true" : undefined}>
                {columns.map((column) => (
                  <td key={column.name} class={column.isNumeric === true ? "numeric" : undefined}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
