import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as sdk from '@ai-sdk/provider';
import { AppError } from '../../core/errors.ts';
import { tailHeading } from '../../core/message.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { notTaken, shownFiles } from '../../models/provider.ts';
import { type Part, streamingModel } from './stream-transforms.ts';

/** Each of at most 400 characters, none of them cut in two. */
const chunks = /.{1,400}/gsu;

interface OfflineOptions {
  vendor: string;
  id: string;
  /** Tokens. */
  window: number;
}

/** A model that answers in this process, with an exact account of what it was given. */
export const offlineModel = (options: OfflineOptions): sdk.LanguageModelV4 =>
  streamingModel({ provider: options.vendor, modelId: options.id }, async call => {
    call.abortSignal?.throwIfAborted();
    const parts = streamParts(answerTo(call.prompt, options), notTaken(call));
    return { stream: ReadableStream.from(paced(parts, call.abortSignal)) };
  });

function answerTo(prompt: sdk.LanguageModelV4Prompt, { vendor, id, window }: OfflineOptions) {
  const account = accountOf(prompt, vendor, id);
  const input = account.totals.tokens;
  if (input > window)
    throw new AppError('model', `The prompt has about ${input} tokens; the window is ${window}.`, {
      code: 'API_ERROR',
      class: 'context_length',
      retryable: false,
    });
  const text = readable(account);
  const output = estimateTokens(text);
  const usage = {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  };
  return { text, usage };
}

function accountOf(prompt: sdk.LanguageModelV4Prompt, vendor: string, model: string) {
  const messages = prompt.map((message, index) => accountOfMessage(message, index, prompt));
  const sum = (count: (message: (typeof messages)[number]) => number) =>
    messages.reduce((total, each) => total + count(each), 0);
  return {
    vendor,
    model,
    messages,
    totals: {
      messages: messages.length,
      chars: sum(message => message.chars),
      tokens: sum(message => message.tokens),
      images: sum(message => message.images),
      files: sum(message => message.files.length),
    },
  };
}

function accountOfMessage(message: sdk.LanguageModelV4Message, index: number, prompt: sdk.LanguageModelV4Prompt) {
  const text = textOf(message);
  return {
    role: message.role,
    section: sectionOf(text, index, prompt),
    chars: text.length,
    tokens: estimateTokens(text),
    sha256: hash('sha256', text),
    images: typeof message.content === 'string' ? 0 : message.content.filter(part => part.type === 'file').length,
    files: shownFiles(text),
  };
}

/** Parts are joined by a line end, as in the canonical form of a prompt. */
function textOf({ content }: sdk.LanguageModelV4Message): string {
  if (typeof content === 'string') return content;
  return content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('\n');
}

function sectionOf(text: string, index: number, prompt: sdk.LanguageModelV4Prompt): 'preamble' | 'turn' | 'tail' {
  if (text.startsWith(tailHeading)) return 'tail';
  return prompt.slice(0, index + 1).every(({ role }) => role === 'system') ? 'preamble' : 'turn';
}

function readable(account: ReturnType<typeof accountOf>): string {
  const { vendor, model, messages, totals } = account;
  const lines = messages.map((message, index) => {
    const files = message.files.map(file => `\n   - ${file.path}: ${file.form}, ${file.lines} lines`).join('');
    return `${index + 1}. ${message.role} (${message.section}): ${message.chars} characters, about ${message.tokens} tokens${files}`;
  });
  return [
    `This is ${model} of ${vendor}. I was given ${totals.messages} messages with ${totals.chars} characters, about ${totals.tokens} tokens, ${totals.files} files and ${totals.images} images:`,
    lines.join('\n'),
    `\`\`\`json\n${JSON.stringify(account, null, 1)}\n\`\`\``,
  ].join('\n\n');
}

function streamParts(answer: ReturnType<typeof answerTo>, warnings: sdk.SharedV4Warning[]): Part[] {
  const id = '0';
  const deltas = answer.text.match(chunks) ?? [];
  return [
    { type: 'stream-start', warnings },
    { type: 'text-start', id },
    ...deltas.map(delta => ({ type: 'text-delta' as const, id, delta })),
    { type: 'text-end', id },
    { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage: answer.usage },
  ];
}

/** One part a turn of the event loop, so that an abort takes effect between them. */
async function* paced(parts: readonly Part[], signal: AbortSignal | undefined) {
  for (const part of parts) {
    await nextTurn();
    signal?.throwIfAborted();
    yield part;
  }
}
