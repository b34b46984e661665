import { anthropicRefusal } from './anthropic-refusal.ts';
import { cacheMarksOf, checkCacheMarks } from './cache-marks.ts';
import { checkContent, checkSystem } from './check-content.ts';
import { messagesTools } from './check-tools.ts';
import { type ClaudeModel, claudeModel } from './claude-models.ts';
import { type FieldTable, type FieldType, firstFieldFault } from './field-check.ts';
import type { Refusal } from './refusal.ts';
import { checkBinding } from './thought-binding.ts';
import { messagesPairs } from './tool-pairs.ts';
import { checkSearchTool } from './web-search.ts';
import { listOf, numberOf, recordOf, recordsOf, stringOf } from './wire-values.ts';

const fields: FieldTable = {
  cache_control: ['object'],
  container: ['string', 'object'],
  inference_geo: ['string'],
  max_tokens: ['integer'],
  messages: ['array'],
  metadata: ['object'],
  model: ['string'],
  output_config: ['object'],
  service_tier: ['string'],
  stop_sequences: ['strings'],
  stream: ['boolean'],
  system: ['string', 'array'],
  temperature: ['number'],
  thinking: ['object'],
  tool_choice: ['object'],
  tools: ['array'],
  top_k: ['integer'],
  top_p: ['number'],
};
/** Known only to a request that names a beta in its `anthropic-beta` header. */
const betaFields: FieldTable = {
  context_management: ['object'],
  fallbacks: ['any'],
  mcp_servers: ['array'],
  safeguards: ['array'],
  speed: ['string'],
  thread: ['object'],
};

const typeWords: Record<FieldType, string> = {
  string: 'string',
  integer: 'integer',
  number: 'number',
  boolean: 'boolean',
  array: 'list',
  strings: 'list of strings',
  object: 'dictionary',
  any: 'value',
};

/** What POST /v1/messages refuses. */
export function checkMessages(body: Record<string, unknown>, beta: boolean): Refusal | undefined {
  const model = claudeModel(stringOf(body.model));
  return (
    checkFields(body, beta) ??
    checkMaxTokens(body, model) ??
    checkThinking(body, model, beta) ??
    checkBinding(body) ??
    checkMetadata(recordOf(body.metadata)) ??
    checkSampling(body, model) ??
    checkEffort(recordOf(body.output_config), model) ??
    checkTools(body) ??
    checkSystem(body.system) ??
    checkTurns(listOf(body.messages), model) ??
    messagesTools(body) ??
    checkCacheMarks(cacheMarksOf(body))
  );
}

function checkFields(body: Record<string, unknown>, beta: boolean): Refusal | undefined {
  const fault = firstFieldFault(body, beta ? { ...fields, ...betaFields } : fields, false);
  if (fault?.kind === 'unknown') return anthropicRefusal(`${fault.field}: Extra inputs are not permitted`);
  if (fault) {
    const wanted = fault.expected.map(type => typeWords[type]).join(' or ');
    return anthropicRefusal(`${fault.field}: Input should be a valid ${wanted}`);
  }
  const missing = ['model', 'max_tokens', 'messages'].find(field => body[field] === undefined);
  return missing ? anthropicRefusal(`${missing}: Field required`) : undefined;
}

function checkMaxTokens(body: Record<string, unknown>, model: ClaudeModel): Refusal | undefined {
  const most = numberOf(body.max_tokens) ?? 0;
  if (most < 1) return anthropicRefusal('max_tokens: Input should be greater than or equal to 1');
  if (most > model.maxOutput)
    return anthropicRefusal(
      `max_tokens: ${most} > ${model.maxOutput}, which is the maximum allowed number of output tokens for ${stringOf(body.model)}`,
    );
  return undefined;
}

function checkThinking(body: Record<string, unknown>, model: ClaudeModel, beta: boolean): Refusal | undefined {
  if (body.thinking === undefined) return undefined;
  const { type, budget_tokens, display, block_binding } = recordOf(body.thinking);
  if (block_binding !== undefined && !beta)
    return anthropicRefusal('thinking.block_binding: Extra inputs are not permitted');
  if (type === undefined && block_binding !== undefined) return undefined;
  if (display !== undefined && !['summarized', 'omitted'].includes(stringOf(display)))
    return anthropicRefusal("thinking.display: Input should be 'summarized' or 'omitted'");
  if (type === 'disabled')
    return model.alwaysThinks
      ? anthropicRefusal(
          '"thinking.type.disabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.',
        )
      : undefined;
  if (type === 'adaptive')
    return model.adaptive ? undefined : anthropicRefusal('adaptive thinking is not supported on this model');
  if (type !== 'enabled') return anthropicRefusal("thinking.type: Input should be 'adaptive', 'disabled' or 'enabled'");
  if (!model.budget)
    return anthropicRefusal(
      '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort".',
    );
  const budget = numberOf(budget_tokens);
  if (budget === undefined) return anthropicRefusal('thinking.enabled.budget_tokens: Field required');
  if (budget < 1_024)
    return anthropicRefusal('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024');
  if (budget >= (numberOf(body.max_tokens) ?? 0))
    return anthropicRefusal('`max_tokens` must be greater than `thinking.budget_tokens`.');
  return undefined;
}

function checkMetadata(metadata: Record<string, unknown>): Refusal | undefined {
  const stray = Object.keys(metadata).find(key => key !== 'user_id');
  if (stray) return anthropicRefusal(`metadata.${stray}: Extra inputs are not permitted`);
  return stringOf(metadata.user_id).length > 256
    ? anthropicRefusal('metadata.user_id: String should have at most 256 characters')
    : undefined;
}

function checkSampling(body: Record<string, unknown>, model: ClaudeModel): Refusal | undefined {
  const { temperature, top_p, top_k } = body;
  const stray = ['temperature', 'top_p', 'top_k'].find(field => body[field] !== undefined);
  if (stray && !model.sampling) return anthropicRefusal(`\`${stray}\` is deprecated for this model.`);
  if (typeof temperature === 'number' && (temperature < 0 || temperature > 1))
    return anthropicRefusal('temperature: range: 0..1');
  if (temperature !== undefined && top_p !== undefined && !model.bothSamplings)
    return anthropicRefusal('`temperature` and `top_p` cannot both be specified for this model. Please use only one.');
  if (!thinks(body)) return undefined;
  if (temperature !== undefined && temperature !== 1)
    return anthropicRefusal('`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.');
  if (top_k !== undefined) return anthropicRefusal('`top_k` must be unset when thinking is enabled.');
  if (typeof top_p === 'number' && top_p < 0.95)
    return anthropicRefusal('`top_p` must be at least 0.95 or unset when thinking is enabled.');
  return undefined;
}

export function thinks(body: Record<string, unknown>): boolean {
  return ['enabled', 'adaptive'].includes(stringOf(recordOf(body.thinking).type));
}

function checkEffort(config: Record<string, unknown>, model: ClaudeModel): Refusal | undefined {
  const stray = Object.keys(config).find(key => !['effort', 'format', 'task_budget'].includes(key));
  if (stray) return anthropicRefusal(`output_config.${stray}: Extra inputs are not permitted`);
  if (config.effort === undefined) return undefined;
  if (model.efforts.length === 0) return anthropicRefusal('This model does not support the effort parameter.');
  if (model.efforts.includes(stringOf(config.effort))) return undefined;
  return anthropicRefusal(
    `output_config.effort: Input should be one of ${model.efforts.map(effort => `'${effort}'`).join(', ')}`,
  );
}

const searchFields = [
  'type',
  'name',
  'max_uses',
  'allowed_domains',
  'blocked_domains',
  'user_location',
  'cache_control',
];

/** The vendor's own search, in the version that needs nothing else. */
function checkTools(body: Record<string, unknown>): Refusal | undefined {
  for (const tool of recordsOf(body.tools)) {
    if (!stringOf(tool.type).startsWith('web_search_')) continue;
    if (tool.type !== 'web_search_20250305')
      return anthropicRefusal('tools.0: this version of web_search wants code execution beside it');
    if (tool.name !== 'web_search') return anthropicRefusal("tools.0.name: Input should be 'web_search'");
    if (/claude-(?:2|3-(?:opus|sonnet|haiku)-)/.test(stringOf(body.model)))
      return anthropicRefusal(`'${stringOf(body.model)}' does not support web search`);
    const refused = checkSearchTool(tool, searchFields, message => anthropicRefusal(message));
    if (refused) return refused;
  }
  return undefined;
}

function checkTurns(turns: unknown[], model: ClaudeModel): Refusal | undefined {
  if (turns.length === 0) return anthropicRefusal('messages: at least one message is required');
  const roles = turns.map(turn => stringOf(recordOf(turn).role));
  for (const [index, turn] of turns.entries()) {
    const refused = checkRole(roles, index, model) ?? checkContent(recordOf(turn), index, index === turns.length - 1);
    if (refused) return refused;
  }
  const unpaired = messagesPairs(turns);
  if (unpaired) return unpaired;
  if (roles.at(-1) === 'assistant' && !model.prefill)
    return anthropicRefusal(
      'This model does not support assistant message prefill. The conversation must end with a user message.',
    );
  return undefined;
}

function checkRole(roles: readonly string[], index: number, model: ClaudeModel): Refusal | undefined {
  const role = roles[index];
  if (role === 'user') return undefined;
  if (role === 'assistant')
    return index === 0 ? anthropicRefusal('messages: first message must use the "user" role') : undefined;
  if (role !== 'system')
    return anthropicRefusal(`messages.${index}.role: Input should be 'user', 'assistant' or 'system'`);
  if (!model.systemBetween) return anthropicRefusal(`messages.${index}: role 'system' is not supported on this model`);
  if (index === 0) return anthropicRefusal('messages: first message must use the "user" role');
  if (roles[index - 1] === 'assistant')
    return anthropicRefusal(`messages.${index}: role 'system' must follow a 'user' message`);
  const next = roles[index + 1];
  if (next !== undefined && next !== 'assistant' && next !== 'system')
    return anthropicRefusal(`messages.${index}: role 'system' must precede an 'assistant' message or end the array`);
  return undefined;
}
