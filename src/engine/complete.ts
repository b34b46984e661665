import { closeExchange, type Exchange, openExchange, storeAnswer, toStoredAnswer } from '../calls/ask/ask.ts';
import { turnOf } from '../calls/ask/prepare-context.ts';
import { createMaskedStream, maskAnswer } from '../calls/ask/redaction.ts';
import type { CallServices } from '../calls/ask/services.ts';
import { titleOf } from '../calls/ask/with-thread.ts';
import type { RequestId } from '../core/ids.ts';
import type { Message, Part, SaidPart, ToolResult } from '../core/message.ts';
import { mapMessage, mapSaid, textOf } from '../core/message.ts';
import type { Candidates, ModelInfo } from '../core/model.ts';
import type { StoredTurn, Thread } from '../core/thread.ts';
import { estimateTokens } from '../core/tokens.ts';
import type { ModelAnswer, ModelQuestion } from '../models/ask-model.ts';
import type { ServedAnswer, ServedQuestion } from '../models/call/served-model.ts';
import { windowClass } from '../threads/compaction.ts';
import { blobsOf, renderTurns, type Selection, selectTurns } from '../threads/transcript.ts';
import { type ObservingServices, observedCall, routeSent } from './engine.ts';
import { type Conversation, messagesOf, trimConversation } from './modes/agent/conversation-window.ts';

/** A question of a program of the AI SDK. */
export interface CompleteRequest extends ServedQuestion {
  /** As callers name models; absent: the default model. */
  name?: string | undefined;
  /** The project, whose threads may be continued. */
  root: string;
  /** A thread's ID or `last`; true: a new one. Absent: nothing is stored. */
  thread?: string | true | undefined;
  /** Told of the thread once the question is in it. */
  onThread?(id: string): void;
}

type CompleteServices = CallServices & ObservingServices;

const owner = 'local';
const tool = { name: 'language_model' };
/** Tokens of an answer for which the program sets no limit. */
const usualOutput = 8_192;

/** Puts a question to the models that a name means, in their order; with `thread`, as an exchange of it. */
export function complete(services: CompleteServices, request: CompleteRequest): Promise<ServedAnswer> {
  const { threads } = services;
  const { thread: reference, root: workspace, signal, messages } = request;
  const place = { owner, workspace };
  const about = { ...place, tool: tool.name, text: messages.slice(-1).map(textOf).join('') };
  return observedCall(services, about, async reqId => {
    if (reference === undefined) {
      const messages = await maskedMessages(services, request, reqId);
      const candidates = await candidatesFor(services, request, messages);
      return askMasked(services, request, reqId, { reqId, candidates, messages });
    }
    if (reference === true) return inThread(services, request, reqId, threads.start(place, tool.name));
    const found = await threads.findHead(reference, place);
    return threads.exclusively(found.id, { signal }, async () =>
      inThread(services, request, reqId, await threads.refresh(found)),
    );
  });
}

async function inThread(services: CompleteServices, request: CompleteRequest, reqId: RequestId, found: Thread) {
  const { threads } = services;
  const all = await maskedMessages(services, request, found.id);
  const preamble = all.filter(({ role }) => role === 'system');
  const groups = groupsOf(all.filter(({ role }) => role !== 'system'));
  const question = groups.at(-1) ?? { role: 'user', content: '', messages: [] };
  const own = groups.slice(0, -1);
  const candidates = await candidatesFor(services, request, [...preamble, ...question.messages]);
  const { before, after } = await unsent(services, found, candidates[0].model, own, question);
  let thread = found.seq === 0 ? { ...found, title: titleOf(question.content) } : found;
  // A new thread begins with what the program already has, so that others who continue it know that too.
  if (found.seq === 0 && own.length > 0) {
    const exchange = threads.newExchange();
    const facts = own.map(({ role, content }, at) => ({ seq: at + 1, role, content, exchange }));
    const turns = facts.map(each => turnOf(services, { tool }, each));
    thread = await threads.add(thread, exchange, { turns, status: 'done' });
  }
  const { role, content } = question;
  const turn = turnOf(services, { tool }, { seq: thread.seq + 1, role, content, exchange: threads.newExchange() });
  const exchange: Exchange = { services };
  await openExchange(exchange, { thread, turn, sent: 0 });
  request.onThread?.(thread.id);
  const messages = [...preamble, ...before, ...own.flatMap(group => group.messages), ...after, ...question.messages];
  try {
    const about = { reqId, candidates, messages, payer: { owner, thread: thread.id }, cacheKey: thread.id };
    const answer = await askMasked(services, request, thread.id, about);
    const parts: readonly SaidPart[] = answer.said ?? [{ type: 'text', text: answer.text }];
    const said = await masked(services, thread.id, { role: 'assistant', section: 'turn', parts: [], said: parts });
    const facts = { ...toStoredAnswer(answer), content: contentOf(said) };
    const { warnings } = await storeAnswer(exchange, { tool, reqId }, facts);
    return { ...answer, warnings: [...answer.warnings, ...warnings], continuationId: thread.id };
  } catch (error) {
    await closeExchange(exchange, { reqId, signal: request.signal });
    throw error;
  }
}

/** Asks within the limits on cost, each model with what it holds. What it writes is masked, also as it streams. */
async function askMasked(
  { askModel, mask }: CompleteServices,
  request: CompleteRequest,
  scope: string,
  about: Pick<ModelQuestion, 'reqId' | 'messages' | 'payer' | 'cacheKey'> & { candidates: Candidates },
): Promise<ModelAnswer> {
  const { tools, toolChoice, temperature, topP, program, signal, onText, onStart } = request;
  const { maxOutputTokens = usualOutput } = request;
  const stream = onText && createMaskedStream(mask, scope, onText);
  const choice = { ...(tools.length > 0 && { tools }), ...(toolChoice && { toolChoice }) };
  const own = { maxOutputTokens, temperature, topP, program, signal, onText: stream?.push, onStart };
  const whole = conversationOf(about.messages);
  let left = 0;
  const messagesFor = (model: ModelInfo) => {
    // What fits is sent, unless it is Polylogue that keeps the conversation.
    const rules = about.cacheKey === undefined ? { ...model, provider: 'any' } : model;
    const room = { answer: maxOutputTokens, truncLimit: Number.POSITIVE_INFINITY };
    const { conversation, entries } = trimConversation(whole, rules, room);
    left = entries;
    return messagesOf(conversation, room.truncLimit);
  };
  const answer = await askModel({
    ...{ tool: tool.name, payer: { owner }, ...own, ...choice, ...about },
    messages: messagesFor(about.candidates[0].model),
    promptFor: async ({ model }) => ({ messages: messagesFor(model) }),
  });
  await stream?.end();
  if (left > 0)
    answer.warnings.push(`The oldest messages were left out: all of them are too long for ${answer.model.id}.`);
  const shown = await maskAnswer(mask, scope, answer);
  if (!answer.said) return shown;
  // The program runs the calls, with what the model wrote.
  return { ...shown, said: await mapSaid(answer.said, async text => (await mask(text, scope, 'model')).text) };
}

/** The newest message of the user's is the task, which stays; what came after it are rounds, as a loop of calls makes them. */
function conversationOf(messages: readonly Message[]): Conversation {
  const first = messages.findIndex(({ role }) => role !== 'system');
  const rest = first < 0 ? [] : messages.slice(first);
  const asked = rest.findLastIndex(({ role, results }) => role !== 'assistant' && !results);
  const exchanges: { said: readonly SaidPart[]; results: ToolResult[] }[] = [];
  for (const { said, parts, results } of rest.slice(asked + 1)) {
    if (results) exchanges.at(-1)?.results.push(...results);
    else exchanges.push({ said: said ?? parts.filter(part => part.type === 'text'), results: [] });
  }
  const task: Message = rest[asked] ?? { role: 'user', section: 'turn', parts: [] };
  const preamble = messages.slice(0, messages.length - rest.length);
  return { preamble, mark: '', history: rest.slice(0, Math.max(0, asked)), task, exchanges };
}

async function candidatesFor(services: CallServices, { name, tools }: CompleteRequest, messages: readonly Message[]) {
  const tokens = estimateTokens(messages.map(textOf).join('\n'));
  return (await routeSent(services, name, tokens, tools.length > 0)).candidates;
}

const masked = async ({ mask }: CompleteServices, scope: string, message: Message): Promise<Message> =>
  mapMessage(message, async text => (await mask(text, scope)).text);

const maskedMessages = (services: CompleteServices, { messages }: CompleteRequest, scope: string): Promise<Message[]> =>
  Promise.all(messages.map(message => masked(services, scope, message)));

/** Messages of one side in a row, as the turn that they become. */
interface Group extends Pick<StoredTurn, 'content'> {
  role: 'user' | 'assistant';
  messages: Message[];
}

function groupsOf(messages: readonly Message[]): Group[] {
  const groups: Group[] = [];
  for (const message of messages) {
    const role = message.role === 'assistant' ? 'assistant' : 'user';
    const last = groups.at(-1);
    if (last?.role === role) {
      last.messages.push(message);
      last.content += `\n\n${contentOf(message)}`;
    } else groups.push({ role, content: contentOf(message), messages: [message] });
  }
  return groups;
}

/** A message as text that any model can read later, calls and results included. */
function contentOf({ parts, said = [], results = [] }: Message): string {
  const told = [
    ...parts.map((part: Part) => (part.type === 'text' ? part.text : `[${part.mediaType}]`)),
    ...said.map(part => {
      if (part.type === 'call') return `[calls ${part.name} ${part.broken ?? JSON.stringify(part.args)}]`;
      return part.type === 'text' ? part.text : '';
    }),
    ...results.map(({ name, text, failed }) => `[${name} ${failed ? 'failed' : 'answered'}] ${text}`),
  ];
  return told.filter(text => text.trim() !== '').join('\n\n');
}

/**
 * The turns of a thread that a program does not send itself, as messages: those before the newest turn that it sends, and those
 * after it. Where its turns stand in the thread is found by their words, the newest first. A question that is asked again stands
 * there with its first answer, and goes without both and what follows.
 */
async function unsent({ store }: CompleteServices, thread: Thread, model: ModelInfo, own: Group[], question: Group) {
  const done = thread.turns.filter(({ status }) => status === 'done');
  const sent = new Set<number>();
  const [stored, given, asked] = [done.map(wordsOf), own.map(wordsOf), wordsOf(question)];
  for (let end = stored.length, left = given.length; left > 0; ) {
    const run = longestRun(stored.slice(0, end), given.slice(0, left));
    for (const { seq } of done.slice(run.end - run.length, run.end)) sent.add(seq);
    if (run.length > 0) end = run.end - run.length;
    left -= Math.max(1, run.length);
  }
  const newest = Math.max(0, ...sent);
  const { compaction, turns } = selectTurns(thread, windowClass(model.window));
  const left = turns.filter(({ seq }) => !sent.has(seq));
  const isSummaryNew = compaction && done.some(({ seq }) => seq <= compaction.upToSeq && !sent.has(seq));
  const after = left.filter(({ seq }) => seq > newest);
  const again = after.findIndex(turn => turn.toolName === tool.name && wordsOf(turn) === asked);
  const parts: Selection[] = [
    { ...(isSummaryNew && { compaction }), turns: left.filter(({ seq }) => seq < newest) },
    { turns: newest > 0 && again >= 0 ? after.slice(0, again) : after },
  ];
  const blobs = await store.blobs(parts.flatMap(blobsOf));
  const [first = [], second = []] = parts.map(part => renderTurns(part, blobs));
  return { before: first, after: second };
}

const wordsOf = ({ role, content }: Pick<Group, 'role' | 'content'>): string =>
  `${role}: ${content.replace(/\s+/g, ' ').trim()}`;

/** Where most of what was given last stands in a row, the newest place of several: an answer alone may be given twice. */
function longestRun(stored: readonly string[], given: readonly string[]): { end: number; length: number } {
  let best = { end: 0, length: 0 };
  for (let end = stored.length; end > best.length; end--) {
    let length = 0;
    while (length < Math.min(end, given.length) && stored.at(end - 1 - length) === given.at(-1 - length)) length++;
    if (length > best.length) best = { end, length };
  }
  return best;
}
