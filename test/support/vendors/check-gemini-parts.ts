import { isRecord } from '../../../src/core/json.ts';
import { badField, badRequestField, googleRefusal, unknownField } from './google-refusal.ts';
import type { Refusal } from './refusal.ts';
import { geminiPairs } from './tool-pairs.ts';
import { recordOf, stringOf } from './wire-values.ts';

/** Exactly one of these is what a part holds. */
const payloads = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
];
const beside = ['thought', 'thoughtSignature', 'videoMetadata', 'mediaResolution', 'partMetadata'];
const seen = [
  ...['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif', 'image/bmp'],
  'application/pdf',
  'text/plain',
];

/**
 * The conversation: never empty, roles `user` and `model` alone. Messages of one role may follow each other. `name` is where
 * it stands; a system instruction is checked as the only message of its own.
 */
export function checkContents(contents: unknown, name = 'contents'): Refusal | undefined {
  const messages = Array.isArray(contents) ? contents : [];
  if (messages.length === 0) return badRequestField(name, `${name} is not specified`);
  for (const [index, message] of messages.entries()) {
    const refused = checkMessage(message, name === 'contents' ? `${name}[${index}]` : name);
    if (refused) return refused;
  }
  return geminiPairs(messages);
}

function checkMessage(message: unknown, at: string): Refusal | undefined {
  if (!isRecord(message)) return badField(`Invalid value at '${at}' (a message), ${JSON.stringify(message)}`, at);
  const stray = Object.keys(message).find(key => !['role', 'parts'].includes(key));
  if (stray) return unknownField(stray, at);
  const { parts, role } = message;
  if (role !== undefined && role !== 'user' && role !== 'model')
    return googleRefusal('Please use a valid role: user, model.');
  if (parts !== undefined && !Array.isArray(parts) && !isRecord(parts))
    return badField(`Invalid value at '${at}.parts' (a list), ${JSON.stringify(parts)}`, `${at}.parts`);
  const list = Array.isArray(parts) ? parts : parts === undefined ? [] : [parts];
  if (list.length === 0) return badRequestField(`${at}.parts`, 'contents.parts must not be empty.');
  for (const [index, part] of list.entries()) {
    const refused = checkPart(part, `${at}.parts[${index}]`);
    if (refused) return refused;
  }
  return undefined;
}

function checkPart(part: unknown, at: string): Refusal | undefined {
  if (!isRecord(part)) return badField(`Invalid value at '${at}' (a message), ${JSON.stringify(part)}`, at);
  const stray = Object.keys(part).find(key => !payloads.includes(key) && !beside.includes(key));
  if (stray) return unknownField(stray, at);
  const held = payloads.filter(key => part[key] !== undefined);
  if (held.length > 1) return badField(`Invalid value at '${at}' (oneof), oneof field 'data' is already set.`, at);
  const { text, inlineData } = part;
  if (text !== undefined && typeof text !== 'string')
    return badField(`Invalid value at '${at}.text' (TYPE_STRING), ${JSON.stringify(text)}`, `${at}.text`);
  // An empty text is the same as none on that wire.
  if (held.length === 0 || text === '')
    return badRequestField(`${at}.data`, "required oneof field 'data' must have one initialized field");
  return inlineData === undefined ? undefined : checkInline(recordOf(inlineData), `${at}.inline_data`);
}

function checkInline(inline: Record<string, unknown>, at: string): Refusal | undefined {
  const stray = Object.keys(inline).find(key => !['mimeType', 'data', 'displayName'].includes(key));
  if (stray) return unknownField(stray, at);
  const mimeType = stringOf(inline.mimeType);
  const data = stringOf(inline.data);
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(data))
    return badField(`Invalid value at '${at}.data' (TYPE_BYTES), Base64 decoding failed for ${data}`, `${at}.data`);
  return seen.includes(mimeType) ? undefined : googleRefusal(`Unsupported MIME type: ${mimeType}`);
}
