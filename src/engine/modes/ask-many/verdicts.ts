import { cutMiddle } from '../../../core/text.ts';

/** What can be read from a verdict that keeps to the form it was asked for. */
export interface VerdictFacts {
  /** The verdict in its own first sentence. */
  short: string;
  /** 0 to 10. */
  confidence?: number;
  /** `support`, `oppose`, or the option it chooses, in lower case. */
  position?: string;
}

const longestShort = 400;
const longestPosition = 80;

const marks = '[\\s#*_>-]*';
const heading = (word: string) => new RegExp(`^${marks}${word}${marks}[::]?${marks}(.*)$`, 'im');
const positionLine = heading('position');
const verdictLine = heading('verdict');

export function factsOf(text: string): VerdictFacts {
  const confidence = confidenceIn(text);
  const position = positionIn(text);
  return {
    short: cutMiddle(shortOf(text), longestShort),
    ...(confidence !== undefined && { confidence }),
    ...(position !== undefined && { position }),
  };
}

function shortOf(text: string): string {
  const found = verdictLine.exec(text);
  const after = found ? `${found[1]}\n${text.slice(found.index + found[0].length)}` : text;
  const lines = after.split('\n').map(bare);
  return lines.find(line => line !== '') ?? text.trim();
}

function bare(line: string): string {
  return line.replace(/^[\s#*_>-]+|[\s*_]+$/g, '');
}

function positionIn(text: string): string | undefined {
  const found = positionLine.exec(text);
  if (!found) return undefined;
  const rest = [found[1] ?? '', ...text.slice(found.index + found[0].length).split('\n')];
  const word = rest.map(bare).find(line => line !== '');
  if (word === undefined || word.length > longestPosition) return undefined;
  const flat = word.toLowerCase().replace(/[.!\s]+$/, '');
  if (/^support/.test(flat)) return 'support';
  return /^oppos/.test(flat) ? 'oppose' : flat;
}

function confidenceIn(text: string): number | undefined {
  const found =
    /confidence[^\n\d]{0,40}\n{0,2}[^\n\d]{0,20}(\d{1,3}(?:\.\d+)?)\s*(\/\s*10\b|out of (?:10|ten)\b|%)/i.exec(text);
  if (!found) return undefined;
  const value = Number(found[1]) / (found[2] === '%' ? 10 : 1);
  return value <= 10 ? value : undefined;
}
