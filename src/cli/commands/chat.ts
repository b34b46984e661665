import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { cancelledError } from '../../core/errors.ts';
import { recordIn, recordsIn } from '../../core/json.ts';
import { didYouMean } from '../../core/text.ts';
import { usdText } from '../../core/usage.ts';
import { type CommandContext, continueFlag, defineCommand, modelFlag, textFlag } from '../command/command.ts';
import { type OpenProduct, openProduct, showFailure } from '../command/open-product.ts';
import { missingPaths, showAnswerFacts, showCall } from '../command/run-tool.ts';

const help = `/model [NAME]   Use this model from now on; without a name: the default again
/file [PATH]    Send a file or directory with the next question; without a path: none
/cost           Show what this conversation cost
/new            Start a new thread
/quit           Leave (also Ctrl+D)
A line that ends with \\ continues in the next line. Ctrl+C cancels the running question.`;

const words = ['/model', '/file', '/cost', '/new', '/help', '/quit'];

export const chat = defineCommand({
  name: 'chat',
  group: 'Ask',
  summary: 'Hold a conversation with models in the terminal',
  flags: [modelFlag, continueFlag],
  examples: [
    ['polylogue chat', 'Start a thread; /help shows its commands'],
    ['polylogue chat --continue last --model opus', 'Continue the newest thread with another model'],
  ],
  run: context => openProduct(context, open => converse(context, open)),
});

/** What the next question is sent with, and what those before it cost. */
interface Conversation {
  thread: string | undefined;
  model: string | undefined;
  files: string[];
  questions: number;
  unpriced: number;
  usd: number;
  failed: boolean;
}

async function converse(context: CommandContext, open: OpenProduct): Promise<number> {
  const { flags, out } = context;
  const talk: Conversation = {
    thread: textFlag(flags, 'continue'),
    model: textFlag(flags, 'model'),
    ...{ files: [], questions: 0, unpriced: 0, usd: 0, failed: false },
  };
  const isTerminal = process.stdin.isTTY === true;
  const terminal = createInterface({
    input: process.stdin,
    output: process.stderr,
    terminal: isTerminal,
    prompt: isTerminal ? '> ' : '',
    // Questions are stored masked in their thread, and nowhere else.
    history: talk.thread === undefined ? [] : await questionsOf(talk.thread, open),
    completer: (line: string) => [words.filter(word => word.startsWith(line)), line],
  });
  let running: AbortController | undefined;
  terminal.on('SIGINT', () => (running ? running.abort(cancelledError()) : terminal.close()));
  open.signal.addEventListener('abort', () => terminal.close(), { once: true });
  out.remark('Ask a question. /help shows the commands.');
  let isClosed = false;
  terminal.once('close', () => {
    isClosed = true;
  });
  terminal.prompt();
  let pending = '';
  for await (const line of terminal) {
    pending += line;
    if (pending.endsWith('\\')) {
      pending = `${pending.slice(0, -1)}\n`;
      continue;
    }
    const text = pending.trim();
    pending = '';
    if (text === '/quit') break;
    running = new AbortController();
    if (text.startsWith('/')) out.line(await command(context, open, talk, text));
    else if (text !== '') await ask(context, open, talk, text, AbortSignal.any([running.signal, open.signal]));
    running = undefined;
    if (open.signal.aborted) break;
    if (!isClosed) terminal.prompt();
  }
  // Without it the shell would go on in the line of the prompt.
  if (isClosed && isTerminal) out.remark('');
  terminal.close();
  return talk.failed && !isTerminal ? 1 : 0;
}

/** The questions of a thread, newest first, for the arrow keys; none of a thread that cannot be read. */
async function questionsOf(thread: string, { call }: OpenProduct): Promise<string[]> {
  const { document } = await call('threads', { action: 'read', continuation_id: thread });
  const asked = recordsIn(document.transcript).filter(({ role }) => role === 'user');
  return asked.map(({ content }) => String(content).split('\n', 1).join('')).toReversed();
}

async function ask(
  context: CommandContext,
  open: OpenProduct,
  talk: Conversation,
  prompt: string,
  signal: AbortSignal,
) {
  const { thread, model, files } = talk;
  const args = { prompt, model, continuation_id: thread, absolute_file_paths: files.length > 0 ? files : undefined };
  const reply = await showCall(context, open, 'chat', args, { streams: true }, signal);
  const { continuation_id: id } = recordIn(reply.document.continuation_offer);
  if (typeof id === 'string') talk.thread = id;
  if (reply.isError) {
    talk.failed = true;
    showFailure(context, reply);
    return;
  }
  const { cost_usd: usd } = recordIn(reply.document.metadata);
  talk.files = [];
  talk.questions += 1;
  if (typeof usd === 'number') talk.usd += usd;
  else talk.unpriced += 1;
  showAnswerFacts(context, reply.document, '');
}

/** Runs a command of the conversation; answers what it says. */
async function command(context: CommandContext, { product, signal }: OpenProduct, talk: Conversation, text: string) {
  const [, word = '', value = ''] = /^(\S+)\s*(.*)$/s.exec(text) ?? [];
  switch (word) {
    case '/model': {
      const question = { tool: 'chat', prompt: '', files: [], images: 0, askModel: false, model: value };
      const { failure } = value === '' ? {} : await product.explainRoute(question, signal);
      if (failure) return [failure.message, failure.next].filter(Boolean).join('\n');
      talk.model = value || undefined;
      return `Model: ${talk.model ?? 'the default'}`;
    }
    case '/file': {
      const path = resolve(context.environment.cwd, value);
      const [missing] = missingPaths([path]);
      if (missing) return missing;
      talk.files = value === '' ? [] : [...talk.files, path];
      return `With the next question: ${talk.files.join(', ') || 'no file'}`;
    }
    case '/cost': {
      const unpriced = talk.unpriced > 0 ? `, ${talk.unpriced} of them not priced` : '';
      return `Questions: ${talk.questions}${unpriced}, ${usdText(talk.usd)} USD`;
    }
    case '/new':
      talk.thread = undefined;
      return 'The next question starts a new thread.';
    case '/help':
      return help;
    default:
      return `Unknown command "${word}". ${didYouMean(word, words)}/help shows the commands.`;
  }
}
