import type { RequestId } from '@modelcontextprotocol/server';
import { isRecord, parsedJson } from '../../core/json.ts';
import type { ToolListing } from '../../core/tool-host.ts';
import { isId } from './lines.ts';

export interface EarlyOffer {
  version: string;
  /** At most 2 KB: what a model should know of the tools as a whole. */
  instructions: string;
  listings: readonly ToolListing[];
}

/** What a message needs before the server is loaded that serves all others. */
export interface EarlyAnswer {
  /** One line; absent: the message has no answer. */
  text?: string;
  /** Of the answer that the server is going to give as well, when it hears of the message. Absent: it does not hear of it. */
  repeats?: RequestId;
  /** The revision of the protocol that was agreed on. */
  revision?: string;
  /** Whether the server hears of the message when it is loaded. */
  isKept: boolean;
}

export type AnswerEarly = (line: string) => EarlyAnswer | undefined;

export const serverInfo = (version: string) => ({ name: 'polylogue', title: 'Polylogue', version });

export const capabilities = { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} };

/** The revisions that begin with `initialize`. What names another one is for the library of the protocol to answer. */
const revisions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'];

/** Answers what 2025 clients send first, in the bytes of the full server, which loads later; undefined for all that is unusual. */
export function createEarlyAnswers({ version, instructions, listings }: EarlyOffer): AnswerEarly {
  let isGreeted = false;
  return line => {
    const { id, method, params } = plainMessage(line) ?? {};
    if (method === 'notifications/initialized' && id === undefined && isGreeted) return { isKept: true };
    if (id === undefined) return undefined;
    const text = (result: object) => JSON.stringify({ result, jsonrpc: '2.0', id });
    if (method === 'tools/list' && isGreeted && hasOnly(params, []))
      return { text: text({ tools: listings }), isKept: false };
    const revision = method === 'initialize' && !isGreeted && isPlainGreeting(params) && params.protocolVersion;
    if (typeof revision !== 'string' || !revisions.includes(revision)) return undefined;
    isGreeted = true;
    const result = { protocolVersion: revision, capabilities, serverInfo: serverInfo(version), instructions };
    return { text: text(result), repeats: id, revision, isKept: true };
  };
}

/** Longer lines hold more than what is answered here. */
const maxLength = 4_096;

function plainMessage(line: string) {
  const message = line.length > maxLength ? undefined : parsedJson(line);
  if (!hasOnly(message, ['jsonrpc', 'id', 'method', 'params']) || message.jsonrpc !== '2.0') return undefined;
  const { id, method, params = {} } = message;
  if (typeof method !== 'string' || !isRecord(params)) return undefined;
  return id === undefined || isId(id) ? { id, method, params } : undefined;
}

function isPlainGreeting(params: unknown): params is { protocolVersion: unknown } {
  if (!hasOnly(params, ['protocolVersion', 'capabilities', 'clientInfo'])) return false;
  const { capabilities: told, clientInfo } = params;
  if (!hasOnly(clientInfo, ['name', 'title', 'version']) || !isRecord(told)) return false;
  if (clientInfo.name === undefined || clientInfo.version === undefined) return false;
  const isText = Object.values(clientInfo).every(value => typeof value === 'string');
  return isText && Object.values(told).every(isPlainCapability);
}

/** `{}`, `{listChanged: true}` and `{form: {}}` have one form in all revisions; of others the library of the protocol knows more. */
function isPlainCapability(told: unknown): boolean {
  const isPlain = ([name, value]: [string, unknown]) =>
    name === 'listChanged' ? typeof value === 'boolean' : hasOnly(value, []);
  return isRecord(told) && Object.entries(told).every(isPlain);
}

const hasOnly = (value: unknown, names: readonly string[]): value is Record<string, unknown> =>
  isRecord(value) && Object.keys(value).every(name => names.includes(name));
