import { inputError } from '../../core/errors.ts';
import type { RequestId } from '../../core/ids.ts';
import { isRecord } from '../../core/json.ts';
import { type Candidate, type Effort, efforts } from '../../core/model.ts';
import { estimateTokens } from '../../core/tokens.ts';
import type { CallKind, ToolRequest } from '../../core/tool-host.ts';
import type { Opinion } from '../../models/routing/classifier.ts';
import type { RouteExplanation } from '../../models/routing/explain.ts';
import type { TaskProfile } from '../../models/routing/requirements.ts';
import type { Category, ModelRequest } from '../../models/routing/roster.ts';
import { nearestNames } from '../arguments.ts';
import { fileFields } from '../fields.ts';
import type { ToolDefinition } from '../tool.ts';
import { fileTokens, isNamed } from './route-call.ts';
import type { CallServices } from './services.ts';

/** A call that is only thought of. */
export interface RouteQuestion extends Pick<TaskProfile, 'tool' | 'files' | 'images' | 'model'> {
  prompt: string;
  webSearch?: boolean;
  /** A small model may be asked where the rules leave the question open. */
  askModel: boolean;
}

export interface CallExplanation extends RouteExplanation, Pick<TaskProfile, 'tool' | 'estimatedTokens'> {
  category: Category;
  /** What a small model said, where it was asked. */
  classifier?: Opinion;
}

interface Explained {
  tools: readonly ToolDefinition[];
  explain(request: ModelRequest): Promise<RouteExplanation>;
}

/** Says who would answer a call, and why. No model is asked but, where that is wished, for the kind of the question. */
export function createExplainer(
  services: Pick<CallServices, 'classify' | 'efforts' | 'sandbox' | 'home' | 'maxFileBytes' | 'preamble' | 'mask'>,
  { tools, explain }: Explained,
) {
  const { classify, efforts } = services;
  return async (
    question: RouteQuestion,
    { root, owner, reqId, signal }: { root: string; owner: string; reqId: RequestId; signal: AbortSignal },
  ): Promise<CallExplanation> => {
    const tool = tools.find(({ name }) => name === question.tool);
    const asking = tool && askingMode(tool);
    if (!tool || !asking) throw noModelTool(question.tool, tools);
    const { category } = asking;
    // What a small model is shown of it must hold no secrets.
    const { text } = await services.mask(question.prompt.toWellFormed(), reqId);
    const estimatedTokens =
      estimateTokens(services.preamble) +
      estimateTokens(text) +
      (await fileTokens(services, question.files, { root, signal }));
    const task: TaskProfile = {
      tool: tool.name,
      text,
      files: question.files,
      images: question.images,
      estimatedTokens,
      useWebsearch: question.webSearch,
      ...(isNamed(question.model) && { model: question.model }),
    };
    const toolEffort = efforts[tool.name] ?? asking.effort;
    const request = { category, needs: { vision: question.images > 0 }, toolEffort, name: question.model, task };
    const first = await explain(request);
    const facts = { tool: tool.name, category, estimatedTokens };
    const isOpen = first.plan?.unclear && question.askModel;
    const opinion = isOpen ? await classify(text, { reqId, tool: tool.name, payer: { owner }, signal }) : undefined;
    const settled = opinion?.told ? await explain({ ...request, task: { ...task, told: opinion.told } }) : first;
    return { ...settled, ...facts, ...(opinion && { classifier: opinion }) };
  };
}

/** What a tool says of the model that it asks; undefined: it asks none. */
function askingMode({ mode }: ToolDefinition): { category: Category; effort: Effort } | undefined {
  const asks = 'requiredActions' in mode ? mode.expert !== undefined : 'category' in mode;
  return asks ? { category: 'extended_reasoning', effort: 'high', ...mode } : undefined;
}

function noModelTool(name: string, tools: readonly ToolDefinition[]): Error {
  const asking = tools.filter(askingMode).map(tool => tool.name);
  const near = nearestNames(name, asking);
  return inputError(`No tool that asks a model is named "${name}".`, {
    code: 'TOOL_NOT_FOUND',
    next: `Did you mean ${near.map(each => `"${each}"`).join(', ')}? Name one of ${asking.join(', ')}.`,
  });
}

/** Arguments that send the call to search. */
const searches = ['use_websearch', 'use_search'];

type Asked = Pick<Explained, 'tools'> & { candidates(request: ModelRequest): Promise<readonly Candidate[]> };

/** No more models of one call are looked at. */
const maxModels = 10;

/**
 * What a call is expected to be, for endpoints that have to say beforehand how long they wait. Never rejects: what can't be said is
 * found out by the call itself.
 */
export const createCallKind =
  ({ efforts }: Pick<CallServices, 'efforts'>, asked: Asked): ((request: ToolRequest) => Promise<CallKind>) =>
  async request => {
    const tool = asked.tools.find(({ name }) => name === request.name);
    if (!tool) return 'quick';
    if (tool.toolset === 'agent') return 'reasoning';
    try {
      if (await reasons(asked, efforts, tool, request.arguments)) return 'reasoning';
    } catch {
      // Nobody can answer it: the call will say so, and soon.
    }
    return tool.toolset === 'files' || bringsFiles(request.arguments) ? 'files' : 'quick';
  };

const bringsFiles = (args: Record<string, unknown>): boolean =>
  Object.entries(args).some(([field, value]) => {
    if (searches.includes(field)) return value === true || value === 'true';
    // Where the project is says nothing of what is read.
    if (field.startsWith('working_directory')) return false;
    return (
      fileFields.test(field) && (Array.isArray(value) ? value.length > 0 : typeof value === 'string' && value !== '')
    );
  });

async function reasons(
  { candidates }: Asked,
  own: CallServices['efforts'],
  tool: ToolDefinition,
  args: Record<string, unknown>,
): Promise<boolean> {
  const asking = askingMode(tool);
  if (!asking) return false;
  const effort = efforts.find(each => each === args.thinking_mode);
  const toolEffort = own[tool.name] ?? asking.effort;
  const named = namesIn(args);
  for (const name of named.length > 0 ? named : [undefined]) {
    const [first] = await candidates({ ...asking, needs: {}, effort, toolEffort, name });
    if (first?.model.reasoning && first.effort !== 'none') return true;
  }
  return false;
}

function namesIn({ model, models }: Record<string, unknown>): string[] {
  const list: unknown[] = Array.isArray(models) ? models : [];
  const all = [model, ...list.map(each => (isRecord(each) ? each.model : each))];
  return all.filter(name => typeof name === 'string' && isNamed(name)).slice(0, maxModels);
}
