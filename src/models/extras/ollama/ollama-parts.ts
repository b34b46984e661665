import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, SharedV4Warning } from '@ai-sdk/provider';
import { isRecord } from '../../../core/json.ts';
import { badUpstream } from '../../resilience/errors.ts';
import { ollamaStreamFailure } from './ollama-failure.ts';

type Controller = TransformStreamDefaultController<LanguageModelV4StreamPart>;
type Line = Record<string, unknown>;

/** The lines of a chat answer → the parts of the AI SDK's stream. Without its last line an answer is not whole. */
export function ollamaParts(warnings: SharedV4Warning[]): TransformStream<Line, LanguageModelV4StreamPart> {
  const blocks = openBlocks();
  let done = false;
  let calls = 0;
  return new TransformStream({
    start: controller => controller.enqueue({ type: 'stream-start', warnings }),
    transform(line, controller) {
      if (done) return;
      if (line.error !== undefined) {
        throw ollamaStreamFailure(typeof line.error === 'string' ? line.error : JSON.stringify(line.error));
      }
      const { thinking, content, tool_calls: called } = isRecord(line.message) ? line.message : {};
      blocks.add('reasoning', thinking, controller);
      blocks.add('text', content, controller);
      for (const call of Array.isArray(called) ? called : []) {
        blocks.close(controller);
        controller.enqueue(callOf(call, calls++));
      }
      if (line.done !== true) return;
      done = true;
      blocks.close(controller);
      controller.enqueue({ type: 'finish', finishReason: finishOf(line.done_reason, calls > 0), usage: usageOf(line) });
    },
    flush() {
      if (!done) throw badUpstream('The stream ended before the answer was finished.');
    },
  });
}

type Kind = 'text' | 'reasoning';

/** Keeps track of which block is open: thoughts and text may alternate. */
function openBlocks() {
  let open: { kind: Kind; id: string } | undefined;
  let count = 0;
  const close = (controller: Controller) => {
    if (open) controller.enqueue({ type: `${open.kind}-end`, id: open.id });
    open = undefined;
  };
  return {
    close,
    add(kind: Kind, delta: unknown, controller: Controller) {
      if (typeof delta !== 'string' || delta === '') return;
      if (open?.kind !== kind) {
        close(controller);
        open = { kind, id: String(count++) };
        controller.enqueue({ type: `${kind}-start`, id: open.id });
      }
      controller.enqueue({ type: `${kind}-delta`, id: open.id, delta });
    },
  };
}

/** Older servers give calls no ids. */
function callOf(call: unknown, number: number): LanguageModelV4StreamPart {
  const { id, function: named } = isRecord(call) ? call : {};
  const { name, arguments: input } = isRecord(named) ? named : {};
  return {
    type: 'tool-call',
    toolCallId: typeof id === 'string' && id !== '' ? id : `call_${number}`,
    toolName: typeof name === 'string' ? name : '',
    input: typeof input === 'string' ? input : JSON.stringify(input ?? {}),
  };
}

/** The server has no word of its own for an answer that calls. */
function finishOf(reason: unknown, calls: boolean): LanguageModelV4FinishReason {
  const raw = typeof reason === 'string' ? reason : undefined;
  // Servers from before there was a reason end with `done` alone.
  if (raw === 'stop' || raw === undefined) return { unified: calls ? 'tool-calls' : 'stop', raw };
  return { unified: raw === 'length' ? 'length' : 'other', raw };
}

/** Both counts or none: an input of 0 would be taken for a free one. */
function usageOf({ prompt_eval_count: input, eval_count: output }: Line) {
  const told = typeof input === 'number' && typeof output === 'number';
  return {
    inputTokens: { total: told ? input : undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: told ? output : undefined, text: undefined, reasoning: undefined },
  };
}
