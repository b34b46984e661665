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

/** Renders Markdown for a terminal as it arrives: lines when they are complete, tables and code blocks at their end. */
export function createMarkdown(width: number, color: boolean) {
  const options = { width, color, hyperlinks: false, tableTruncate: false, codeBox: false };
  const streamer = createMarkdownStreamer({ render: text => render(text, options), spacing: 'single' });
  return { add: (delta: string) => harmless(streamer.push(delta)), end: () => harmless(streamer.finish()) };
}
