import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { cancelledError, inputError, isAppError } from '../../core/errors.ts';
import { recordIn, recordsIn } from '../../core/json.ts';
import { didYouMean } from '../../core/text.ts';
import { usdText } from '../../core/usage.ts';
import { type CommandContext, continueFlag, defineCommand, modelFlag, textFlag } from '../command/command.ts';
import { type OpenProduct, openProduct, showFailure } from '../command/open-product.ts';
import { missingPaths, showAnswerFacts, showCall } from '../command/run-tool.ts';

const help = `/model [NAME]   Use this model from now on; without a name: the default again
/file [PATH]    Send a file or directory with the next question; without a path: none
/cost           Show what this conversation cost
/new            Start a new thread, without the files named for the next question
/quit           Leave (also Ctrl+D)
A line that ends with \\ continues in the next line. Ctrl+C cancels the running question.
Files that cannot be sent are dropped with their question. In piped input, a command that fails ends the conversation.`;

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

type Conversation = ReturnType<typeof begun>;

/** What the next question is sent with, and what those before it cost. */
function begun({ flags }: CommandContext) {
  const files: string[] = [];
  const sums = { questions: 0, unpriced: 0, usd: 0, failed: false };
  return { thread: textFlag(flags, 'continue'), model: textFlag(flags, 'model'), files, ...sums };
}

async function converse(context: CommandContext, open: OpenProduct): Promise<number> {
  const { out, environment } = context;
  const talk = begun(context);
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
  for await (const text of inputs(terminal, isTerminal)) {
    if (text === '/quit' || open.signal.aborted) break;
    running = new AbortController();
    try {
      if (text.startsWith('/')) out.line(await command(context, open, talk, text));
      else if (text !== '') {
        const signal = AbortSignal.any([running.signal, open.signal]);
        await ask(context, { ...open, signal }, talk, text);
      }
    } catch (error) {
      if (!isAppError(error)) throw error;
      environment.writeError(`${[error.message, error.details.next].filter(Boolean).join('\n')}\n`);
      talk.failed = true;
      // Without a person, what follows would be asked in another way than it was meant.
      if (!isTerminal) break;
    }
    running = undefined;
    if (!isClosed) terminal.prompt();
  }
  // Without it the shell would go on in the line of the prompt.
  if (isClosed && isTerminal) out.remark('');
  terminal.close();
  return talk.failed && !isTerminal ? 1 : 0;
}

/** What was written, with lines that continue as one. On a terminal, what is unfinished at the end was given up. */
async function* inputs(lines: AsyncIterable<string>, isTerminal: boolean) {
  let text = '';
  for await (const line of lines) {
    text += line;
    if (line.endsWith('\\')) text = `${text.slice(0, -1)}\n`;
    else {
      yield text.trim();
      text = '';
    }
  }
  if (!isTerminal) yield text.trim();
}

/** Classes of failures that may be those of the files. */
const ofFiles = new Set(['files', 'size', 'tokens', 'security']);

/** The questions of a thread, newest first, for the arrow keys; none of a thread that cannot be read. */
async function questionsOf(thread: string, { call }: OpenProduct): Promise<string[]> {
  const { document } = await call('threads', { action: 'read', continuation_id: thread });
  const asked = recordsIn(document.transcript).filter(({ role }) => role === 'user');
  return asked.map(({ content }) => String(content).split('\n', 1).join('')).toReversed();
}

async function ask(context: CommandContext, open: OpenProduct, talk: Conversation, prompt: string) {
  const { thread, model, files } = talk;
  const args = { prompt, model, continuation_id: thread, absolute_file_paths: files.length > 0 ? files : undefined };
  const reply = await showCall(context, open, 'chat', args, { streams: true });
  const { continuation_id: id } = recordIn(reply.document.continuation_offer);
  if (typeof id === 'string') talk.thread = id;
  if (reply.isError) {
    talk.failed = true;
    showFailure(context, reply, '/file');
    if (files.length === 0) return;
    const { status, error } = reply.document;
    if (status !== 'resend_prompt' && ofFiles.has(String(recordIn(error).class))) talk.files = [];
    const [word, way] =
      talk.files.length > 0 ? ['with', '"/file" sends none'] : ['without', '"/file PATH" sends others'];
    context.environment.writeError(`The next question goes ${word} ${files.join(', ')}; ${way}.\n`);
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
      if (failure) throw inputError(failure.message, { next: failure.next });
      talk.model = value || undefined;
      return `Model: ${talk.model ?? 'the default'}`;
    }
    case '/file': {
      const path = resolve(context.environment.cwd, value);
      const [missing] = missingPaths([path]);
      if (missing !== undefined) throw inputError(missing);
      talk.files = value === '' ? [] : [...talk.files, path];
      return `With the next question: ${talk.files.join(', ') || 'no file'}`;
    }
    case '/cost': {
      const unpriced = talk.unpriced > 0 ? `, ${talk.unpriced} of them not priced` : '';
      return `Questions: ${talk.questions}${unpriced}, ${usdText(talk.usd)} USD`;
    }
    case '/new':
      talk.thread = undefined;
      talk.files = [];
      return 'The next question starts a new thread.';
    case '/help':
      return help;
    default:
      throw inputError(`Unknown command "${word}". ${didYouMean(word, words)}/help shows the commands.`);
  }
}
