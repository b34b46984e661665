import type { Message } from '../../domain/message.ts';
import { tailHeading } from '../../domain/message.ts';
import type { Candidate } from '../../domain/model.ts';
import type { Clock, Emit, Mask } from '../../domain/ports.ts';
import type { Compaction, Thread, Turn } from '../../domain/thread.ts';
import { estimateTokens, tokenFactor, tokensPerMessage } from '../../domain/tokens.ts';
import { collectFiles } from '../../files/collect.ts';
import type { Sandbox } from '../../files/sandbox.ts';
import { planBudget, windowClass } from '../../memory/budget.ts';
import { compact, outgrown, selectionTokens } from '../../memory/compaction.ts';
import { standingFiles } from '../../memory/seen-files.ts';
import type { Store } from '../../memory/store.ts';
import { blobsOf, renderTurn, renderTurns, type Selection, selectTurns, turnTokens } from '../../memory/transcript.ts';
import type { Gathered, Routed } from '../call-record.ts';
import { embedFiles, refuseIfNothingReadable } from './embed.ts';

export interface ComposeOptions {
  store: Store;
  sandbox: Sandbox;
  mask: Mask;
  clock: Clock;
  emit: Emit;
  newExchange(): Turn['exchange'];
  /** Home directory, for `~` in paths. */
  home: string;
  preamble: string;
  maxTurns: number;
  maxFileBytes: number;
  maxNamedFiles: number;
  /** Models on this machine get texts as they are. */
  isLocal(candidate: Candidate): boolean;
}

/** Builds the prompt: preamble, the thread's turns, the new turn with its files, and the tail. Never above the window. */
export async function gather(options: ComposeOptions, call: Routed): Promise<Gathered> {
  const { plan, request, signal, common, thread } = call;
  const [candidate] = call.candidates;
  const factor = tokenFactor(candidate.model.id);
  const mask: Mask = options.isLocal(candidate) ? async text => ({ text, found: {} }) : options.mask;
  const content = (await mask(plan.contribution, thread.id)).text;
  const draft = draftTurn(options, call, content);
  const tail: Message = {
    role: 'user',
    section: 'tail',
    parts: [{ type: 'text', text: `${tailHeading}\n${plan.tail}` }],
  };
  const reserved = reservedTokens(options.preamble, draft, plan.tail, factor);
  const budget = planBudget({ window: candidate.model.window, maxOutput: candidate.model.maxOutput, reserved });
  const history =
    common.context === 'thread' ? selectHistory(options, call, budget.history / factor) : { selection: { turns: [] } };
  const { selection } = history;
  const historyUsed = Math.ceil(selectionTokens(selection) * factor);

  const options_ = { root: request.principal.root, home: options.home, signal };
  const limits = { maxNamedFiles: options.maxNamedFiles, maxBytes: options.maxFileBytes };
  const collected = await collectFiles(options.sandbox, plan.files, { ...options_, ...limits });
  refuseIfNothingReadable(plan.files, collected.files.length, collected.skipped);
  const standing = standingFiles(selection);
  const stored = await options.store.blobs([...blobsOf(selection), ...[...standing.values()].map(file => file.base)]);
  const embedded = await embedFiles({
    named: collected.files,
    standing,
    bases: stored,
    sandbox: options.sandbox,
    maxBytes: options.maxFileBytes,
    budget: budget.rest - historyUsed,
    factor,
    mask,
    scope: thread.id,
    signal,
  });

  const all = new Map([...stored, ...embedded.blobs]);
  const previous = selection.turns.at(-1);
  const withFiles = { ...draft, files: embedded.records };
  const turn: Turn = { ...withFiles, tokens: turnTokens(withFiles, previous, all) };
  const past = renderTurns(selection, all);
  const now = renderNew(turn, previous, all);
  return {
    ...call,
    turn,
    messages: marked([systemMessage(options.preamble), ...past, now, tail], past.length),
    blobs: [...embedded.blobs].map(([sha256, text]) => ({ sha256, text })),
    compaction: history.compaction,
    files: { ...embedded.report, skipped: [...collected.skipped, ...embedded.report.skipped] },
    budget: { ...budget, historyUsed, filesUsed: embedded.tokens },
    history: {
      turns: thread.turns.length,
      sent: selection.turns.length,
      summarised: selection.compaction
        ? thread.turns.filter(old => old.seq <= (selection.compaction?.upToSeq ?? 0)).length
        : 0,
      trimmed: selection.compaction?.trims.length ?? 0,
    },
  };
}

function draftTurn(options: ComposeOptions, call: Routed, content: string): Turn {
  return {
    seq: call.thread.seq + 1,
    role: 'user',
    content,
    timestamp: options.clock.now(),
    exchange: options.newExchange(),
    toolName: call.tool.name,
    files: [],
    images: [],
    citations: [],
    tokens: 0,
  };
}

/** Preamble, question and tail, with room for the headers that name the answer before. */
function reservedTokens(preamble: string, draft: Turn, tail: string, factor: number): number {
  const question = renderTurn(draft, undefined, new Map());
  const texts = estimateTokens(preamble) + estimateTokens(question) + estimateTokens(tail) + 60;
  return Math.ceil((texts + 4 * tokensPerMessage) * factor);
}

/** The turns that go into the prompt; a thread that outgrew its share is compacted here, to be stored with the new turn. */
function selectHistory(
  { clock, emit, maxTurns }: ComposeOptions,
  { thread, candidates, reqId, progress }: Routed,
  historyBudget: number,
): { selection: Selection; compaction?: Compaction } {
  const window = windowClass(candidates[0].model.window);
  const selection = selectTurns(thread, window);
  if (!outgrown(selection, historyBudget, maxTurns)) return { selection };
  progress.stage('shortening the conversation to fit the model');
  // Too many turns is too many for every window; too long is so for this class and smaller ones.
  const forClass = selectionTokens(selection) > historyBudget ? window : Number.MAX_SAFE_INTEGER;
  const request = { thread, selection, windowClass: forClass, maxTurns, now: clock.now() };
  let compaction = compact({ ...request, historyBudget });
  let after = selectTurns(withCompaction(thread, compaction), window);
  for (let budget = historyBudget / 2; selectionTokens(after) > historyBudget && budget > 100; budget /= 2) {
    compaction = compact({ ...request, historyBudget: budget });
    after = selectTurns(withCompaction(thread, compaction), window);
  }
  emit({ type: 'thread.compacted', reqId, thread: thread.id, upToSeq: compaction.upToSeq, window: forClass });
  return { selection: after, compaction };
}

function withCompaction(thread: Thread, compaction: Compaction): Thread {
  return { ...thread, compactions: [...thread.compactions, compaction] };
}

function renderNew(turn: Turn, previous: Turn | undefined, blobs: Parameters<typeof renderTurn>[2]): Message {
  return { role: 'user', section: 'turn', parts: [{ type: 'text', text: renderTurn(turn, previous, blobs) }] };
}

function systemMessage(text: string): Message {
  return { role: 'system', section: 'preamble', parts: [{ type: 'text', text }] };
}

/** Marks the ends of what stays the same in the next call: the preamble, the turns so far, the new turn. */
function marked(messages: Message[], pastLength: number): Message[] {
  const ends = new Set([0, pastLength, pastLength + 1]);
  return messages.map((message, index) => (ends.has(index) ? { ...message, cacheMark: true } : message));
}
