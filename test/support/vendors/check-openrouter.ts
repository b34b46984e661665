import { isRecord } from '../../../src/core/json.ts';
import { cacheMarksOf, checkCacheMarks } from './cache-marks.ts';
import { checkImageUrl } from './check-open-ai.ts';
import { type FieldTable, firstFieldFault } from './field-check.ts';
import { openRouterRefusal, wrongType } from './openrouter-refusal.ts';
import type { Refusal } from './refusal.ts';
import { checkSearchTool } from './web-search.ts';
import { listOf, recordOf, recordsOf, stringOf } from './wire-values.ts';

const fields: FieldTable = {
  cache_control: ['object'],
  frequency_penalty: ['number'],
  logit_bias: ['object'],
  logprobs: ['boolean'],
  max_completion_tokens: ['integer'],
  max_tokens: ['integer'],
  messages: ['array'],
  metadata: ['object'],
  min_p: ['number'],
  model: ['string'],
  models: ['strings'],
  parallel_tool_calls: ['boolean'],
  plugins: ['array'],
  presence_penalty: ['number'],
  provider: ['object'],
  reasoning: ['object'],
  repetition_penalty: ['number'],
  response_format: ['object'],
  seed: ['integer'],
  session_id: ['string'],
  stop: ['string', 'strings'],
  stream: ['boolean'],
  stream_options: ['object'],
  temperature: ['number'],
  tool_choice: ['string', 'object'],
  tools: ['array'],
  top_k: ['integer'],
  top_p: ['number'],
  transforms: ['strings'],
  usage: ['object'],
  user: ['string'],
  web_search_options: ['object'],
};

const reasoningFields: FieldTable = {
  effort: ['string'],
  max_tokens: ['integer'],
  exclude: ['boolean'],
  enabled: ['boolean'],
};

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];
const roles = ['system', 'developer', 'user', 'assistant', 'tool'];
const partTypes = ['text', 'image_url', 'input_audio', 'file', 'video_url'];
const longestSession = 256;

/** What POST /api/v1/chat/completions refuses, by itself or because the vendor behind it does. */
export function checkOpenRouter(body: Record<string, unknown>): Refusal | undefined {
  const fault = firstFieldFault(body, fields, true);
  if (fault?.kind === 'unknown') return openRouterRefusal(`Unrecognized key: "${fault.field}"`);
  if (fault) return wrongType(fault.field, fault.expected);
  const model = stringOf(body.model);
  if (!/^~?[\w.-]+\/[\w.-]+(:[a-z]+)?$/.test(model)) return openRouterRefusal(`${model} is not a valid model ID`);
  if (stringOf(body.session_id).length > longestSession) return openRouterRefusal('session_id is too long');
  return checkReasoning(body) ?? checkTools(body.tools) ?? checkMessages(body.messages) ?? checkMarks(body);
}

const searchFields = [
  'allowed_domains',
  'engine',
  'excluded_domains',
  'max_characters',
  'max_results',
  'max_total_results',
  'search_context_size',
  'user_location',
];

function checkTools(tools: unknown): Refusal | undefined {
  for (const tool of recordsOf(tools)) {
    if (tool.type !== 'openrouter:web_search') continue;
    const stray = Object.keys(tool).find(key => key !== 'type' && key !== 'parameters');
    if (stray) return openRouterRefusal(`Unrecognized key: "tools[0].${stray}"`);
    const refused = checkSearchTool(recordOf(tool.parameters), searchFields, message => openRouterRefusal(message));
    if (refused) return refused;
  }
  return undefined;
}

function checkReasoning({ reasoning, max_tokens: most }: Record<string, unknown>): Refusal | undefined {
  if (reasoning == null) return undefined;
  const fault = firstFieldFault(recordOf(reasoning), reasoningFields, true);
  if (fault?.kind === 'unknown') return openRouterRefusal(`Unrecognized key: "reasoning.${fault.field}"`);
  if (fault) return wrongType(`reasoning.${fault.field}`, fault.expected);
  const { effort, max_tokens: budget } = recordOf(reasoning);
  if (effort != null && budget != null)
    return openRouterRefusal('Only one of "reasoning.effort" and "reasoning.max_tokens" can be specified');
  if (effort != null && !efforts.includes(stringOf(effort)))
    return openRouterRefusal(`Invalid option: expected one of ${efforts.join('|')} at "reasoning.effort"`);
  if (typeof budget === 'number' && (budget < 1_024 || (typeof most === 'number' && budget >= most)))
    return openRouterRefusal('max_tokens must be greater than the reasoning budget, which is at least 1024');
  return undefined;
}

function checkMessages(messages: unknown): Refusal | undefined {
  if (!Array.isArray(messages) || messages.length === 0) return openRouterRefusal('Input must have at least 1 token.');
  for (const [index, message] of messages.entries()) {
    const at = `messages[${index}]`;
    if (!isRecord(message)) return wrongType(at, ['object']);
    if (!roles.includes(stringOf(message.role))) return openRouterRefusal(`Invalid input at "${at}.role"`);
    const { content } = message;
    if (typeof content === 'string') continue;
    if (content === null && message.role === 'assistant' && message.tool_calls != null) continue;
    if (!Array.isArray(content)) return wrongType(`${at}.content`, ['string', 'array']);
    const refused = checkParts(content, `${at}.content`);
    if (refused) return refused;
  }
  return undefined;
}

function checkParts(parts: readonly unknown[], at: string): Refusal | undefined {
  for (const part of parts) {
    if (!isRecord(part) || !partTypes.includes(stringOf(part.type)))
      return openRouterRefusal(`Invalid input at "${at}"`);
    if (part.type === 'text' && stringOf(part.text).trim() === '')
      return openRouterRefusal('Provider returned error', 400, { raw: 'text content blocks must be non-empty' });
    if (part.type === 'image_url' && checkImageUrl(part.image_url, at))
      return openRouterRefusal(`Invalid image at "${at}"`);
  }
  return undefined;
}

function checkMarks(body: Record<string, unknown>): Refusal | undefined {
  const messages = listOf(body.messages).map(recordOf);
  const refused = checkCacheMarks(cacheMarksOf({ ...body, messages }));
  return (
    refused && openRouterRefusal('Provider returned error', 400, { provider_name: 'Anthropic', raw: refused.message })
  );
}
