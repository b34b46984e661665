import { html, type Markup } from './html.ts';

interface ChartOptions {
  title: string;
  note: string;
  /** Under the bars, the first and the last of which are written. */
  labels: readonly string[];
  /** Stand upon each other, the first at the bottom. */
  series: readonly { name: string; colour: 'a' | 'b' | 'c'; values: readonly number[] }[];
  format(value: number): string;
  /** Within a card of its own kind, and lower. */
  isSmall?: boolean;
}

/** Bars over time. The same numbers stand in a table beside it, for who can't see them. */
export function barChart({ title, note, labels, series, format, isSmall }: ChartOptions): Markup {
  const totals = labels.map((_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
  const top = ceiling(Math.max(0, ...totals));
  const step = 1_000 / Math.max(1, labels.length);
  const bars = labels.map((label, index) => {
    let y = 100;
    const valuesText = series.map(({ name, values }) => `${name} ${format(values[index] ?? 0)}`).join(', ');
    const stack = series.map(({ colour, values }) => {
      const height = ((values[index] ?? 0) / top) * 100;
      y -= height;
      return height > 0 && rect(colour, index * step + step * 0.12, y, step * 0.76, height);
    });
    return html`<g><title>${label}: ${valuesText}</title>${stack}</g>`;
  });
  const said = `${title}. ${note} The highest: ${format(Math.max(0, ...totals))}.`;
  return html`<figure class="chart${isSmall ? '' : ' card'}"><figcaption>${title}</figcaption><div class="soft">${note}</div>
<div class="plot"><div class="y"><span>${format(top)}</span>${!isSmall && html`<span>${format(top / 2)}</span>`}<span>0</span></div>
<svg viewBox="0 0 1000 100" preserveAspectRatio="none" role="img" aria-label="${said}">${[0, 50, 100].map(y => html`<line class="grid" x1="0" x2="1000" y1="${y}" y2="${y}"/>`)}${bars}</svg>
<div class="x"><span>${labels[0]}</span><span>${labels.length > 1 && labels.at(-1)}</span></div></div>
${series.length > 1 && html`<div class="legend">${series.map(({ name, colour }) => html`<span><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="${colour}" width="10" height="10"/></svg>${name}</span>`)}</div>`}
</figure>`;
}

/** A part of a whole, as a line. */
export function share(part: number): Markup {
  const width = Math.max(0, Math.min(1, part)) * 1_000;
  return html`<svg class="share" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">${rect('a', 0, 0, width, 10)}</svg>`;
}

/** A stretch of time within a longer one; both in milliseconds. */
export function span(from: number, to: number, whole: number, colour: string): Markup {
  const scale = 1_000 / Math.max(1, whole);
  const x = Math.max(0, Math.min(996, from * scale));
  const width = Math.max(4, Math.min(1_000 - x, (to - from) * scale));
  return html`<svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">${rect(colour, x, 0, width, 10)}</svg>`;
}

const rect = (className: string, x: number, y: number, width: number, height: number): Markup =>
  html`<rect class="${className}" x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"/>`;

const short = (value: number): string => String(Math.round(value * 100) / 100);

/** The next round number: 1, 2 or 5 with zeros. */
function ceiling(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find(step => step * power >= value) ?? 10) * power;
}
