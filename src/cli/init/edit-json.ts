import {
  applyEdits,
  type FormattingOptions,
  modify,
  type ParseError,
  parse,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { configError } from '../../domain/error.ts';
import { isRecord, type JsonObject } from '../../domain/json.ts';

const mark = '\uFEFF';

/** The text of a JSON file with this value at `key.name`; undefined takes it out. Comments and the rest stay as they are. */
export function editJson(text: string, [key, name]: readonly [string, string], value: JsonObject | undefined): string {
  const start = text.startsWith(mark) ? mark : '';
  const content = text.slice(start.length);
  const document = documentOf(content);
  if (value === undefined && !isRecord(document[key])) return text;
  if (document[key] !== undefined && !isRecord(document[key])) {
    throw unusable(`"${key}" is not an object`);
  }
  const base = content.trim() === '' ? '{}\n' : content;
  const edits = modify(base, [key, name], value && JSON.parse(JSON.stringify(value)), {
    formattingOptions: styleOf(base),
  });
  return start + applyEdits(base, edits);
}

/** The value at `key.name`, where there is one. */
export function readJson(text: string, [key, name]: readonly [string, string]): unknown {
  const servers = documentOf(text.startsWith(mark) ? text.slice(1) : text)[key];
  return isRecord(servers) && Object.hasOwn(servers, name) ? servers[name] : undefined;
}

function documentOf(content: string): Record<string, unknown> {
  if (content.trim() === '') return {};
  const errors: ParseError[] = [];
  const options = { allowTrailingComma: true };
  const document: unknown = parse(content, errors, options);
  const [first] = errors;
  if (first) {
    const line = content.slice(0, first.offset).split('\n').length;
    throw unusable(`line ${line} is not JSON (${printParseErrorCode(first.error)})`);
  }
  if (!isRecord(document) || parseTree(content, [], options)?.type !== 'object') throw unusable('it is not an object');
  return document;
}

function unusable(why: string) {
  return configError(`The configuration of the host can't be edited: ${why}.`, {
    next: 'Nothing was changed. Correct the file, then repeat the command; --dry-run shows what it would write.',
  });
}

/** The indentation and line ends that the file has. */
function styleOf(text: string): FormattingOptions {
  const indent = /^([ \t]+)\S/m.exec(text)?.[1] ?? '  ';
  return {
    insertSpaces: !indent.includes('\t'),
    tabSize: indent.includes('\t') ? 1 : indent.length,
    eol: text.includes('\r\n') ? '\r\n' : '\n',
  };
}
