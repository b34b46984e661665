import { AppError, cancelledError, isAppError } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import type { Clock, Mask, SharedState } from '../core/ports.ts';
import type { ToolReply, UserAnswer } from '../core/tool-host.ts';
import type { ModelService } from '../models/call/models.ts';
import type { Caller } from '../server/access/caller.ts';
import type { RunReply, RunsData } from '../server/dashboard/data.ts';
import type { Hosts } from './compose-caller-hosts.ts';

/** Answers to waiting runs as calls of the tool `agent`, with all that the caller may and may not do with that tool. */
export function composeRuns({ hosts, state }: { hosts: Hosts; state: SharedState }, caller: Caller): RunsData {
  const { owner, permissions, isAtHome = false } = caller;
  async function call(id: string, answers: Map<string, UserAnswer>, signal: AbortSignal): Promise<RunReply> {
    const { services, root } = await hosts.of({ permissions, free: isAtHome });
    const principal = { owner, root, client: 'dashboard' };
    const request = { name: 'agent', arguments: { run_id: id }, principal, answers, rateLimited: true };
    const reply = await services.host.call(request, signal);
    reply.delivered?.();
    return viewOf(reply);
  }
  return {
    async list() {
      const { listWaiting } = await import('../engine/modes/agent/waiting-runs.ts');
      return listWaiting(state, owner);
    },
    question: (id, signal) => call(id, new Map(), signal),
    answer: (id, key, decision) =>
      // A reader who leaves does not end the run.
      call(id, new Map([[key, { action: 'accept', content: { decision } }]]), new AbortController().signal),
  };
}

function viewOf({ isError, document, questions }: ToolReply): RunReply {
  const { error, content, continuation_id: thread } = document;
  const [asked] = questions ?? [];
  const schema = isRecord(asked?.schema.properties) ? asked.schema.properties.decision : undefined;
  const decisions = isRecord(schema) && Array.isArray(schema.enum) ? schema.enum.map(String) : [];
  return {
    isError,
    text: isRecord(error) ? [error.message, error.next].filter(Boolean).join(' ') : String(content ?? ''),
    ...(typeof thread === 'string' && { thread }),
    ...(asked && { question: { key: asked.key, message: asked.message, decisions } }),
  };
}

/** A vendor that says nothing for so long is not waited for. */
const tryMs = 20_000;

/** Asks a provider for its list of models, and says what came of it. */
export async function tryProvider(
  { models, mask, clock }: { models: Pick<ModelService, 'ping'>; mask: Mask; clock: Clock },
  id: string,
  signal: AbortSignal,
): Promise<string> {
  const startedAt = clock.monotonic();
  const silent = new AbortController();
  const stop = clock.after(tryMs, () => silent.abort(cancelledError(`It did not answer within ${tryMs / 1_000} s.`)));
  try {
    const { listed, remark } = await models.ping(id, AbortSignal.any([signal, silent.signal]));
    const found =
      listed === undefined ? 'ready; it has no list of models to ask for' : `answered with ${listed} models`;
    return `${found}, after ${Math.round(clock.monotonic() - startedAt)} ms${remark === undefined ? '' : `; ${remark}`}`;
  } catch (error) {
    if (!isAppError(error)) throw error;
    // Vendors may quote the key that they refuse.
    throw new AppError(error.kind, (await mask(error.message, 'dashboard')).text, error.details);
  } finally {
    stop();
  }
}
