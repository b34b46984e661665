import { readFile, rm } from 'node:fs/promises';
import { errorCode } from '../core/errors.ts';
import { isRecord, numberIn, parsedJson, recordIn, textIn } from '../core/json.ts';
import type { ExchangeFilter, ExchangeLine, ExchangeReader, ExchangeRecord } from '../core/ports.ts';
import { exchangeLogPaths, partPath } from './exchange-log.ts';

/** More files than a log of the largest size has; the first that is missing ends it. */
const maxFiles = 1_000;

/** Reads what `createExchangeLog` wrote into a folder of logs, by whichever process. Lines that make no sense are left out. */
export function createExchangeReader(folder: string): ExchangeReader {
  const places = exchangeLogPaths(folder);
  const files = (): string[] =>
    Array.from({ length: maxFiles }, (_, index) => (index === 0 ? places.log : `${places.log}.${index}`));

  /** Each file's lines, the youngest file first. */
  async function* batches(): AsyncGenerator<ExchangeLine[]> {
    for (const [index, file] of files().entries()) {
      const text = await textOf(file);
      // The youngest is missing for a moment while it is rotated.
      if (text === undefined && index > 0) return;
      yield (text ?? '').split('\n').flatMap(line => lineOf(line) ?? []);
    }
  }

  return {
    async list({ limit, ...filter }) {
      const found = new Map<string, ExchangeLine[]>();
      for await (const lines of batches()) {
        for (const line of lines.filter(each => fits(each, filter)).reverse()) {
          found.set(line.exchange, [line, ...(found.get(line.exchange) ?? [])]);
        }
        // An exchange may have begun in the file before.
        const wanted = [...found.values()].slice(0, limit);
        if (wanted.length === limit && wanted.every(([first]) => first?.direction === 'out')) break;
      }
      return [...found.values()].slice(0, limit).map(exchangeOf);
    },
    async find(id) {
      const found: ExchangeLine[] = [];
      for await (const lines of batches()) {
        found.unshift(...lines.filter(line => line.exchange === id));
        if (found[0]?.kind === 'request') break;
      }
      const whole = await Promise.all(
        found.map(async line => ({ ...line, payload: recordIn(await filled(line.payload, places.parts, 0)) })),
      );
      return whole.length === 0 ? undefined : exchangeOf(whole);
    },
    async clear() {
      for (const file of files()) {
        if ((await textOf(file)) === undefined && file !== places.log) break;
        await rm(file, { force: true });
      }
      await rm(places.parts, { recursive: true, force: true });
    },
  };
}

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function lineOf(text: string): ExchangeLine | undefined {
  // Nothing where it is half a line: its writer died, or is at it.
  const line = parsedJson(text);
  if (!isRecord(line) || typeof line.exchange !== 'string') return undefined;
  return {
    at: Date.parse(textIn(line.ts)) || 0,
    reqId: textIn(line.req_id),
    exchange: line.exchange,
    direction: line.direction === 'in' ? 'in' : 'out',
    kind: textIn(line.kind),
    tool: textIn(line.tool),
    provider: textIn(line.provider),
    model: textIn(line.model),
    payload: recordIn(line.payload),
  };
}

const filtered = ['reqId', 'tool', 'provider', 'model'] as const;

const fits = (line: ExchangeLine, filter: Omit<ExchangeFilter, 'limit'>): boolean =>
  filtered.every(name => filter[name] === undefined || line[name] === filter[name]);

function exchangeOf(lines: readonly ExchangeLine[]): ExchangeRecord {
  const [first] = lines;
  const last = lines.findLast(({ kind }) => kind === 'response' || kind === 'error');
  const { reqId = '', exchange = '', tool = '', provider = '', model = '', at = 0 } = first ?? {};
  return {
    at,
    reqId,
    exchange,
    tool,
    provider,
    model,
    outcome: last === undefined ? 'open' : last.kind === 'error' ? 'error' : 'ok',
    elapsedMs: last && numberIn(last.payload.elapsedMs),
    lines,
  };
}

const deepest = 40;

/** With what its side files hold in the places where they stand for it. */
async function filled(value: unknown, folder: string, depth: number): Promise<unknown> {
  if (typeof value !== 'object' || value === null || depth > deepest) return value;
  if (Array.isArray(value)) return Promise.all(value.map(each => filled(each, folder, depth + 1)));
  if (!isRecord(value)) return value;
  const path = partPath(folder, value.$part);
  if (path !== undefined) return partOf(path, numberIn(value.bytes));
  const entries = Object.entries(value).map(
    async ([name, each]) => [name, await filled(each, folder, depth + 1)] as const,
  );
  return Object.fromEntries(await Promise.all(entries));
}

async function partOf(path: string, bytes: number): Promise<unknown> {
  try {
    const content = await readFile(path);
    return path.endsWith('.txt') ? content.toString('utf8') : new Uint8Array(content);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
    return { missing: `${bytes} bytes that are no longer kept` };
  }
}
