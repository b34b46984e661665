import { isRecord } from '../../../src/core/json.ts';
import { type FieldTable, firstFieldFault } from './field-check.ts';
import { ollamaRefusal } from './ollama-refusal.ts';
import type { Refusal } from './refusal.ts';
import { listOf, recordOf, recordsOf, stringOf } from './wire-values.ts';

const fields: FieldTable = {
  model: ['string'],
  messages: ['array'],
  tools: ['array'],
  format: ['string', 'object'],
  options: ['object'],
  stream: ['boolean'],
  think: ['boolean', 'string'],
  keep_alive: ['string', 'number'],
  truncate: ['boolean'],
  shift: ['boolean'],
  logprobs: ['boolean'],
  top_logprobs: ['integer'],
};

const settings: FieldTable = {
  num_ctx: ['integer'],
  num_predict: ['integer'],
  num_keep: ['integer'],
  seed: ['integer'],
  top_k: ['integer'],
  temperature: ['number'],
  top_p: ['number'],
  min_p: ['number'],
  repeat_penalty: ['number'],
  presence_penalty: ['number'],
  frequency_penalty: ['number'],
  stop: ['strings'],
};

const levels = ['low', 'medium', 'high', 'max'];
const roles = ['system', 'user', 'assistant', 'tool'];
const messageFields = ['role', 'content', 'images', 'thinking', 'tool_calls', 'tool_name', 'tool_call_id'];

/**
 * What POST /api/chat refuses, and what it would pass over in silence: a field that it does not know is a setting that has
 * no effect. `capabilities` are the model's, where they are known.
 */
export function checkOllama(body: Record<string, unknown>, capabilities?: readonly string[]): Refusal | undefined {
  if (!stringOf(body.model)) return ollamaRefusal('model is required');
  return (
    checkTable(body, fields, 'field') ??
    checkTable(recordOf(body.options), settings, 'option') ??
    checkTools(body.tools) ??
    checkThink(body, capabilities) ??
    checkMessages(body.messages, capabilities)
  );
}

function checkTable(values: Record<string, unknown>, table: FieldTable, what: string): Refusal | undefined {
  const fault = firstFieldFault(values, table, false);
  if (fault?.kind === 'unknown') return ollamaRefusal(`invalid ${what} provided: "${fault.field}"`);
  return fault && ollamaRefusal(`${what} "${fault.field}" must be of type ${fault.expected.join(' or ')}`);
}

function checkThink({ model, think }: Record<string, unknown>, capabilities?: readonly string[]): Refusal | undefined {
  if (typeof think === 'string' && !levels.includes(think))
    return ollamaRefusal(`invalid think value: "${think}" (must be "high", "medium", "low", "max", true, or false)`);
  const wanted = think !== undefined && think !== false;
  if (wanted && capabilities && !capabilities.includes('thinking'))
    return ollamaRefusal(`"${String(model)}" does not support thinking`);
  return undefined;
}

function checkMessages(messages: unknown, capabilities?: readonly string[]): Refusal | undefined {
  // An empty conversation only loads the model and is answered without a word.
  if (!Array.isArray(messages) || messages.length === 0) return ollamaRefusal('messages must not be empty');
  for (const message of messages) {
    if (!isRecord(message)) return ollamaRefusal('json: cannot unmarshal value into Go struct field messages');
    const stray = Object.keys(message).find(key => !messageFields.includes(key));
    if (stray) return ollamaRefusal(`invalid field provided: "messages.${stray}"`);
    if (!roles.includes(stringOf(message.role))) return ollamaRefusal(`invalid role: ${String(message.role)}`);
    if (typeof message.content !== 'string')
      return ollamaRefusal('json: cannot unmarshal value into Go struct field messages.content of type string');
    const refused = checkImages(message.images, capabilities) ?? checkCalls(message);
    if (refused) return refused;
  }
  return undefined;
}

/** Arguments are an object there, never a text. */
function checkCalls({ role, tool_calls, tool_name }: Record<string, unknown>): Refusal | undefined {
  for (const call of recordsOf(tool_calls)) {
    const { name, arguments: args } = recordOf(call.function);
    if (!stringOf(name) || !isRecord(args))
      return ollamaRefusal('json: cannot unmarshal value into Go struct field messages.tool_calls.function.arguments');
  }
  return role === 'tool' && !stringOf(tool_name) ? ollamaRefusal('tool messages need tool_name') : undefined;
}

function checkTools(tools: unknown): Refusal | undefined {
  const sound = recordsOf(tools).every(({ type, function: named }) => {
    const { name, parameters } = recordOf(named);
    return type === 'function' && stringOf(name) !== '' && recordOf(parameters).type === 'object';
  });
  return sound ? undefined : ollamaRefusal('json: cannot unmarshal value into Go struct field tools');
}

function checkImages(images: unknown, capabilities?: readonly string[]): Refusal | undefined {
  if (images === undefined) return undefined;
  const sound = Array.isArray(images) && listOf(images).every(data => /^[A-Za-z0-9+/]+={0,2}$/.test(stringOf(data)));
  if (!sound) return ollamaRefusal('illegal base64 data at input byte 0');
  if (capabilities && !capabilities.includes('vision'))
    return ollamaRefusal('this model is missing data required for image input', 500);
  return undefined;
}
