import { inputError } from '../../core/errors.ts';
import type { RequestId } from '../../core/ids.ts';
import type { Effort } from '../../core/model.ts';
import { estimateTokens } from '../../core/tokens.ts';
import { fileTokens, isNamed } from '../../engine/routing/route-task.ts';
import type { RouteTask } from '../../models/manager/route-plan.ts';
import type { Classify, Opinion } from '../../models/routing/classifier.ts';
import type { RouteExplanation } from '../../models/routing/explain.ts';
import type { Category, ModelRequest } from '../../models/routing/roster.ts';
import { nearestNames } from '../arguments.ts';
import type { ToolDefinition } from '../tool.ts';
import type { ComposeOptions } from './options.ts';

/** A call that is only thought of. */
export interface RouteQuestion {
  tool: string;
  prompt: string;
  /** Files and directories; relative ones start at the root. */
  files: readonly string[];
  images: number;
  model?: string;
  webSearch?: boolean;
  /** A small model may be asked where the rules leave the question open. */
  askModel: boolean;
}

export interface CallExplanation extends RouteExplanation {
  tool: string;
  category: Category;
  estimatedTokens: number;
  /** What a small model said, where it was asked. */
  classifier?: Opinion;
}

export interface ExplainerParts {
  tools: readonly ToolDefinition[];
  explain(request: ModelRequest): Promise<RouteExplanation>;
  classify: Classify;
  compose: Pick<ComposeOptions, 'sandbox' | 'home' | 'maxFileBytes' | 'preamble' | 'mask'>;
  efforts: Readonly<Record<string, Effort>>;
}

export type ExplainCall = (
  question: RouteQuestion,
  place: { root: string; owner: string; reqId: RequestId; signal: AbortSignal },
) => Promise<CallExplanation>;

/** Says who would answer a call, and why. No model is asked but, where that is wished, for the kind of the question. */
export function createExplainer({ tools, explain, classify, compose, efforts }: ExplainerParts): ExplainCall {
  return async (question, { root, owner, reqId, signal }) => {
    const tool = tools.find(({ name }) => name === question.tool);
    const asking = tool && askingShape(tool);
    if (!tool || !asking) throw noModelTool(question.tool, tools);
    const { category = 'extended_reasoning' } = asking;
    // What a small model is shown of it must hold no secrets.
    const { text } = await compose.mask(question.prompt.toWellFormed(), reqId);
    const named = isNamed(question.model) ? { model: question.model } : {};
    const estimatedTokens =
      estimateTokens(compose.preamble) +
      estimateTokens(text) +
      (await fileTokens(compose, question.files, { root, signal }));
    const task: RouteTask = {
      tool: tool.name,
      text,
      files: question.files,
      images: question.images,
      estimatedTokens,
      ...(question.webSearch !== undefined && { useWebsearch: question.webSearch }),
      ...named,
    };
    const effort = efforts[tool.name] ?? asking.effort ?? 'high';
    const request = { category, needs: { vision: question.images > 0 }, effort, name: question.model, task };
    const first = await explain(request);
    const facts = { tool: tool.name, category, estimatedTokens };
    if (!first.plan?.unclear || !question.askModel) return { ...first, ...facts };
    const opinion = await classify(text, { reqId, tool: tool.name, payer: { owner }, signal });
    if (!opinion) return { ...first, ...facts };
    const { told } = opinion;
    const settled = told ? await explain({ ...request, task: { ...task, told } }) : first;
    return { ...settled, ...facts, classifier: opinion };
  };
}

/** What a tool says of the model that it asks; undefined: it asks none. */
export function askingShape({ shape }: ToolDefinition): { category?: Category; effort?: Effort } | undefined {
  if (shape.kind === 'workflow') return shape.expert && shape;
  return 'category' in shape ? shape : undefined;
}

function noModelTool(name: string, tools: readonly ToolDefinition[]): Error {
  const asking = tools.filter(askingShape).map(tool => tool.name);
  const near = nearestNames(name, asking);
  return inputError(`No tool that asks a model is named "${name}".`, {
    code: 'TOOL_NOT_FOUND',
    next: `Did you mean ${near.map(each => `"${each}"`).join(', ')}? Name one of ${asking.join(', ')}.`,
  });
}
