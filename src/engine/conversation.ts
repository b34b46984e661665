import type { CallServices } from '../calls/ask/services.ts';
import { orAbort } from '../core/concurrency.ts';
import { inputError, limitError, missingError } from '../core/errors.ts';
import type { Skip } from '../core/file.ts';
import type { RequestId } from '../core/ids.ts';
import { type Message, textOf } from '../core/message.ts';
import type { Candidate, Candidates } from '../core/model.ts';
import { linesBetween, numberLines, printablePath } from '../core/text.ts';
import { estimateTokens, tokenFactor } from '../core/tokens.ts';
import type { AskModel } from '../models/ask-model.ts';
import { asMessage } from '../threads/transcript.ts';
import { isSkip } from '../workspace/paths.ts';
import { readTextFile } from '../workspace/read-file.ts';
import { searchWaitMs } from '../workspace/search-index/search-index.ts';
import { type ObservingServices, observedCall, routeSent } from './engine.ts';
import { type AgentInput, type AgentResult, newMark } from './modes/agent/agent.ts';
import type { AgentTool } from './modes/agent/local-tools/agent-tool.ts';
import type { LocalToolServices } from './modes/agent/local-tools/local-tool.ts';
import { createRefresher, createTriage } from './modes/agent/plan-run.ts';
import { runAgent } from './modes/agent/run-agent.ts';

interface Shown {
  /** One block of text a file, masked. */
  texts: string[];
  /** Absolute paths of files that are shown. */
  paths: string[];
  skipped: Skip[];
  warnings: string[];
}

const maxHits = 12;

/** The files of a request as its model reads them: whole, or the lines that were named, each line with its number. */
async function readShown(services: CallServices, request: SendMessageRequest): Promise<Shown> {
  const shown: Shown = { texts: [], paths: [], skipped: [], warnings: [] };
  if (request.files.length > services.maxNamedFiles)
    throw limitError('files', `${request.files.length} files were named; the limit is ${services.maxNamedFiles}.`, {
      next: 'Name fewer, or raise MAX_NAMED_FILES.',
    });
  for (const input of request.files) await show(services, request, input, shown);
  const [missing] = shown.skipped;
  if (request.needsFiles && missing)
    throw inputError(`Cannot read ${missing.path}: ${missing.reason}`, { next: 'Name a text file of the project.' });
  if (typeof request.search === 'function') {
    const { message, signal, conversation: scope } = request;
    for (const found of await orAbort(Promise.resolve(request.search(message, { signal })), signal)) {
      const { source, text } = typeof found === 'string' ? { source: 'search', text: found } : found;
      const masked = await services.mask(`--- BEGIN FOUND: ${source} ---\n${text}\n--- END FOUND ---`, scope);
      shown.texts.push(masked.text);
    }
  } else if (request.search) {
    const index = await services.indexes.of(request.root);
    const { signal } = request;
    await index.refresh({ signal, waitMs: searchWaitMs });
    for (const { path, from, to } of await index.search(request.message, maxHits, signal)) {
      if (!shown.paths.includes(path)) await show(services, request, `${path}:${from}-${to}`, shown);
    }
    const warning = index.warning();
    if (warning !== undefined) shown.warnings.push(`search: ${warning}`);
  }
  return shown;
}

async function show(services: CallServices, request: SendMessageRequest, input: string, shown: Shown): Promise<void> {
  const read = await readIn(services, request, input);
  if (isSkip(read)) return void shown.skipped.push(read);
  const { file, range } = read;
  // Masked as a whole: part of a file may not show that what stands in it is a secret.
  const { text } = await services.mask(file.text, request.conversation);
  const lines = range ? linesBetween(text, range.from, range.to) : text;
  const name = printablePath(file.path);
  const which = range ? ` (lines ${range.from}-${range.to})` : '';
  const body = numberLines(lines, range?.from);
  shown.texts.push(`--- BEGIN FILE: ${name}${which} ---\n${body}\n--- END FILE: ${name} ---`);
  if (!shown.paths.includes(file.path)) shown.paths.push(file.path);
}

const readIn = (services: CallServices, { root, signal }: SendMessageRequest, input: string) => {
  const { sandbox, home, maxFileBytes: maxBytes } = services;
  return readTextFile(sandbox, input, { root, home, maxBytes, signal });
};

interface ConversationServices extends CallServices, ObservingServices {
  /** Looks at calls that failed (AGENT_TRIAGE_MODEL). Absent: nobody does. */
  triageModel: string | undefined;
}

/** What a program knows that bears on a message, such as passages of its own search. */
export type Retrieve = (message: string, around: { signal: AbortSignal }) => Retrieved | Promise<Retrieved>;

/** Passages, each a text or one with its source. */
export type Retrieved = readonly (string | { source: string; text: string })[];

export type LocalToolsOf = (
  run: Pick<LocalToolServices, 'reqId' | 'scope' | 'tool' | 'owner' | 'root'>,
) => Promise<AgentTool[]>;

/** A text, or a file of the project whose text it is; one that can't be read adds nothing. */
export type SystemLayer = { text: string } | { file: string };

/** One request of a conversation that its caller keeps. `temperature`; absent: 0, where the model takes one. */
export interface SendMessageRequest
  extends Pick<
    AgentInput,
    'message' | 'tools' | 'temperature' | 'maxOutputTokens' | 'limits' | 'onToolCall' | 'onText' | 'onEvent' | 'signal'
  > {
  owner: string;
  /** Absolute; where relative paths start. Within the roots. */
  root: string;
  /** Equal for all requests of one conversation. */
  conversation: string;
  /** As callers name models; absent: the default model. */
  model?: string;
  /** Layers of the system prompt, the most general first. */
  system: readonly SystemLayer[];
  context?: string;
  files: readonly string[];
  /** Without one of the files no model is asked. */
  needsFiles?: boolean;
  /** What the project's index knows about the message goes along, or what this finds. */
  search: boolean | Retrieve;
  history: readonly Message[];
  /** Tools of the agent, by their names; `reads`: all that only read, `all`: all there are. */
  localTools: readonly string[];
  topP?: number;
  maxCostUsd?: number;
}

export interface SendMessageResult extends AgentResult {
  reqId: RequestId;
  /** Files that were named and are not there. */
  skipped: Skip[];
}

/** Sends one message with what belongs to it, and lets the model work with its tools; nothing is stored. */
export type SendMessage = (request: SendMessageRequest) => Promise<SendMessageResult>;

const toolName = 'send';
const groups = new Set(['reads', 'all']);

/** Of the window, for what is sent. */
const sentShare = 0.9;

export function createSendMessage(services: ConversationServices, localTools: LocalToolsOf): SendMessage {
  // The same for all, so that prompts with the same tools share their beginning.
  const mark = newMark(services.random);
  return request =>
    observedCall(services, { ...request, tool: toolName, text: request.message, workspace: request.root }, reqId =>
      sendOne(services, localTools, request, { reqId, mark }),
    );
}

async function sendOne(
  services: ConversationServices,
  localTools: LocalToolsOf,
  request: SendMessageRequest,
  { reqId, mark }: { reqId: RequestId; mark: string },
): Promise<SendMessageResult> {
  if (request.message.trim() === '')
    throw missingError('message', 'There is no message to send.', 'Give a "message" that says what is wanted.');
  const { root, signal, conversation } = request;
  // Where no folder may be read, a message without one is sent all the same; files that it names are skipped, with the reason.
  if (services.sandbox.roots.length > 0 || request.search === true || request.localTools.length > 0)
    await services.sandbox.assertWithin(root);
  const mask = async (text: string) => (await services.mask(text, conversation)).text;
  const shown = await readShown(services, request);
  const { clock, emit } = services;
  if (shown.paths.length + shown.skipped.length > 0) {
    const skipped = shown.skipped.map(({ path, code }) => ({ path, code }));
    emit({ type: 'files.read', reqId, tool: toolName, embedded: shown.paths, skipped });
  }
  const before = [...(request.context?.trim() ? [await mask(request.context)] : []), ...shown.texts];
  const context = before.length > 0 ? before.join('\n\n') : undefined;
  const message = await mask(request.message);
  const layers = await Promise.all(request.system.map(layer => layerText(services, request, layer)));
  const layerTexts = layers.filter(text => text.trim() !== '');
  const preamble = await Promise.all(layerTexts.map(async text => asMessage('system', 'preamble', await mask(text))));
  const { tools, onToolCall } = await toolsFor(localTools, request, reqId);
  const candidates = await candidatesFor(services, { ...request, tools }, preamble, [...before, message].join('\n\n'));
  const refresh = tools.length > 0 ? createRefresher({ ...services, scope: conversation, signal }) : undefined;
  for (const path of shown.paths) await refresh?.saw(path);
  const { owner, topP } = request;
  const ask: AskModel = topP === undefined ? services.askModel : question => services.askModel({ ...question, topP });
  const triage = createTriage(services, ask, { reqId, scope: conversation, owner });
  const result = await runAgent(
    { ask, clock, emit, mask: services.mask, refresh, triage },
    {
      ...request,
      ...{ reqId, mark, tool: toolName, payer: { owner }, scope: conversation, cacheKey: conversation },
      ...{ candidates, preamble, context, message, tools, onToolCall },
      temperature: request.temperature ?? (candidates[0].model.temperature === 'none' ? undefined : 0),
    },
  );
  return { ...result, reqId, skipped: shown.skipped };
}

/** A tool of the program with its arguments checked by its schema before it runs, as far as that can be read. */
async function checkedBySchema(tool: AgentTool): Promise<AgentTool> {
  if (tool.check) return tool;
  const { CfWorkerJsonSchemaValidator } = await import('@modelcontextprotocol/client/validators/cf-worker');
  const validator = new CfWorkerJsonSchemaValidator();
  const check = (args: Record<string, unknown>) => {
    try {
      const { errorMessage } = validator.getValidator(tool.inputSchema)(args);
      return errorMessage === undefined ? { args } : { problem: `${errorMessage} (# stands for all arguments.)` };
    } catch {
      // It refers to what is not there, or means more than can be checked here: the tool is given what the model wrote.
      return { args };
    }
  };
  return { ...tool, check };
}

/** The program's own tools, and those of the agent that it wants; of these, what changes anything needs its word. */
async function toolsFor(localTools: LocalToolsOf, request: SendMessageRequest, reqId: RequestId) {
  const { tools: given, localTools: wanted, onToolCall, owner, root, conversation: scope } = request;
  const tools = await Promise.all(given.map(checkedBySchema));
  if (wanted.length === 0) return { tools, onToolCall };
  const all = await localTools({ reqId, scope, tool: toolName, owner, root });
  const unknown = wanted.filter(name => !groups.has(name) && !all.some(tool => tool.name === name));
  const allowed = [...groups, ...all.map(({ name }) => name)];
  if (unknown.length > 0)
    throw inputError(`There is no tool named ${unknown.map(name => `"${name}"`).join(', ')}.`, {
      next: `Name some of ${allowed.join(', ')}, or give a custom tool.`,
      validationErrors: [{ field: 'tools', error: 'unknown', allowed }],
    });
  const own = new Set(tools.map(({ name }) => name));
  const isWanted = ({ name, effect }: AgentTool) =>
    wanted.includes(name) || wanted.includes('all') || (wanted.includes('reads') && effect === 'read');
  const gate: AgentInput['onToolCall'] = call =>
    call.tool.effect === 'read' || own.has(call.name)
      ? { action: 'allow' }
      : {
          action: 'deny',
          reason: `${call.name} needs the approval of the program, which approves nothing (onToolCall).`,
        };
  const lent = all.filter(tool => isWanted(tool) && !own.has(tool.name));
  return { tools: [...tools, ...lent], onToolCall: onToolCall ?? gate };
}

/** Who may be asked: able to call tools where there are some, and with room for what is sent; earlier turns are trimmed to it. */
async function candidatesFor(
  services: CallServices,
  { model: name, tools }: SendMessageRequest,
  before: readonly Message[],
  message: string,
): Promise<Candidates> {
  const tokens = estimateTokens([...before.map(textOf), message].join('\n'));
  const { candidates } = await routeSent(services, name, tokens, tools.length > 0);
  const able = candidates.filter(({ model }) => tools.length === 0 || model.tools);
  const [first] = able;
  if (!first)
    throw inputError(`${name ?? 'The default model'} cannot call tools.`, {
      next: 'Name a model that can (listModels says which), or send without tools.',
      validationErrors: [{ field: 'model', error: 'it calls no tools' }],
    });
  const sent = ({ model }: Candidate) => Math.ceil(tokens * tokenFactor(model.id));
  const room = ({ model }: Candidate) => Math.floor(model.window * sentShare);
  const [roomy, ...others] = able.filter(candidate => sent(candidate) <= room(candidate));
  if (roomy) return [roomy, ...others];
  const why = `What is to be sent has about ${sent(first)} tokens; ${first.model.id} takes ${room(first)}.`;
  throw limitError('tokens', why, {
    next: 'Send less: fewer files, lines of them (file.ts:10-80), or a shorter text. Or choose a model with a larger context window.',
  });
}

async function layerText(services: CallServices, request: SendMessageRequest, layer: SystemLayer): Promise<string> {
  if ('text' in layer) return layer.text;
  const read = await readIn(services, request, layer.file);
  return isSkip(read) ? '' : read.file.text;
}
