import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';
import { isRecord, parsedJson } from '../../../core/json.ts';
import { safeCut } from '../../../core/text.ts';
import { addUsage, type Usage } from '../../../core/usage.ts';
import type { CliDefinition, CliEvent, Reader } from '../clis/cli.ts';

/** Longer ones are left out: no event of a CLI that matters is that long, and each is held in memory whole. */
export const maxLineLength = 8 * 1024 * 1024;

/** Bytes, cut anywhere, → whole lines. */
export function splitLines(onLine: (line: string) => void): { push(chunk: Buffer): void; end(): void } {
  const decoder = new StringDecoder('utf8');
  let pieces: string[] = [];
  let length = 0;
  const add = (text: string) => {
    length += text.length;
    if (length <= maxLineLength) pieces.push(text);
    else pieces = [];
  };
  const close = () => {
    const line = pieces.join('');
    const whole = length <= maxLineLength;
    pieces = [];
    length = 0;
    if (whole && line.trim() !== '') onLine(line);
  };
  const take = (text: string) => {
    const [first = '', ...rest] = text.split('\n');
    add(first);
    for (const line of rest) {
      close();
      add(line);
    }
  };
  return {
    push: chunk => take(decoder.write(chunk)),
    end() {
      take(decoder.end());
      close();
    },
  };
}

/** What a CLI said, as far as it is kept. */
export interface CliOutput {
  /** Everything that was handed on, and the answer as a whole. */
  text: string;
  /** By which it can be resumed; absent: it keeps none. */
  session?: string;
  model?: string;
  /** Absent: it did not tell. */
  usage?: Usage;
  /** `usage` is the sum over all answers of the session. */
  usageOfSession?: boolean;
  /** US dollars, where it tells. */
  costUsd?: number;
  errors: string[];
  warnings: string[];
  tools: number;
  /** It said itself that it failed. */
  failed: boolean;
  /** The beginning of what was no event: banners, prompts for a login. */
  noise: string;
}

export interface OutputListener {
  onText(delta: string): void;
  onEvent(event: CliEvent): void;
  /** More was said than is kept: it may stop. */
  onFull(): void;
}

/** Characters of an answer that are kept; what is shown of them is less. */
const maxText = 400_000;

/** Bytes that a CLI may print in all, events of its tools included. */
export const maxBytes = 64 * 1024 * 1024;

/** Messages, and characters of one of them, of what was no event, and of what may be one document over several lines. */
const most = { messages: 20, message: 2_000, noise: 4_000, unread: 4 * 1024 * 1024 };

/** Reads what a CLI prints while it prints it. */
export function readOutput(cli: Pick<CliDefinition, 'read'>, listener: OutputListener) {
  const out: CliOutput = { text: '', errors: [], warnings: [], tools: 0, failed: false, noise: '' };
  const collector = collect(out, listener);
  const feed = cli.read ? jsonFeed(cli.read, collector) : plainFeed(collector.text);
  let bytes = 0;
  return {
    push(chunk: Buffer): void {
      if (bytes > maxBytes) return;
      bytes += chunk.length;
      feed.push(chunk);
      if (bytes > maxBytes) listener.onFull();
    },
    /** Nothing more comes. */
    end(): CliOutput {
      feed.end();
      return collector.done();
    },
  };
}

function collect(out: CliOutput, listener: OutputListener) {
  let final = '';
  const text = (delta: string) => {
    const room = maxText - out.text.length;
    if (room <= 0) return;
    const kept = safeCut(clean(delta), room);
    out.text += kept;
    if (kept !== '') listener.onText(kept);
    if (out.text.length >= maxText - 1) listener.onFull();
  };
  const note = (list: string[], message: string) => {
    if (message.trim() !== '' && list.length < most.messages) list.push(safeCut(clean(message).trim(), most.message));
  };
  const takeEvent = (event: CliEvent) => {
    if (event.type === 'text') text(event.block && out.text.trim() !== '' ? `\n\n${event.text}` : event.text);
    else if (event.type === 'final') final = event.text;
    else if (event.type === 'error') note(out.errors, event.message);
    else if (event.type === 'warning') note(out.warnings, event.message);
    else if (event.type === 'tool_use') out.tools++;
    else takeFact(out, event);
    listener.onEvent(event);
  };
  return {
    text,
    event: takeEvent,
    noise(line: string): void {
      if (out.noise.length < most.noise) out.noise += `${safeCut(clean(line), most.noise)}\n`;
    },
    done(): CliOutput {
      if (out.text.trim() === '' && final !== '') text(final);
      return out;
    },
  };
}

function takeFact(out: CliOutput, event: CliEvent): void {
  // It becomes an argument of the next call: nothing that could be a flag, a path or more than one word.
  if (event.type === 'session' && /^[A-Za-z0-9][\w.:-]{0,199}$/.test(event.id)) out.session = event.id;
  else if (event.type === 'model' && event.name !== '') out.model = safeCut(clean(event.name), 200);
  else if (event.type === 'cost') out.costUsd = (out.costUsd ?? 0) + event.usd;
  else if (event.type === 'end') out.failed = !event.ok;
  else if (event.type === 'usage') {
    out.usage = out.usage ? addUsage(out.usage, event.usage) : event.usage;
    if (event.ofSession) out.usageOfSession = true;
  }
}

/** Without escape sequences and control characters, which terminals act upon. */
function clean(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return stripVTControlCharacters(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '');
}

/** Escape sequences may be cut by a chunk's end: text waits for the end of its line. */
function plainFeed(onText: (delta: string) => void): ReturnType<typeof splitLines> {
  const decoder = new StringDecoder('utf8');
  let waiting = '';
  return {
    push(chunk) {
      waiting += decoder.write(chunk);
      const last = waiting.lastIndexOf('\n');
      // A line without an end must not grow for ever.
      const until = last === -1 && waiting.length > 65_536 ? waiting.length : last + 1;
      if (until > 0) onText(waiting.slice(0, until));
      waiting = waiting.slice(until);
    },
    end() {
      onText(waiting + decoder.end());
      waiting = '';
    },
  };
}

/** One object a line. Where no line was one, the output as a whole may be: some print one document over several lines. */
function jsonFeed(read: Reader, to: ReturnType<typeof collect>) {
  let understood = false;
  let unread = '';
  const take = (value: unknown) => {
    for (const event of Array.isArray(value) ? value : [value]) {
      if (!isRecord(event)) continue;
      understood = true;
      try {
        for (const each of read(event)) to.event(each);
      } catch (error) {
        // Objects within objects by the thousand are no event of any CLI: nothing more can be done with them.
        if (!(error instanceof RangeError)) throw error;
      }
    }
  };
  const lines = splitLines(line => {
    const value = jsonIn(line);
    if (isRecord(value) || Array.isArray(value)) return take(value);
    to.noise(line);
    if (!understood && unread.length + line.length < most.unread) unread += `${line}\n`;
  });
  return {
    push: lines.push,
    end() {
      lines.end();
      if (understood) return;
      const from = unread.search(/^[{[]/m);
      if (from !== -1) take(jsonIn(unread.slice(from)));
    },
  };
}

function jsonIn(text: string): unknown {
  const start = text.trimStart()[0];
  // Half a line, or a banner in brackets, is noise.
  return start === '{' || start === '[' ? parsedJson(text) : undefined;
}
