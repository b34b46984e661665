import { isRecord } from '../../../src/core/json.ts';
import { checkEffort, checkFieldsAndModel, checkImageUrl, refusesSampling } from './check-open-ai.ts';
import { responsesTools } from './check-tools.ts';
import type { FieldTable } from './field-check.ts';
import { openAiModel } from './open-ai-models.ts';
import { invalidValue, missingParameter, openAiRefusal, unsupportedParameter, wrongType } from './open-ai-refusal.ts';
import type { Refusal } from './refusal.ts';
import { responsesPairs } from './tool-pairs.ts';
import { checkSearchTool } from './web-search.ts';
import { numberOf, recordOf, recordsOf, stringOf } from './wire-values.ts';

const fields: FieldTable = {
  background: ['boolean'],
  // Codex sends it with every request.
  client_metadata: ['object'],
  context_management: ['array'],
  conversation: ['string', 'object'],
  include: ['strings'],
  input: ['string', 'array'],
  instructions: ['string'],
  max_output_tokens: ['integer'],
  max_tool_calls: ['integer'],
  metadata: ['object'],
  model: ['string'],
  parallel_tool_calls: ['boolean'],
  previous_response_id: ['string'],
  prompt: ['object'],
  prompt_cache_key: ['string'],
  prompt_cache_options: ['object'],
  prompt_cache_retention: ['string'],
  reasoning: ['object'],
  safety_identifier: ['string'],
  service_tier: ['string'],
  store: ['boolean'],
  stream: ['boolean'],
  stream_options: ['object'],
  temperature: ['number'],
  text: ['object'],
  tool_choice: ['string', 'object'],
  tools: ['array'],
  top_logprobs: ['integer'],
  top_p: ['number'],
  truncation: ['string'],
  user: ['string'],
};

const roles = ['assistant', 'system', 'developer', 'user'];
const itemTypes = ['message', 'reasoning', 'function_call', 'function_call_output', 'item_reference'];
const partTypes: Record<string, readonly string[]> = {
  assistant: ['output_text', 'refusal'],
  other: ['input_text', 'input_image', 'input_file'],
};

/** What POST /v1/responses refuses. */
export function checkResponses(body: Record<string, unknown>): Refusal | undefined {
  return (
    checkFieldsAndModel(body, fields, unknownParameter) ??
    checkLimits(body) ??
    checkInclude(body) ??
    checkReasoning(body) ??
    checkTools(body) ??
    checkText(recordOf(body.text)) ??
    checkInput(body.input) ??
    responsesTools(body)
  );
}

function unknownParameter(param: string): Refusal {
  return openAiRefusal(`Unknown parameter: '${param}'.`, { param, code: 'unknown_parameter' });
}

function checkLimits(body: Record<string, unknown>): Refusal | undefined {
  const most = numberOf(body.max_output_tokens);
  if (most !== undefined && most < 16)
    return openAiRefusal(
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${most} instead.`,
      { param: 'max_output_tokens', code: 'integer_below_min_value' },
    );
  const previous = stringOf(body.previous_response_id);
  if (previous)
    return openAiRefusal(`Previous response with id '${previous}' not found.`, {
      param: 'previous_response_id',
      code: 'previous_response_not_found',
    });
  return undefined;
}

const included = [
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'message.output_text.logprobs',
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
];

/** Sealed thoughts come from models that think, and from no others. */
function checkInclude(body: Record<string, unknown>): Refusal | undefined {
  const wanted = Array.isArray(body.include) ? body.include.map(stringOf) : [];
  const at = wanted.findIndex(name => !included.includes(name));
  if (at >= 0) return invalidValue(`include[${at}]`, wanted[at] ?? '', included);
  const model = openAiModel(stringOf(body.model));
  if (wanted.includes('reasoning.encrypted_content') && model.known && !model.reasoning)
    return openAiRefusal('Encrypted content is not supported with this model.', { param: 'include' });
  return undefined;
}

function checkReasoning(body: Record<string, unknown>): Refusal | undefined {
  const reasoning = recordOf(body.reasoning);
  const stray = Object.keys(reasoning).find(
    key => !['effort', 'summary', 'generate_summary', 'mode', 'context'].includes(key),
  );
  if (stray) return unknownParameter(`reasoning.${stray}`);
  const { effort, summary } = reasoning;
  const summaries = ['auto', 'concise', 'detailed'];
  if (summary != null && !summaries.includes(stringOf(summary)))
    return invalidValue('reasoning.summary', String(summary), summaries);
  const model = openAiModel(stringOf(body.model));
  const refused = checkEffort(body, effort, 'reasoning.effort');
  if (refused) return refused;
  if (!refusesSampling(model, effort)) return undefined;
  if (body.temperature != null) return unsupportedParameter('temperature');
  if (body.top_p != null) return unsupportedParameter('top_p');
  return undefined;
}

const searchFields = ['type', 'filters', 'search_context_size', 'user_location', 'external_web_access'];

/** The vendor's own search; models that can't use it and the effort `minimal` are refused. */
function checkTools(body: Record<string, unknown>): Refusal | undefined {
  for (const [index, tool] of recordsOf(body.tools).entries()) {
    if (tool.type !== 'web_search') continue;
    const model = stringOf(body.model);
    if (/^(?:gpt-3|gpt-4(?!o|\.)|gpt-4\.1-nano|o1|o3-mini)/.test(model))
      return openAiRefusal(`Hosted tool 'web_search' is not supported with ${model}.`, { param: 'tools' });
    if (recordOf(body.reasoning).effort === 'minimal')
      return openAiRefusal("The following tools cannot be used with reasoning.effort 'minimal': web_search.", {
        param: 'tools',
      });
    const stray = Object.keys(tool).find(key => !searchFields.includes(key));
    if (stray) return unknownParameter(`tools[${index}].${stray}`);
    const refused = checkSearchTool(tool, searchFields, message =>
      openAiRefusal(message, { param: `tools[${index}]` }),
    );
    if (refused) return refused;
  }
  const most = body.max_tool_calls;
  if (typeof most === 'number' && most < 1)
    return openAiRefusal("Invalid 'max_tool_calls': integer below minimum value.", { param: 'max_tool_calls' });
  return undefined;
}

function checkText(text: Record<string, unknown>): Refusal | undefined {
  const stray = Object.keys(text).find(key => key !== 'format' && key !== 'verbosity');
  if (stray) return unknownParameter(`text.${stray}`);
  const { verbosity } = text;
  const verbosities = ['low', 'medium', 'high'];
  if (verbosity != null && !verbosities.includes(stringOf(verbosity)))
    return invalidValue('text.verbosity', String(verbosity), verbosities);
  const formats = ['text', 'json_object', 'json_schema'];
  if (text.format == null) return undefined;
  const format = recordOf(text.format);
  if (!formats.includes(stringOf(format.type))) return invalidValue('text.format.type', String(format.type), formats);
  if (format.type === 'json_schema' && !stringOf(format.name)) return missingParameter('text.format.name');
  return undefined;
}

function checkInput(input: unknown): Refusal | undefined {
  if (input == null) return missingParameter('input');
  if (input === '' || (Array.isArray(input) && input.length === 0))
    return openAiRefusal("Invalid 'input': it is empty. Expected a text or at least one item.", {
      param: 'input',
      code: 'empty_array',
    });
  if (!Array.isArray(input)) return undefined;
  for (const [index, item] of input.entries()) {
    const refused = checkItem(item, `input[${index}]`);
    if (refused) return refused;
  }
  return responsesPairs(input);
}

function checkItem(item: unknown, param: string): Refusal | undefined {
  if (!isRecord(item)) return wrongType(param, ['object'], item);
  const type = item.type ?? 'message';
  if (typeof type !== 'string' || !itemTypes.includes(type))
    return invalidValue(`${param}.type`, String(type), itemTypes);
  // Nothing is kept between two requests, as for a client that sends `store: false`.
  if (type === 'item_reference')
    return openAiRefusal(`Item with id '${stringOf(item.id)}' not found.`, { param, status: 404 });
  if (type !== 'message') return undefined;
  const role = stringOf(item.role);
  if (!roles.includes(role)) return invalidValue(`${param}.role`, String(item.role), roles);
  if (typeof item.content === 'string') return undefined;
  if (!Array.isArray(item.content)) return wrongType(`${param}.content`, ['string', 'array'], item.content);
  for (const [index, part] of item.content.entries()) {
    const refused = checkPart(part, role, `${param}.content[${index}]`);
    if (refused) return refused;
  }
  return undefined;
}

function checkPart(part: unknown, role: string, param: string): Refusal | undefined {
  if (!isRecord(part)) return wrongType(param, ['object'], part);
  const allowed = partTypes[role === 'assistant' ? role : 'other'] ?? [];
  const type = stringOf(part.type);
  if (!allowed.includes(type)) return invalidValue(`${param}.type`, String(part.type), allowed);
  if (type === 'input_text' || type === 'output_text')
    return typeof part.text === 'string' ? undefined : wrongType(`${param}.text`, ['string'], part.text);
  if (type === 'input_image' && !stringOf(part.file_id)) return checkImageUrl(part.image_url, `${param}.image_url`);
  return undefined;
}
