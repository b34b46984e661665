import { createMarkdownStreamer, render } from 'markdansi';
import { printableText } from '../../core/text.ts';

/** The styles that the renderer sets. Any other control code came from the text, for example as an entity such as `&#27;`. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what is looked for
const styles = /(\u001b\[(?:[12349]|2[2-49]|3[1-69]|90)m)/;

const harmless = (rendered: string): string =>
  rendered
    .split(styles)
    .map((piece, index) => (index % 2 === 1 ? piece : printableText(piece)))
    .join('');

/** Some Markdown takes time by the square of its length. */
const maxRendered = 65_536;

/** Renders Markdown for a terminal as it arrives, tables and code at their end; what is too long or too deep is shown as written. */
export function createMarkdown(width: number, color: boolean) {
  const options = { width, color, hyperlinks: false, tableTruncate: false, codeBox: false };
  const rendered = (text: string) => {
    try {
      return text.length > maxRendered ? text : render(text, options);
    } catch {
      return text;
    }
  };
  const streamer = createMarkdownStreamer({ render: rendered, spacing: 'single' });
  /** The line that is not complete yet: the streamer would search all of it with each piece. */
  let held: string[] = [];
  return {
    add(delta: string) {
      const end = delta.lastIndexOf('\n') + 1;
      held.push(delta.slice(0, end || undefined));
      if (end === 0) return '';
      const lines = held.join('');
      held = [delta.slice(end)];
      return harmless(streamer.push(lines));
    },
    end: () => harmless(streamer.finish(held.join(''))),
  };
}
