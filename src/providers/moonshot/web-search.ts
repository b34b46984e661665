import type * as sdk from '@ai-sdk/provider';
import { isAppError } from '../../core/errors.ts';
import { parsedJson, recordIn, textIn } from '../../core/json.ts';
import { usePart } from '../../models/fees.ts';
import { badUpstream } from '../../models/resilience/errors.ts';
import { chatUsage } from '../shared/openai-dialect.ts';
import { type CallOptions, type Part, streamingModel } from '../shared/stream-transforms.ts';
import type { MoonshotFormula } from './api.ts';

type Usage = sdk.LanguageModelV4Usage;

/** The tokens of several requests that make one answer. */
function addVendorUsage(before: Usage | undefined, more: Usage): Usage {
  if (!before) return more;
  const sum = (a: number | undefined, b: number | undefined) =>
    a === undefined && b === undefined ? undefined : (a ?? 0) + (b ?? 0);
  const { inputTokens: i, outputTokens: o } = before;
  const { inputTokens, outputTokens } = more;
  const cacheRead = sum(i.cacheRead, inputTokens.cacheRead);
  return chatUsage({
    prompt_tokens: sum(i.total, inputTokens.total),
    completion_tokens: sum(o.total, outputTokens.total),
    prompt_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: sum(i.cacheWrite, inputTokens.cacheWrite) },
    completion_tokens_details: { reasoning_tokens: sum(o.reasoning, outputTokens.reasoning) },
  });
}

/** The tool that Moonshot runs itself. */
export const webSearchTool = '$web_search';

/** How far one call may search. */
interface SearchAllowance {
  /** Searches that are let through; then the model must answer. */
  rounds: number;
  /** Tokens that prompt and search results may take together. */
  room: number;
  /** What the search costs the answer, as a sentence for the caller. */
  note?: string;
  /** Searches by the tool of the platform instead of the built-in one. */
  formula: boolean;
}

function allowanceOf({ providerOptions }: CallOptions): SearchAllowance | undefined {
  const { rounds, room, note, formula } = recordIn(providerOptions?.moonshot?.vendorSearch);
  if (typeof rounds !== 'number' || typeof room !== 'number') return undefined;
  return { rounds, room, note: textIn(note) || undefined, formula: formula === true };
}

/** The same call, in which the tool is still declared but must not be used. */
const withoutSearch = ({ providerOptions, ...options }: CallOptions): CallOptions => ({
  ...options,
  providerOptions: { ...providerOptions, moonshot: { ...providerOptions?.moonshot, noSearch: true } },
});

/**
 * The model with Moonshot's own search, until it answers in text: a call of `$web_search` is answered with its arguments as they
 * came, for the search runs at the vendor; a call of the formula's tool with what the vendor makes of it. Thoughts go back with
 * the calls. A call without an allowance is asked as it is.
 */
export const searchingModel = (model: sdk.LanguageModelV4, formula: MoonshotFormula): sdk.LanguageModelV4 =>
  streamingModel(model, async options => {
    const allowance = allowanceOf(options);
    if (!allowance) return model.doStream(options);
    const means = allowance.formula ? await formulaMeans(formula, options) : builtIn;
    const searching = { ...options, ...(means.tools.length > 0 && { tools: means.tools }) };
    const first = await model.doStream(searching);
    const quiet = allowance.formula
      ? { ...searching, toolChoice: { type: 'none' as const } }
      : withoutSearch(searching);
    const ask: Ask = async (prompt, more) => (await model.doStream({ ...(more ? searching : quiet), prompt })).stream;
    return { ...first, stream: ReadableStream.from(conversation(options.prompt, allowance, means, first.stream, ask)) };
  });

/** How a model searches. */
interface Means {
  /** What it is shown; the built-in tool is declared when the body is made. */
  tools: sdk.LanguageModelV4FunctionTool[];
  /** A sentence for the caller where it can't search now. */
  note?: string;
  /** Whether a call is charged for being made, whatever comes of it. */
  charged: boolean;
  isOwn(name: string): boolean;
  /** What stands in the conversation for each call, how many searches are charged, and what the results take in the prompt. */
  answer(
    calls: readonly sdk.LanguageModelV4ToolCall[],
    limit: number,
  ): Promise<{ texts: readonly string[]; done: number; tokens: number }>;
}

const builtIn: Means = {
  tools: [],
  charged: true,
  isOwn: name => name === webSearchTool,
  answer: async calls => ({
    texts: calls.map(({ input }) => input),
    done: calls.length,
    tokens: announcedTokens(calls),
  }),
};

const charsPerToken = 4;

/** Where the vendor does not tell of the tool, the model answers without it. */
async function formulaMeans(formula: MoonshotFormula, { abortSignal }: CallOptions): Promise<Means> {
  const signal = abortSignal ?? new AbortController().signal;
  const tools = await formula.tools(signal).catch((error: unknown) => {
    if (signal.aborted || !isAppError(error)) throw error;
    return [];
  });
  const note = 'Kimi did not tell of its search; the answer was written without it.';
  return {
    tools,
    ...(tools.length === 0 && { note }),
    charged: false,
    isOwn: name => tools.some(tool => tool.name === name),
    async answer(calls, limit) {
      const results = await Promise.all(
        calls.map((call, at) =>
          at < limit ? formula.run(call, signal) : { text: 'Error: no more searches are left here.', done: false },
        ),
      );
      const texts = results.map(({ text }) => text);
      const chars = texts.reduce((sum, text) => sum + text.length, 0);
      return { texts, done: results.filter(({ done }) => done).length, tokens: Math.ceil(chars / charsPerToken) };
    },
  };
}

type Stream = ReadableStream<Part>;

type Parts = AsyncGenerator<Part>;

type Ask = (prompt: sdk.LanguageModelV4Prompt, searching: boolean) => Promise<Stream>;

/** All rounds as one stream: one start, the texts of all, one end with the tokens of all. */
async function* conversation(
  question: sdk.LanguageModelV4Prompt,
  { rounds, room, note }: SearchAllowance,
  means: Means,
  first: Stream,
  ask: Ask,
): Parts {
  const prompt = [...question];
  let stream = first;
  let left = rounds;
  let usage: Usage | undefined;
  for (const warning of [note, means.note]) if (warning !== undefined) yield warned(warning);
  for (let round = 0; ; round++) {
    const said: Round = { text: '', reasoning: '', calls: [] };
    yield* forwarded(stream, said, round, means);
    const { finish, calls } = said;
    // A stream that broke off has no end; the reader of the stream knows what that means.
    if (!finish) return;
    usage = addVendorUsage(usage, finish.usage);
    if (calls.length === 0) {
      yield { ...finish, usage };
      return;
    }
    yield countedSoFar(usage);
    if (left <= 0) {
      if (means.charged) yield usePart({ kind: 'web_search', amount: calls.length });
      throw badUpstream('The model went on to search instead of answering.', false);
    }
    const searched = await means.answer(calls, left);
    // Charged from here on, whether or not the conversation goes on.
    if (searched.done > 0) yield usePart({ kind: 'web_search', amount: searched.done });
    const fits = (finish.usage.inputTokens.total ?? 0) + searched.tokens <= room;
    if (fits) prompt.push(...exchanged(said, searched.texts, means));
    else yield warned('What the search found does not fit into the window; the answer was written without it.');
    // Calls of the built-in tool come one at a time; of the others each counts.
    left = fits ? left - (means.charged ? 1 : calls.length) : 0;
    stream = await ask(prompt, left > 0);
    // What goes in now is the last prompt and more.
    yield countedSoFar(usage, (finish.usage.inputTokens.total ?? 0) + (fits ? searched.tokens : 0));
  }
}

/** The tokens of the rounds so far, for where a later one breaks: the end of the stream tells those of all. */
function countedSoFar({ inputTokens, outputTokens }: Usage, more = 0): Part {
  const counts = { prompt_tokens: (inputTokens.total ?? 0) + more, completion_tokens: outputTokens.total ?? 0 };
  return { type: 'raw', rawValue: { usage: counts } };
}

const warned = (message: string): Part => ({ type: 'stream-start', warnings: [{ type: 'other', message }] });

/** What one round of the conversation came to. */
interface Round {
  text: string;
  reasoning: string;
  calls: sdk.LanguageModelV4ToolCall[];
  finish?: Extract<Part, { type: 'finish' }>;
}

/** Passes on what belongs to the answer and keeps what belongs to the conversation. */
async function* forwarded(stream: Stream, said: Round, round: number, means: Means): Parts {
  for await (const part of stream) {
    if (part.type === 'text-delta') said.text += part.delta;
    if (part.type === 'reasoning-delta') said.reasoning += part.delta;
    if (part.type === 'finish') said.finish = part;
    else if (part.type === 'tool-call') {
      if (!means.isOwn(part.toolName)) throw badUpstream(`The model called "${part.toolName}", which is no tool here.`);
      said.calls.push(part);
    } else if (part.type === 'raw') {
      // That it began; its counts are added up with those of the other rounds.
      if (round === 0) yield { type: 'raw', rawValue: {} };
    } else if (part.type === 'stream-start') {
      if (round === 0) yield part;
    } else if ('id' in part && /^(?:text|reasoning)-/.test(part.type)) {
      yield { ...part, id: `${round}-${part.id}` };
    } else if (!part.type.startsWith('tool-input-')) yield part;
  }
}

/** The assistant's message as it came, and each call answered. The adapter calls every tool a function; the vendor wants its own word back. */
function exchanged(said: Round, texts: readonly string[], { charged: isBuiltIn }: Means): sdk.LanguageModelV4Message[] {
  const { text, reasoning, calls } = said;
  const own = (fields: sdk.JSONObject) => (isBuiltIn ? { providerOptions: { openaiCompatible: fields } } : {});
  return [
    {
      role: 'assistant',
      content: [
        ...(reasoning === '' ? [] : [{ type: 'reasoning' as const, text: reasoning }]),
        ...(text === '' ? [] : [{ type: 'text' as const, text }]),
        ...calls.map(({ toolCallId, toolName, input }) => ({
          type: 'tool-call' as const,
          toolCallId,
          toolName,
          input,
          ...own({ type: 'builtin_function' }),
        })),
      ],
    },
    {
      role: 'tool',
      content: calls.map(({ toolCallId, toolName }, at) => ({
        type: 'tool-result' as const,
        toolCallId,
        toolName,
        output: { type: 'text' as const, value: texts[at] ?? '' },
        ...own({ name: toolName }),
      })),
    },
  ];
}

/** The arguments tell how many tokens the results will take. */
const announcedTokens = (calls: readonly sdk.LanguageModelV4ToolCall[]): number =>
  calls.reduce((sum, { input }) => {
    const usage = recordIn(recordIn(parsedJson(input)).usage).total_tokens;
    return sum + (typeof usage === 'number' && Number.isFinite(usage) && usage > 0 ? usage : 0);
  }, 0);
