import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { isAppError } from '../../core/errors.ts';
import { isRecord, textIn } from '../../core/json.ts';
import { noUsage, type Usage } from '../../core/usage.ts';
import type { ProgramSession, programSessions, SessionPlace } from '../../models/extras/programs/program-sessions.ts';
import { type PromptParts, promptParts, promptText } from '../../models/extras/programs/prompt-parts.ts';
import {
  type ProgramAnswer,
  type ProgramQuestion,
  type Programs,
  programProviderId,
  sessionLost,
  splitProgramId,
} from './program.ts';

interface ModelParts {
  programs: Programs;
  /** Absent: every call begins a session of its own. */
  sessions: ReturnType<typeof programSessions> | undefined;
}

/** A program behind the contract that all models are asked by. */
export function programModel(parts: ModelParts, modelId: string): LanguageModelV4 {
  return {
    specificationVersion: 'v4',
    provider: programProviderId,
    modelId,
    supportedUrls: {},
    async doGenerate() {
      throw new TypeError('programs are only asked for streams');
    },
    async doStream(call) {
      return { stream: streamOf(parts, modelId, call) };
    },
  };
}

type Put = (part: LanguageModelV4StreamPart) => void;

function streamOf(
  parts: ModelParts,
  modelId: string,
  call: LanguageModelV4CallOptions,
): ReadableStream<LanguageModelV4StreamPart> {
  let open = true;
  return new ReadableStream<LanguageModelV4StreamPart>({
    start(controller) {
      const put: Put = part => {
        if (open) controller.enqueue(part);
      };
      put({ type: 'stream-start', warnings: [] });
      answer(parts, modelId, call, put)
        .catch((error: unknown) => put({ type: 'error', error }))
        .finally(() => {
          if (open) controller.close();
          open = false;
        });
    },
    cancel() {
      open = false;
    },
  });
}

async function answer(
  { programs, sessions }: ModelParts,
  modelId: string,
  call: LanguageModelV4CallOptions,
  put: Put,
): Promise<void> {
  const prompt = promptParts(call.prompt);
  const { question, place } = questionOf(modelId, call, put);
  const known = place && (await sessions?.find(place, prompt.stable));
  let resumed = known;
  let answered: ProgramAnswer;
  try {
    answered = await programs.ask({ ...question, ...askedFor(prompt, known) });
  } catch (error) {
    if (!place || !known) throw error;
    // It may have the question without an answer, and our prompts then go on as if nobody had asked it.
    await sessions?.drop(place);
    if (!isAppError(error) || error.details.class !== sessionLost) throw error;
    // The program has thrown its session away: it is told the whole thread once more.
    resumed = undefined;
    answered = await programs.ask({ ...question, ...askedFor(prompt, undefined) });
  }
  const { session, usage } = answered;
  if (place && session !== undefined) await sessions?.keep(place, prompt.stable, session, usage ?? noUsage);
  put({ type: 'text-end', id: textId });
  put(finishOf(answered, resumed));
}

const textId = '0';
const workId = '1';

function questionOf(modelId: string, call: LanguageModelV4CallOptions, put: Put) {
  const options = call.providerOptions?.[programProviderId];
  const facts = isRecord(options) ? options : {};
  const { name, model } = splitProgramId(modelId);
  const thread = textIn(facts.thread);
  const root = textIn(facts.root);
  let begun = false;
  const question: Omit<ProgramQuestion, 'prompt'> = {
    name,
    ...(model !== undefined && { model }),
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
  const place: SessionPlace | undefined = thread === '' ? undefined : { thread, program: name, root };
  return { question, place };
}

/** All of it, or what a session does not know yet. */
function askedFor({ stable, tail }: PromptParts, known: ProgramSession | undefined) {
  const parts = known ? stable.slice(known.parts + 1) : stable;
  return { prompt: promptText([...parts, ...tail]), ...(known && { session: known.id }) };
}

function finishOf(answered: ProgramAnswer, resumed: ProgramSession | undefined): LanguageModelV4StreamPart {
  const { finish, costUsd, told, steps, warnings } = answered;
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
      [programProviderId]: {
        ...(costUsd !== undefined && { costUsd }),
        told: { ...told, resumed: resumed !== undefined },
        steps,
        warnings,
      },
    },
  };
}

/** Of this answer alone, where the program tells sums over its session. */
function ownUsage({ usage, usageOfSession }: ProgramAnswer, resumed: ProgramSession | undefined): Usage | undefined {
  if (!usage || !usageOfSession || !resumed) return usage;
  const less = (name: 'input' | 'output' | 'reasoning' | 'cacheRead' | 'cacheWrite') =>
    Math.max(0, usage[name] - resumed.used[name]);
  return {
    input: less('input'),
    output: less('output'),
    reasoning: less('reasoning'),
    cacheRead: less('cacheRead'),
    cacheWrite: less('cacheWrite'),
  };
}
