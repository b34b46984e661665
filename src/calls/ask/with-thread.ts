import { jsonOf } from '../../core/json.ts';
import type { Mask } from '../../core/ports.ts';
import { safeCut } from '../../core/text.ts';
import { damagedTool, lostBeginning, type Thread } from '../../core/thread.ts';
import type { ParsedCall, ThreadedCall } from '../call-record.ts';
import { maskArguments } from './redaction.ts';
import type { CallServices } from './services.ts';

type ThreadServices = Pick<CallServices, 'threads' | 'mask'>;

/** Executes calls with their threads, to each of which nobody else writes meanwhile. */
export const onThread =
  <Definition, Services extends ThreadServices, Result>(
    execute: (definition: Definition, call: ThreadedCall, services: Services) => Promise<Result>,
  ) =>
  (definition: Definition, call: ParsedCall, services: Services): Promise<Result> =>
    withThread(services, call, threaded => execute(definition, threaded, services));

/** Runs `work` with the thread of a call, locked where it is continued, once secrets in the arguments are masked. */
export async function withThread<Result>(
  { threads, mask }: ThreadServices,
  parsed: ParsedCall,
  work: (call: ThreadedCall) => Promise<Result>,
): Promise<Result> {
  const { owner, root } = parsed.request.principal;
  const scope = { owner, workspace: root };
  // Observers of the call get the thread's ID before anything is stored.
  const announced = (thread: Thread): Thread => {
    parsed.request.onThread?.(thread);
    return thread;
  };
  if (parsed.common.continuationId === undefined) {
    const blank = announced(threads.start(scope, parsed.tool.name));
    const call = await maskCall(mask, parsed, blank.id);
    const kept = Object.entries(call.args).filter(([name]) => !passing.has(name));
    const title = titleOf(requestText(call.args) || call.tool.title);
    return work({ ...call, thread: { ...blank, title, initialContext: jsonOf(Object.fromEntries(kept)) } });
  }
  const found = await threads.findHead(parsed.common.continuationId, scope);
  const call = await maskCall(mask, parsed, found.id);
  const onWait = () => call.progress.stage('waiting for the thread');
  return threads.exclusively(found.id, { signal: call.signal, onWait }, async () => {
    const thread = announced(await threads.refresh(found));
    return work({ ...call, warnings: [...call.warnings, ...lossWarnings(thread)], thread });
  });
}

/** What a continued thread lost, to damage of its file too: the caller may know it, and the model does not. */
function lossWarnings(thread: Thread): string[] {
  const lost = thread.turns.filter(({ toolName }) => toolName === damagedTool).map(({ seq }) => seq);
  const damage = lost.length === 0 ? [] : [`Damaged on the disk and lost: turn ${lost.join(', ')} of this thread.`];
  return [...damage, lostBeginning(thread) ?? []].flat();
}

/** A call whose arguments and warnings have their secrets masked, keyed by `scope`: its thread, or the call itself. */
export async function maskCall(mask: Mask, parsed: ParsedCall, scope: string): Promise<ParsedCall> {
  const args = await maskArguments(mask, parsed.args, scope);
  const warnings = await Promise.all(parsed.warnings.map(async warning => (await mask(warning, scope)).text));
  // The model's name goes to a vendor and into the store like any other text.
  const model = typeof args.model === 'string' ? args.model : undefined;
  return { ...parsed, args, warnings, common: { ...parsed.common, model } };
}

/** What the caller asks, in its own words; empty where the tool asks nothing. */
export const requestText = ({ prompt, step, task }: Record<string, unknown>): string =>
  String(prompt || step || task || '');

/** The first 80 characters of what is asked, on one line. */
export function titleOf(text: string): string {
  const line = text.slice(0, 400).replace(/\s+/g, ' ').trim();
  return line.length <= 80 ? line : `${safeCut(line, 79)}…`;
}

/** What a thread does not keep of the arguments that it began with. */
const passing = new Set(['model', 'temperature', 'thinking_mode', 'continuation_id', 'images']);
