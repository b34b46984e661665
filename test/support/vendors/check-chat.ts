import { isRecord } from '../../../src/core/json.ts';
import { checkEffort, checkFieldsAndModel, checkImageUrl, refusesSampling } from './check-open-ai.ts';
import { chatTools } from './check-tools.ts';
import type { FieldTable } from './field-check.ts';
import { openAiModel } from './open-ai-models.ts';
import { invalidValue, missingParameter, openAiRefusal, unsupportedParameter, wrongType } from './open-ai-refusal.ts';
import type { Refusal } from './refusal.ts';
import { chatPairs } from './tool-pairs.ts';
import { recordOf, stringOf } from './wire-values.ts';

const fields: FieldTable = {
  audio: ['object'],
  frequency_penalty: ['number'],
  function_call: ['string', 'object'],
  functions: ['array'],
  logit_bias: ['object'],
  logprobs: ['boolean'],
  max_completion_tokens: ['integer'],
  max_tokens: ['integer'],
  messages: ['array'],
  metadata: ['object'],
  modalities: ['strings'],
  model: ['string'],
  n: ['integer'],
  parallel_tool_calls: ['boolean'],
  prediction: ['object'],
  presence_penalty: ['number'],
  prompt_cache_key: ['string'],
  prompt_cache_options: ['object'],
  prompt_cache_retention: ['string'],
  reasoning_effort: ['string'],
  response_format: ['object'],
  safety_identifier: ['string'],
  seed: ['integer'],
  service_tier: ['string'],
  stop: ['string', 'strings'],
  store: ['boolean'],
  stream: ['boolean'],
  stream_options: ['object'],
  temperature: ['number'],
  tool_choice: ['string', 'object'],
  tools: ['array'],
  top_logprobs: ['integer'],
  top_p: ['number'],
  user: ['string'],
  verbosity: ['string'],
  web_search_options: ['object'],
};

const roles = ['developer', 'system', 'user', 'assistant', 'tool', 'function'];
const partTypes = ['text', 'image_url', 'input_audio', 'refusal', 'file'];
/** Of no use to a model that samples by itself. */
const samplingFields = ['top_p', 'presence_penalty', 'frequency_penalty', 'logprobs', 'top_logprobs', 'logit_bias'];

/** What POST /v1/chat/completions refuses. */
export function checkChat(body: Record<string, unknown>): Refusal | undefined {
  return (
    checkFieldsAndModel(body, fields, field => openAiRefusal(`Unrecognized request argument supplied: ${field}`)) ??
    checkReasoning(body) ??
    checkThinkingCalls(body) ??
    checkOutput(body) ??
    checkChatMessages(body.messages) ??
    chatTools(body)
  );
}

/** The newest models call functions here only while they do not think, which they do unless they are told not to. */
function checkThinkingCalls({ model, tools, reasoning_effort: effort }: Record<string, unknown>): Refusal | undefined {
  const name = stringOf(model);
  const calls = Array.isArray(tools) && tools.some(tool => recordOf(tool).type === 'function');
  if (!calls || effort === 'none' || !/^gpt-(?:5\.[4-9]|[6-9])/.test(name)) return undefined;
  return openAiRefusal(
    `Function tools with reasoning_effort are not supported for ${name} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
    { param: 'reasoning_effort' },
  );
}

function checkReasoning(body: Record<string, unknown>): Refusal | undefined {
  const model = openAiModel(stringOf(body.model));
  if (model.reasoning && body.max_tokens != null)
    return unsupportedParameter('max_tokens', " Use 'max_completion_tokens' instead.");
  const effort = body.reasoning_effort;
  const refused = checkEffort(body, effort, 'reasoning_effort');
  if (refused) return refused;
  if (!refusesSampling(model, effort)) return undefined;
  const temperature = body.temperature;
  // Chat takes a temperature that says what is so anyway.
  if (temperature != null && temperature !== 1)
    return openAiRefusal(
      `Unsupported value: 'temperature' does not support ${String(temperature)} with this model. Only the default (1) value is supported.`,
      { param: 'temperature', code: 'unsupported_value' },
    );
  const stray = samplingFields.find(field => body[field] != null);
  return stray ? unsupportedParameter(stray) : undefined;
}

function checkOutput(body: Record<string, unknown>): Refusal | undefined {
  for (const param of ['max_tokens', 'max_completion_tokens']) {
    const most = body[param];
    if (typeof most === 'number' && most < 1)
      return openAiRefusal(`Invalid '${param}': integer below minimum value. Expected a value >= 1, but got ${most}.`, {
        param,
        code: 'integer_below_min_value',
      });
  }
  if (body.max_tokens != null && body.max_completion_tokens != null)
    return openAiRefusal("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", {
      param: 'max_tokens',
    });
  if (body.response_format == null) return undefined;
  const formats = ['text', 'json_object', 'json_schema'];
  const { type, json_schema } = recordOf(body.response_format);
  if (!formats.includes(stringOf(type))) return invalidValue('response_format.type', String(type), formats);
  if (type === 'json_schema' && !stringOf(recordOf(json_schema).name))
    return missingParameter('response_format.json_schema.name');
  return undefined;
}

/** The messages of a chat, in OpenAI's words. */
export function checkChatMessages(messages: unknown): Refusal | undefined {
  if (!Array.isArray(messages)) return missingParameter('messages');
  if (messages.length === 0)
    return openAiRefusal("Invalid 'messages': empty array. Expected an array with minimum length 1.", {
      param: 'messages',
      code: 'empty_array',
    });
  for (const [index, message] of messages.entries()) {
    const refused = checkMessage(message, `messages[${index}]`);
    if (refused) return refused;
  }
  return chatPairs(messages);
}

function checkMessage(message: unknown, param: string): Refusal | undefined {
  if (!isRecord(message)) return wrongType(param, ['object'], message);
  if (!roles.includes(stringOf(message.role))) return invalidValue(`${param}.role`, String(message.role), roles);
  const { content } = message;
  if (typeof content === 'string') return undefined;
  // An assistant that only called tools said nothing.
  if (content == null && message.role === 'assistant' && message.tool_calls != null) return undefined;
  if (!Array.isArray(content)) return wrongType(`${param}.content`, ['string', 'array'], content);
  for (const [index, part] of content.entries()) {
    const at = `${param}.content[${index}]`;
    if (!isRecord(part)) return wrongType(at, ['object'], part);
    if (!partTypes.includes(stringOf(part.type))) return invalidValue(`${at}.type`, String(part.type), partTypes);
    if (part.type === 'text' && typeof part.text !== 'string') return wrongType(`${at}.text`, ['string'], part.text);
    const refused = part.type === 'image_url' ? checkImageUrl(part.image_url, `${at}.image_url`) : undefined;
    if (refused) return refused;
  }
  return undefined;
}
