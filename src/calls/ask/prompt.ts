import type { Sha256 } from '../../core/ids.ts';
import { type Message, tailHeading } from '../../core/message.ts';
import type { Turn } from '../../core/thread.ts';
import { estimateTokens, tokensPerMessage } from '../../core/tokens.ts';
import { embedFiles } from '../../engine/gather/embed.ts';
import { fitEvidence } from '../../engine/gather/evidence.ts';
import { type History, selectHistory } from '../../engine/gather/history.ts';
import type { CollectedImages } from '../../engine/gather/images.ts';
import { type Budget, planBudget } from '../../memory/budget.ts';
import { shownTexts, standingFiles } from '../../memory/seen-files.ts';
import { selectionTokens } from '../../threads/compaction.ts';
import { type Blobs, blobsOf, imageTokens, renderTurn, renderTurns, turnTokens } from '../../threads/transcript.ts';
import type { Collection } from '../../workspace/collect-files.ts';
import { questionWords } from '../../workspace/words.ts';
import type { Routed } from '../call-record.ts';
import type { Embedded } from './file-embedding.ts';
import type { ComposeOptions } from './options.ts';
import type { FoundFile } from './search-files.ts';

export interface PromptParts {
  /** The new turn without its files. */
  draft: Turn;
  images: CollectedImages;
  collected: Collection;
  /** What a search found. */
  found: readonly FoundFile[];
  /** Tokens that the model counts for one of our estimate. */
  factor: number;
}

export interface Prompt extends History {
  turn: Turn;
  messages: Message[];
  embedded: Embedded;
  budget: Budget;
  historyUsed: number;
  evidenceLeftOut: string[];
}

/** The part of what is left beside the question that a tool's own evidence may take. */
const evidenceShare = 0.6;

/** One prompt by estimate: reserved parts, then history up to its share, then files in what is left. */
export async function buildPrompt(options: ComposeOptions, call: Routed, parts: PromptParts): Promise<Prompt> {
  const { plan, thread, common, signal } = call;
  const { collected, factor } = parts;
  const { model } = call.candidates[0];
  const { window, maxOutput } = model;
  const tail = [plan.tail, plan.addendum?.(model)].filter(Boolean).join('\n\n');
  const preamble = plan.preamble ?? options.preamble;
  const plainly = planBudget({ window, maxOutput, reserved: reservedTokens(preamble, parts, tail) });
  const evidence = fitEvidence(plan.evidence ?? [], (plainly.rest * evidenceShare) / factor);
  const content = [parts.draft.content, evidence.text].filter(Boolean).join('\n\n');
  const draft = { ...parts.draft, content };
  const reserved = reservedTokens(preamble, { ...parts, draft }, tail);
  const budget = planBudget({ window, maxOutput, reserved });
  const now = options.clock.now();
  const history: History =
    common.context === 'thread'
      ? selectHistory({ thread, window, budget: budget.history / factor, maxTurns: options.maxTurns, now })
      : { selection: { turns: [] } };
  const { selection } = history;
  const historyUsed = Math.ceil(selectionTokens(selection) * factor);

  const standing = standingFiles(selection);
  const bases = [...standing.values()].map(file => file.base);
  const stored = await options.store.blobs([...new Set([...blobsOf(selection), ...bases])]);
  const embedded = await embedFiles({
    named: collected.files,
    found: parts.found,
    standing,
    shown: shownTexts(selection),
    bases: stored,
    sandbox: options.sandbox,
    pool: options.pool,
    condenser: options.condenser,
    words: questionWords(plan.contribution),
    root: call.request.principal.root,
    maxBytes: options.maxFileBytes,
    budget: budget.rest - historyUsed,
    factor,
    mask: options.mask,
    scope: thread.id,
    signal,
  });
  const blobs: Blobs = new Map<Sha256, string>([...stored, ...parts.images.blobs, ...embedded.blobs]);
  const previous = selection.turns.at(-1);
  const withFiles = { ...draft, files: embedded.records };
  const turn: Turn = { ...withFiles, tokens: turnTokens(withFiles, previous, blobs) };
  const { compaction, turns } = selection;
  const stable = renderTurns({ compaction, turns: [...turns, { ...turn, status: 'pending' }] }, blobs);
  const messages = [text('system', 'preamble', preamble), ...stable, text('user', 'tail', `${tailHeading}\n${tail}`)];
  return {
    ...history,
    turn,
    messages: marked(messages),
    embedded,
    budget,
    historyUsed,
    evidenceLeftOut: evidence.leftOut,
  };
}

/** Preamble, question and tail, with room for the headers that name the answer before. */
function reservedTokens(preamble: string, { draft, factor }: PromptParts, tail: string): number {
  const question = renderTurn(draft, undefined, new Map());
  const texts = estimateTokens(preamble) + estimateTokens(question) + estimateTokens(tail) + 60;
  return Math.ceil((texts + draft.images.length * imageTokens + 4 * tokensPerMessage) * factor);
}

function text(role: Message['role'], section: Message['section'], content: string): Message {
  return { role, section, parts: [{ type: 'text', text: content }] };
}

/** Marks the ends of what stays the same in the next call: the preamble, the turns so far, the new turn. */
function marked(messages: Message[]): Message[] {
  const ends = new Set([0, messages.length - 3, messages.length - 2]);
  return messages.map((message, index) => (ends.has(index) ? { ...message, cacheMark: true } : message));
}
