import { anthropicRefusal } from './anthropic-refusal.ts';
import { badField, googleRefusal, unknownField } from './google-refusal.ts';
import { openAiRefusal } from './open-ai-refusal.ts';
import type { Refusal } from './refusal.ts';
import { recordOf, recordsOf, stringOf } from './wire-values.ts';

type Value = Record<string, unknown>;

const functionName = /^[a-zA-Z0-9_-]{1,64}$/;
const ids = /^[a-zA-Z0-9_-]+$/;

/** Declarations and calls of POST /chat/completions; `builtin`: the vendor has functions of its own, named `$…`. */
export function chatTools(body: Value, builtin = false): Refusal | undefined {
  const tools = recordsOf(body.tools);
  if (body.tools != null && tools.length === 0)
    return openAiRefusal("Invalid 'tools': empty array. Expected an array with minimum length 1.", { param: 'tools' });
  for (const [index, tool] of tools.entries()) {
    if (tool.type !== 'function') continue;
    const refused = declaration(recordOf(tool.function), `tools[${index}].function`, 'parameters');
    if (refused) return refused;
  }
  if (body.tool_choice != null && tools.length === 0)
    return openAiRefusal("'tool_choice' is only allowed when 'tools' are specified.", { param: 'tool_choice' });
  for (const [index, message] of recordsOf(body.messages).entries()) {
    for (const call of recordsOf(message.tool_calls)) {
      const at = `messages[${index}].tool_calls`;
      const { name, arguments: text } = recordOf(call.function);
      if (builtin && stringOf(name).startsWith('$')) continue;
      if (call.type !== 'function' || typeof text !== 'string')
        return openAiRefusal(`Missing required parameter: '${at}[0].function.arguments'.`, { param: at });
      if (!functionName.test(stringOf(name))) return badName(`${at}[0].function.name`, name);
      if (stringOf(call.id) === '' || stringOf(call.id).length > 64)
        return openAiRefusal(`Invalid '${at}[0].id': expected 1 to 64 characters.`, { param: at });
    }
  }
  return undefined;
}

/** The same of POST /responses. */
export function responsesTools(body: Value): Refusal | undefined {
  for (const [index, tool] of recordsOf(body.tools).entries()) {
    if (tool.type !== 'function') continue;
    const refused = declaration(tool, `tools[${index}]`, 'parameters');
    if (refused) return refused;
  }
  const calls = new Set<string>();
  for (const [index, item] of recordsOf(body.input).entries()) {
    const at = `input[${index}]`;
    if (item.type === 'function_call') {
      if (!functionName.test(stringOf(item.name))) return badName(`${at}.name`, item.name);
      if (typeof item.arguments !== 'string')
        return openAiRefusal(`Missing required parameter: '${at}.arguments'.`, { param: `${at}.arguments` });
      const id = stringOf(item.call_id);
      if (id === '' || id.length > 64)
        return openAiRefusal(`Invalid '${at}.call_id': expected 1 to 64 characters.`, { param: `${at}.call_id` });
      if (calls.has(id)) return openAiRefusal(`Duplicate call_id '${id}' in input.`, { param: at });
      calls.add(id);
    }
    if (item.type === 'function_call_output' && typeof item.output !== 'string' && !Array.isArray(item.output))
      return openAiRefusal(`Missing required parameter: '${at}.output'.`, { param: `${at}.output` });
    // Sealed thoughts are this vendor's own, and go before what they led to.
    if (item.type === 'reasoning' && typeof item.encrypted_content !== 'string')
      return openAiRefusal(`Item '${stringOf(item.id)}' of type 'reasoning' was provided without its content.`);
  }
  return undefined;
}

function declaration(tool: Value, at: string, schemaKey: string): Refusal | undefined {
  if (!functionName.test(stringOf(tool.name))) return badName(`${at}.name`, tool.name);
  const schema = recordOf(tool[schemaKey]);
  if (schema.type === 'object') return undefined;
  return openAiRefusal(
    `Invalid schema for function '${stringOf(tool.name)}': schema must be a JSON Schema of 'type: "object"', got 'type: "${String(schema.type)}"'.`,
    { param: `${at}.${schemaKey}`, code: 'invalid_function_parameters' },
  );
}

function badName(param: string, name: unknown): Refusal {
  return openAiRefusal(
    `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$', got ${JSON.stringify(name)}.`,
    { param, code: 'invalid_value' },
  );
}

/** Declarations and calls of POST /v1/messages. */
export function messagesTools(body: Value): Refusal | undefined {
  const tools = recordsOf(body.tools);
  const own = tools.filter(({ type }) => type === undefined || type === 'custom');
  for (const [index, tool] of own.entries()) {
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(stringOf(tool.name)))
      return anthropicRefusal(`tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
    if (recordOf(tool.input_schema).type !== 'object')
      return anthropicRefusal(`tools.${index}.custom.input_schema.type: Input should be 'object'`);
  }
  if (new Set(own.map(({ name }) => name)).size < own.length)
    return anthropicRefusal('tools: Tool names must be unique.');
  const { type: choice } = recordOf(body.tool_choice);
  if (body.tool_choice != null && !['auto', 'any', 'tool', 'none'].includes(stringOf(choice)))
    return anthropicRefusal("tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'");
  if (body.tool_choice != null && tools.length === 0)
    return anthropicRefusal('tool_choice: tool_choice may only be specified while providing tools.');
  for (const [index, message] of recordsOf(body.messages).entries()) {
    const blocks = recordsOf(message.content);
    for (const [at, block] of blocks.entries()) {
      const path = `messages.${index}.content.${at}`;
      if (block.type === 'tool_use') {
        if (tools.length === 0)
          return anthropicRefusal('Requests which include `tool_use` or `tool_result` blocks must define tools');
        if (!ids.test(stringOf(block.id)))
          return anthropicRefusal(`${path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
        if (typeof block.input !== 'object' || block.input === null || Array.isArray(block.input))
          return anthropicRefusal(`${path}.tool_use.input: Input should be a valid dictionary`);
      }
      // Results come first in their message.
      if (block.type === 'tool_result' && blocks.slice(0, at).some(({ type }) => type !== 'tool_result'))
        return anthropicRefusal(`${path}: tool_result blocks must come before other content`);
    }
  }
  return undefined;
}

const sentinel = 'skip_thought_signature_validator';
const signs = 'gemini signed ';

export function geminiSignature(what: string): string {
  return Buffer.from(signs + what).toString('base64');
}

function isSigned(part: Value): boolean {
  const signature = stringOf(part.thoughtSignature);
  return signature === sentinel || Buffer.from(signature, 'base64').toString().startsWith(signs);
}

const declarationFields = ['name', 'description', 'parameters', 'parametersJsonSchema', 'response', 'behavior'];

/** Declarations of `:generateContent`, and the signatures that newer models want back with the first call of each step. */
export function geminiTools(body: Value, modelId: string): Refusal | undefined {
  for (const [index, tool] of recordsOf(body.tools).entries()) {
    for (const [at, declared] of recordsOf(tool.functionDeclarations).entries()) {
      const path = `tools[${index}].function_declarations[${at}]`;
      const stray = Object.keys(declared).find(key => !declarationFields.includes(key));
      if (stray) return unknownField(stray, path);
      if (!/^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$/.test(stringOf(declared.name)))
        return badField(`Invalid function name ${JSON.stringify(declared.name)}.`, `${path}.name`);
    }
  }
  const mode = recordOf(recordOf(body.toolConfig).functionCallingConfig).mode;
  if (mode !== undefined && !['AUTO', 'ANY', 'NONE', 'VALIDATED'].includes(stringOf(mode)))
    return badField(`Invalid value at 'tool_config.function_calling_config.mode', ${String(mode)}`, 'tool_config');
  if (!/^gemini-[3-9]/.test(modelId)) return undefined;
  const contents = recordsOf(body.contents);
  const turn = contents.findLastIndex(
    ({ role, parts }) => role === 'user' && recordsOf(parts).some(part => part.functionResponse === undefined),
  );
  for (const [index, message] of contents.entries()) {
    if (index < turn) continue;
    const first = recordsOf(message.parts).find(part => part.functionCall !== undefined);
    if (first && !isSigned(first))
      return googleRefusal(
        `Function call is missing a thought_signature in functionCall parts. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures (function call ${stringOf(recordOf(first.functionCall).name)}, position ${index}).`,
      );
  }
  return undefined;
}
