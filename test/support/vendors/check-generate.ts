import { checkContents } from './check-gemini-parts.ts';
import { geminiTools } from './check-tools.ts';
import { type FieldTable, type FieldType, firstFieldFault } from './field-check.ts';
import { type GoogleModel, googleModel } from './google-models.ts';
import { badField, badRequestField, googleRefusal, unknownField } from './google-refusal.ts';
import type { Refusal } from './refusal.ts';
import { numberOf, recordOf, recordsOf, stringOf } from './wire-values.ts';

const fields: FieldTable = {
  cachedContent: ['string'],
  contents: ['array'],
  continuationToken: ['string'],
  generationConfig: ['object'],
  safetySettings: ['array'],
  serviceTier: ['string'],
  systemInstruction: ['object'],
  toolConfig: ['object'],
  tools: ['array'],
};
const configFields: FieldTable = {
  candidateCount: ['integer'],
  enableEnhancedCivicAnswers: ['boolean'],
  frequencyPenalty: ['number'],
  imageConfig: ['object'],
  logprobs: ['integer'],
  maxOutputTokens: ['integer'],
  mediaResolution: ['string'],
  presencePenalty: ['number'],
  responseJsonSchema: ['any'],
  responseLogprobs: ['boolean'],
  responseMimeType: ['string'],
  responseModalities: ['strings'],
  responseSchema: ['object'],
  seed: ['integer'],
  speechConfig: ['object'],
  stopSequences: ['strings'],
  temperature: ['number'],
  thinkingConfig: ['object'],
  topK: ['integer'],
  topP: ['number'],
};
const thinkingFields: FieldTable = {
  includeThoughts: ['boolean'],
  thinkingBudget: ['integer'],
  thinkingLevel: ['string'],
};

const typeWords: Record<FieldType, string> = {
  string: 'TYPE_STRING',
  integer: 'TYPE_INT32',
  number: 'TYPE_FLOAT',
  boolean: 'TYPE_BOOL',
  array: 'a list',
  strings: 'a list of TYPE_STRING',
  object: 'a message',
  any: 'a value',
};

/** What `:generateContent` and `:streamGenerateContent` refuse, for the model of the address. */
export function checkGenerate(body: Record<string, unknown>, modelId: string): Refusal | undefined {
  const model = googleModel(modelId);
  const config = recordOf(body.generationConfig);
  const thinking = recordOf(config.thinkingConfig);
  return (
    checkFields(body, fields, '') ??
    checkFields(config, configFields, 'generation_config') ??
    checkFields(thinking, thinkingFields, 'generation_config.thinking_config') ??
    checkSampling(config) ??
    (config.thinkingConfig === undefined ? undefined : checkThinking(thinking, model)) ??
    checkTools(body.tools, modelId) ??
    checkInstructions(body.systemInstruction, model) ??
    checkContents(body.contents) ??
    geminiTools(body, modelId)
  );
}

const toolFields = ['functionDeclarations', 'googleSearch', 'codeExecution', 'urlContext', 'fileSearch'];

function checkTools(tools: unknown, modelId: string): Refusal | undefined {
  for (const [index, tool] of recordsOf(tools).entries()) {
    const stray = Object.keys(tool).find(key => !toolFields.includes(key));
    if (stray) return unknownField(stray, `tools[${index}]`);
    if (tool.googleSearch !== undefined && !/^gemini-/.test(modelId))
      return googleRefusal('Search Grounding is not supported.');
  }
  const kinds = new Set(recordsOf(tools).flatMap(tool => Object.keys(tool)));
  // From the third generation on both may stand together.
  if (kinds.has('functionDeclarations') && kinds.size > 1 && /^gemini-[12]/.test(modelId))
    return googleRefusal('Tool use with function calling is unsupported');
  return undefined;
}

function checkFields(value: Record<string, unknown>, table: FieldTable, at: string): Refusal | undefined {
  const fault = firstFieldFault(value, table, true);
  if (!fault) return undefined;
  if (fault.kind === 'unknown') return unknownField(fault.field, at);
  const path = [...(at === '' ? [] : [at]), snakeCase(fault.field)].join('.');
  const wanted = fault.expected.map(type => typeWords[type]).join(' or ');
  return badField(`Invalid value at '${path}' (${wanted}), ${JSON.stringify(fault.value)}`, path);
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, letter => `_${letter.toLowerCase()}`);
}

function checkSampling(config: Record<string, unknown>): Refusal | undefined {
  const { maxOutputTokens, temperature, topP, candidateCount, stopSequences } = config;
  if (typeof maxOutputTokens === 'number' && maxOutputTokens < 1)
    return badRequestField('generation_config.max_output_tokens', 'max_output_tokens must be positive.');
  if (typeof temperature === 'number' && (temperature < 0 || temperature > 2))
    return badRequestField('generation_config.temperature', 'temperature must be in the range [0.0, 2.0].');
  if (typeof topP === 'number' && (topP < 0 || topP > 1))
    return badRequestField('generation_config.top_p', 'top_p must be in the range [0.0, 1.0].');
  if (Array.isArray(stopSequences) && stopSequences.length > 5)
    return badRequestField('generation_config.stop_sequences', 'at most 5 stop sequences are allowed.');
  if (typeof candidateCount === 'number' && (candidateCount < 1 || candidateCount > 8))
    return badRequestField('generation_config.candidate_count', 'candidate_count must be in the range [1, 8].');
  return undefined;
}

function checkThinking(thinking: Record<string, unknown>, model: GoogleModel): Refusal | undefined {
  const budget = numberOf(thinking.thinkingBudget);
  const level = thinking.thinkingLevel === undefined ? undefined : stringOf(thinking.thinkingLevel).toLowerCase();
  if (budget !== undefined && level !== undefined)
    return googleRefusal('You can only set only one of thinking budget and thinking level.');
  if (level !== undefined) return checkLevel(level, model);
  if (!model.budget && model.levels.length === 0) return googleRefusal('Thinking is not enabled for this model.');
  if (budget === undefined) return undefined;
  if (!model.budget) return googleRefusal('Thinking budget is not supported for this model.');
  if (budget === 0) {
    if (!model.budget.off) return googleRefusal('Budget 0 is invalid. This model only works in thinking mode.');
    return thinking.includeThoughts === true
      ? googleRefusal('Unable to submit request because include_thoughts is only enabled when thinking is enabled.')
      : undefined;
  }
  const fits = budget === -1 || (budget >= model.budget.min && budget <= model.budget.max);
  if (fits) return undefined;
  return googleRefusal(
    `The thinking budget ${budget} is invalid. Please choose a value between ${model.budget.min} and ${model.budget.max}.`,
  );
}

function checkLevel(level: string, { levels }: GoogleModel): Refusal | undefined {
  if (levels.length === 0) return googleRefusal('Thinking level is not supported for this model.');
  if (levels.includes(level)) return undefined;
  if (['minimal', 'low', 'medium', 'high', 'xhigh'].includes(level))
    return googleRefusal(`Thinking level ${level.toUpperCase()} is not supported for this model.`);
  return badField(
    `Invalid value at 'generation_config.thinking_config.thinking_level' (type.googleapis.com/google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel), ${JSON.stringify(level)}`,
    'generation_config.thinking_config.thinking_level',
  );
}

function checkInstructions(instruction: unknown, model: GoogleModel): Refusal | undefined {
  if (instruction === undefined) return undefined;
  if (!model.instructions) return googleRefusal('Developer instruction is not enabled for this model');
  return checkContents([{ ...recordOf(instruction), role: 'user' }], 'system_instruction');
}
