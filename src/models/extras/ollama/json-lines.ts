import { isRecord } from '../../../core/json.ts';
import { badUpstream } from '../../resilience/errors.ts';

/** Far above any real line; without a line end the memory would fill. */
const longestLine = 4_000_000;

/** Bytes → the JSON objects of their lines. A line that is no JSON object ends the stream as bad upstream. */
export function jsonLines(): TransformStream<Uint8Array, Record<string, unknown>> {
  // Characters that are cut between two chunks are put together again.
  const decoder = new TextDecoder();
  let rest = '';
  return new TransformStream({
    transform(chunk, controller) {
      const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split('\n');
      rest = lines.pop() ?? '';
      if (rest.length > longestLine) throw badUpstream('The answer has a line without an end.');
      for (const line of lines) take(line, controller);
    },
    flush(controller) {
      take(rest + decoder.decode(), controller);
    },
  });
}

function take(line: string, controller: TransformStreamDefaultController<Record<string, unknown>>): void {
  if (line.trim() === '') return;
  const value = parsed(line);
  if (!isRecord(value)) throw badUpstream('The answer has a line that is no JSON object.');
  controller.enqueue(value);
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // Told to the caller as the one thing that matters: the line is no JSON object.
    return undefined;
  }
}
