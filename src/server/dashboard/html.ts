import { escapeHtml } from '../../core/text.ts';

const inside = Symbol('markup');

/** HTML that may stand in a page as it is. Only this file makes it, so that nothing read from anywhere passes for it. */
export interface Markup {
  readonly [inside]: string;
}

/** What may stand in a hole of a template; text is escaped, lists stand one after the other. */
export type Child = Markup | string | number | undefined | false | readonly Child[];

/**
 * A piece of HTML. Whatever stands in its holes can become no markup, in an element or in a quoted attribute; holes elsewhere
 * (unquoted attributes, scripts, styles) are not for what others wrote.
 */
export function html(strings: TemplateStringsArray, ...children: readonly Child[]): Markup {
  return { [inside]: strings.reduce((text, next, index) => text + rendered(children[index - 1]) + next) };
}

export function htmlText(markup: Markup): string {
  return markup[inside];
}

function rendered(child: Child): string {
  if (child === undefined || child === false) return '';
  if (typeof child === 'string') return escapeHtml(child);
  if (typeof child === 'number') return String(child);
  return isMarkup(child) ? child[inside] : child.map(rendered).join('');
}

function isMarkup(child: Markup | readonly Child[]): child is Markup {
  return inside in child;
}
