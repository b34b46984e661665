import { hash } from 'node:crypto';
import type * as sdk from '@ai-sdk/provider';
import { isAppError } from '../../core/errors.ts';
import { type JsonObject, numberIn, recordIn, textIn } from '../../core/json.ts';
import { tailHeading } from '../../core/message.ts';
import { noUsage, type Usage } from '../../core/usage.ts';
import { type CallParams, type ConnectContext, type Connection, notTaken } from '../../models/provider.ts';
import { type CallOptions, type Part, streamingModel } from '../shared/stream-transforms.ts';
import { usageBy } from './clis/cli.ts';
import type { CliRequest, CliResponse, CliRunner } from './contract.ts';
import { cliProviderId, sessionLost, splitCliId } from './contract.ts';

/** One text of a prompt, in its order. */
interface PromptPart {
  role: 'system' | 'user' | 'assistant';
  text: string;
}

/** `stable` grows only at its end from call to call; `tail` says what to do now. */
function promptParts(prompt: sdk.LanguageModelV4Prompt) {
  const stable: PromptPart[] = [];
  const tail: PromptPart[] = [];
  for (const message of prompt) {
    if (message.role === 'tool') continue;
    const { role, content } = message;
    const texts =
      typeof content === 'string' ? [content] : content.flatMap(part => (part.type === 'text' ? [part.text] : []));
    for (const text of texts) (text.startsWith(tailHeading) ? tail : stable).push({ role, text });
  }
  return { stable, tail };
}

const headings: Record<PromptPart['role'], string> = {
  system: '=== INSTRUCTIONS ===',
  user: '=== FROM THE CALLER ===',
  assistant: '=== EARLIER ANSWER ===',
};

/** Parts as the one text that a program reads. It begins with a word of ours: never with a slash, a dash or an at sign. */
const promptText = (parts: readonly PromptPart[]): string =>
  parts.map(({ role, text }) => (text.startsWith(tailHeading) ? text : `${headings[role]}\n${text}`)).join('\n\n');

/** Equal for equal parts; tells whether a prompt still begins as it did. */
const partsDigest = (parts: readonly PromptPart[]): string =>
  hash('sha256', parts.map(({ role, text }) => `${role} ${text.length} ${text}`).join(''));

/** Where a thread's session with one program stands. */
interface CliSession {
  /** The program's own id. */
  id: string;
  /** How many of the prompt's stable parts it knows, its own last answer not counted. */
  parts: number;
  /** Over these parts. */
  digest: string;
  /** What the session had used when it answered last. */
  used: Usage;
}

const keptMs = 30 * 24 * 3_600_000;

/**
 * The sessions that programs keep, by the threads they belong to. One is gone on with only where the prompt begins with
 * exactly what it knows: after a fork, a compaction or a move to another directory a new one starts, with the whole thread.
 */
const cliSessions = ({ state }: Pick<ConnectContext, 'state'>) => ({
  /**
   * Takes it until it is kept again: a call that fails, or ends with its process, may leave it a question without an answer, and
   * our prompts then go on as if nobody had asked it.
   */
  async take(place: string, stable: readonly PromptPart[]): Promise<CliSession | undefined> {
    const session = sessionIn(await state.get(place));
    if (!session) return undefined;
    const isKnown = partsDigest(stable.slice(0, session.parts)) === session.digest;
    if (!isKnown || stable[session.parts]?.role !== 'assistant') return undefined;
    await state.change(place, keptMs, () => undefined);
    return session;
  },
  async keep(place: string, stable: readonly PromptPart[], id: string, used: Usage): Promise<void> {
    const session = { id, parts: stable.length, digest: partsDigest(stable), used: { ...used } };
    await state.change(place, keptMs, () => session);
  },
});

/** Where the session is kept of one program that answers in one thread, working in one directory. */
const placeOf = (thread: string, program: string, root: string): string =>
  `cli/${thread}/${program}/${partsDigest([{ role: 'user', text: root }]).slice(0, 16)}`;

/** What was stored may have been written by another version. */
function sessionIn(value: JsonObject | undefined): CliSession | undefined {
  const id = textIn(value?.id);
  const digest = textIn(value?.digest);
  if (id === '' || digest === '') return undefined;
  const used = recordIn(value?.used);
  return { id, digest, parts: numberIn(value?.parts), used: usageBy(name => numberIn(used[name])) };
}

interface ModelParts {
  runner: CliRunner;
  /** Absent: every call begins a session of its own. */
  sessions: ReturnType<typeof cliSessions> | undefined;
}

type Put = (part: Part) => void;

function streamOf(parts: ModelParts, modelId: string, call: CallOptions) {
  const { readable, writable } = new TransformStream<Part, Part>();
  const writer = writable.getWriter();
  // Nobody reads any more where it fails.
  const put: Put = part => void writer.write(part).catch(() => undefined);
  put({ type: 'stream-start', warnings: notTaken(call) });
  void answer(parts, modelId, call, put)
    .catch((error: unknown) => put({ type: 'error', error }))
    .finally(() => writer.close().catch(() => undefined));
  return readable;
}

async function answer({ runner, sessions }: ModelParts, modelId: string, call: CallOptions, put: Put) {
  const prompt = promptParts(call.prompt);
  const { question, place } = questionOf(modelId, call, put);
  const known = place === undefined ? undefined : await sessions?.take(place, prompt.stable);
  let resumed = known;
  let answered: CliResponse;
  try {
    answered = await runner.ask({ ...question, ...askedFor(prompt, known) });
  } catch (error) {
    if (!known || !isAppError(error) || error.details.class !== sessionLost) throw error;
    // The program has thrown its session away: it is told the whole thread once more.
    resumed = undefined;
    answered = await runner.ask({ ...question, ...askedFor(prompt, undefined) });
  }
  const { session, usage } = answered;
  if (place && session !== undefined) await sessions?.keep(place, prompt.stable, session, usage ?? noUsage);
  put({ type: 'text-end', id: textId });
  put(finishOf(answered, resumed));
}

const textId = '0';

const workId = '1';

function questionOf(modelId: string, call: CallOptions, put: Put) {
  const facts = recordIn(call.providerOptions?.[cliProviderId]);
  const { name, model } = splitCliId(modelId);
  const thread = textIn(facts.thread);
  const root = textIn(facts.root);
  let begun = false;
  const question: Omit<CliRequest, 'prompt'> = {
    name,
    model,
    ...(root !== '' && { root }),
    ...(textIn(facts.role) !== '' && { role: textIn(facts.role) }),
    mayWrite: facts.mayWrite === true,
    reqId: textIn(facts.reqId),
    tool: textIn(facts.tool),
    signal: call.abortSignal ?? new AbortController().signal,
    onText(delta) {
      if (!begun) put({ type: 'text-start', id: textId });
      begun = true;
      put({ type: 'text-delta', id: textId, delta });
    },
    onWork: note => put({ type: 'reasoning-delta', id: workId, delta: note }),
  };
  return { question, place: thread === '' ? undefined : placeOf(thread, name, root) };
}

/** All of it, or what a session does not know yet. */
function askedFor({ stable, tail }: ReturnType<typeof promptParts>, known: CliSession | undefined) {
  const parts = known ? stable.slice(known.parts + 1) : stable;
  return { prompt: promptText([...parts, ...tail]), session: known?.id };
}

function finishOf(answered: CliResponse, resumed: CliSession | undefined): Part {
  const { finish, costUsd, metadata, steps, warnings } = answered;
  const usage = ownUsage(answered, resumed);
  return {
    type: 'finish',
    finishReason: { unified: finish === 'stop' ? 'stop' : 'other', raw: finish },
    usage: {
      inputTokens: {
        total: usage?.input,
        noCache: undefined,
        cacheRead: usage?.cacheRead,
        cacheWrite: usage?.cacheWrite,
      },
      outputTokens: { total: usage?.output, text: undefined, reasoning: usage?.reasoning },
    },
    providerMetadata: {
      [cliProviderId]: { costUsd, told: { ...metadata, resumed: resumed !== undefined }, steps, warnings },
    },
  };
}

/** Of this answer alone, where the program tells sums over its session. */
function ownUsage({ usage, usageOfSession }: CliResponse, resumed: CliSession | undefined): Usage | undefined {
  if (!usage || !usageOfSession || !resumed) return usage;
  return usageBy(name => Math.max(0, usage[name] - resumed.used[name]));
}

/** Programs behind the contract that all models are asked by. */
export function connectClis(runner: CliRunner, context: ConnectContext | undefined): Connection {
  const parts: ModelParts = { runner, sessions: context && cliSessions(context) };
  return {
    languageModel: ({ id: modelId }) =>
      streamingModel({ provider: cliProviderId, modelId }, async call => ({ stream: streamOf(parts, modelId, call) })),
    providerOptions: optionsOf,
    close: runner.close,
  };
}

/** What the model needs of a call beside its prompt; `questionOf` reads it. */
function optionsOf({ cacheKey: thread, about }: CallParams): sdk.SharedV4ProviderOptions {
  const { reqId = '', tool = '', root, cli: { role, mayWrite = false } = {} } = about ?? {};
  return { [cliProviderId]: { reqId, tool, thread, root, role, mayWrite } };
}
