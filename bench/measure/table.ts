export interface Table {
  title: string;
  columns: readonly string[];
  rows: readonly (readonly string[])[];
  /** What a reader must know to judge the figures. */
  notes?: readonly string[];
  /** Figures beyond a line that must hold. */
  failed?: readonly string[];
}

/** The first column to the left, figures to the right. */
export function printable({ title, columns, rows, notes = [] }: Table): string {
  const widths = columns.map((column, index) => Math.max(column.length, ...rows.map(row => row[index]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `  ${cells.map((cell, index) => (index === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[index] ?? 0))).join('  ')}`;
  const rule = `  ${widths.map(width => '-'.repeat(width)).join('  ')}`;
  return [title, line(columns), rule, ...rows.map(line), ...notes.map(note => `  ${note}`)].join('\n');
}

/** A figure with its digits, or a dash where there is none. */
export function figure(value: number, digits = 2): string {
  return Number.isFinite(value) ? value.toFixed(digits) : '–';
}

export function times(value: number): string {
  return Number.isFinite(value) ? `${value.toFixed(2)}x` : '–';
}
