import { hash } from 'node:crypto';
import { inputError, limitError, throwIfAborted } from '../../core/errors.ts';
import { isRecord, parsedJson } from '../../core/json.ts';
import { blobsOfTurns, type ExchangeStatus, type StoredTurn } from '../../core/thread.ts';
import { checkedRecord, type FileRecordLine, formatName, formatVersion } from './records.ts';

/** The bytes of a file, from its beginning; asked for again, they begin again. */
export type OpenBytes = () => AsyncIterable<Uint8Array>;

/** A text of 10 MB may take six times as much in JSON; beyond this nothing of ours goes. */
const maxLineLength = 128 * 1024 * 1024;

const maxFileLength = 2 * 1024 * 1024 * 1024;

/** Lines of one file, and texts that its turns refer to: something is held in memory for each of these. */
const maxRecords = 1_000_000;

const lineEnd = 0x0a;

/** The lines of a file in UTF-8, without their ends. Never holds more than one of them. */
export async function* fileLines(open: OpenBytes, signal?: AbortSignal): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let parts: Uint8Array[] = [];
  let length = 0;
  let total = 0;
  let number = 1;

  const take = (): string => {
    const bytes = parts.length === 1 ? parts[0] : Buffer.concat(parts);
    parts = [];
    length = 0;
    try {
      return decoder.decode(bytes).replace(/\r$/, '');
    } catch {
      throw inputError(`Line ${number} is no text in UTF-8.`, { next: 'Name the file as it was exported.' });
    }
  };
  const add = (part: Uint8Array): void => {
    length += part.length;
    if (length > maxLineLength) throw tooLarge(`Line ${number}`, `${maxLineLength} bytes`);
    if (part.length > 0) parts.push(part);
  };

  for await (const chunk of open()) {
    throwIfAborted(signal);
    total += chunk.length;
    if (total > maxFileLength) throw tooLarge('The file', `${maxFileLength} bytes`);
    let from = 0;
    for (let at = chunk.indexOf(lineEnd); at !== -1; at = chunk.indexOf(lineEnd, from)) {
      add(chunk.subarray(from, at));
      yield take();
      number++;
      from = at + 1;
    }
    add(chunk.subarray(from));
  }
  if (length > 0) yield take();
}

const tooLarge = (what: string, most: string): Error =>
  limitError('size', `${what} has more than ${most}; that is no thread of ours.`, {
    next: 'Name a file that export_thread or "polylogue export" wrote.',
  });

const sumLength = 32;

const sealed = /,"sum":"([0-9a-f]{32})"\}$/;

/** Each line ends in the checksum of all up to it, so that damage is noticed where it stands. This is no signature. */
export function createSumChain() {
  let sum = '';
  const next = (json: string) => hash('sha256', `${sum}\n${json}`).slice(0, sumLength);
  return {
    /** The line with its checksum, without a line end. `json` is an object with at least one member. */
    seal(json: string): string {
      sum = next(json);
      return `${json.slice(0, -1)},"sum":"${sum}"}`;
    },
    /** The line as it was before it was sealed; undefined when it is not what stood there. */
    open(line: string): string | undefined {
      const found = sealed.exec(line.slice(-(sumLength + 10)));
      if (!found) return undefined;
      const json = `${line.slice(0, line.length - found[0].length)}}`;
      if (next(json) !== found[1]) return undefined;
      sum = next(json);
      return json;
    },
    /** Of all lines so far. */
    get sum(): string {
      return sum;
    },
  };
}

const order: readonly FileRecordLine['kind'][] = ['head', 'turn', 'compaction', 'workflow', 'blob', 'end'];

/** Nobody nests deeper; what does is made to break whoever walks through it. */
const deepest = 100;

/**
 * The records of a thread's file, one after the other. All that can be wrong with it is refused with the number of the line:
 * it comes from anywhere. `line`: from 1; `sum`: of the file up to this line, tells whether it is the same at another reading.
 */
export async function* readRecords(open: OpenBytes, signal?: AbortSignal, most = maxRecords) {
  const chain = createSumChain();
  const inPlace = createOrder(most);
  let line = 0;
  for await (const text of fileLines(open, signal)) {
    line++;
    // What an editor leaves at the end.
    if (text === '' && inPlace.ended()) continue;
    if (line > most) throw tooLarge('The file', `${most} lines`);
    if (line === 1) checkHeader(text);
    const json = chain.open(text);
    if (json === undefined) throw broken(line, 'it was changed, moved or cut off since it was written');
    if (line === 1) continue;
    const value = parsedJson(json);
    if (value === undefined) throw broken(line, 'it is no JSON');
    const record = checkedRecord(value);
    const problem = 'problem' in record ? record.problem : inPlace.problem(record);
    if (problem !== undefined || 'problem' in record) throw broken(line, problem ?? 'it is no record');
    yield { record, line, sum: chain.sum };
  }
  if (!inPlace.ended()) throw broken(line + 1, 'the file ends too early');
}

function checkHeader(text: string): void {
  const header = parsedJson(text);
  if (!isRecord(header) || header.format !== formatName || typeof header.version !== 'number')
    throw inputError('This is no thread that was exported as JSONL.', {
      next: 'Name a file that was exported with format jsonl; md and html are for reading alone.',
    });
  if (header.version <= formatVersion) return;
  const version = String(header.version).slice(0, 20);
  throw inputError(`The file is of version ${version} of the format; this program reads up to ${formatVersion}.`, {
    class: 'newer_version',
    next: 'Update this program: a newer one wrote the file.',
  });
}

const broken = (line: number, why: string): Error =>
  inputError(`Line ${line} of the file is broken: ${why}.`, {
    class: 'broken_file',
    next: 'Export the thread again, and import the file as it was written; nothing was imported.',
    data: { line },
  });

/** Holds each record against those before it. */
function createOrder(most: number) {
  let rank = -1;
  let seq = 0;
  let turns = 0;
  let lastTool = '';
  const statuses = new Map<string, ExchangeStatus>();
  const wanted = new Set<string>();
  let blobs = 0;

  function turnProblem(turn: StoredTurn): string | undefined {
    const { exchange, status } = turn;
    if (turn.seq !== seq + 1) return `turn ${turn.seq} does not follow turn ${seq}`;
    if ((statuses.get(exchange) ?? status) !== status) return 'its exchange ended in another way before';
    statuses.set(exchange, status);
    if (turn.files.some(({ range }) => range && range.from > range.to)) return 'a range of lines ends before it begins';
    for (const sha of blobsOfTurns([turn])) wanted.add(sha);
    if (wanted.size > most) return `the turns refer to more than ${most} texts`;
    seq++;
    turns++;
    return undefined;
  }

  function contentProblem(record: FileRecordLine): string | undefined {
    switch (record.kind) {
      case 'head':
        seq = record.head.startSeq;
        return tooDeep(record.head.initialContext);
      case 'turn':
        return turnProblem(record.turn);
      case 'compaction':
        return record.compaction.upToSeq > seq ? `unknown turn ${record.compaction.upToSeq}` : undefined;
      case 'workflow':
        if (record.tool <= lastTool) return `the state of ${record.tool} is not in its order`;
        lastTool = record.tool;
        return tooDeep(record.state);
      case 'blob':
        // Taken off the list: the second of its kind is wanted by nobody.
        if (!wanted.delete(record.sha256)) return 'no turn refers to this text, or it was there before';
        blobs++;
        return hash('sha256', record.text) === record.sha256 ? undefined : 'the text does not have the hash it claims';
      case 'end':
        if (record.turns === turns && record.blobs === blobs) return undefined;
        return 'the numbers of records are not those said';
    }
  }

  return {
    /** What does not fit what came before, if anything. */
    problem(record: FileRecordLine): string | undefined {
      const { kind } = record;
      const next = order.indexOf(kind);
      const repeats = kind !== 'head' && kind !== 'end';
      if (rank === -1 ? next !== 0 : next < rank || (next === rank && !repeats)) return `${kind} does not belong here`;
      rank = next;
      return contentProblem(record);
    },
    ended: () => order[rank] === 'end',
  };
}

function tooDeep(value: unknown): string | undefined {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepest) return `it is nested more than ${deepest} levels deep`;
    level = level.flatMap(inner => (typeof inner === 'object' && inner !== null ? Object.values(inner) : []));
  }
  return undefined;
}
