import { type FieldTable, firstFieldFault } from './field-check.ts';
import { type OpenAiModel, openAiEfforts, openAiModel } from './open-ai-models.ts';
import { invalidValue, openAiRefusal, quoted, unsupportedParameter, wrongType } from './open-ai-refusal.ts';
import type { Refusal } from './refusal.ts';
import { recordOf, stringOf } from './wire-values.ts';

/** What Responses and Chat Completions refuse alike. */
export function checkFieldsAndModel(
  body: Record<string, unknown>,
  table: FieldTable,
  unknownField: (field: string) => Refusal,
): Refusal | undefined {
  const fault = firstFieldFault(body, table, true);
  if (fault?.kind === 'unknown') return unknownField(fault.field);
  if (fault) return wrongType(fault.field, fault.expected, fault.value);
  if (!stringOf(body.model)) return openAiRefusal('you must provide a model parameter');
  if (body.stream_options != null && body.stream !== true)
    return openAiRefusal("The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
      param: 'stream_options',
    });
  const cacheKey = stringOf(body.prompt_cache_key);
  if (cacheKey.length > 64)
    return openAiRefusal(
      `Invalid 'prompt_cache_key': string too long. Expected at most 64 characters, but got ${cacheKey.length}.`,
      { param: 'prompt_cache_key', code: 'string_above_max_length' },
    );
  const temperature = body.temperature;
  if (typeof temperature === 'number' && (temperature < 0 || temperature > 2))
    return openAiRefusal(`Invalid 'temperature': expected a value from 0 to 2, but got ${temperature}.`, {
      param: 'temperature',
      code: temperature < 0 ? 'decimal_below_min_value' : 'decimal_above_max_value',
    });
  const topP = body.top_p;
  if (typeof topP === 'number' && (topP < 0 || topP > 1))
    return openAiRefusal(`Invalid 'top_p': expected a value from 0 to 1, but got ${topP}.`, {
      param: 'top_p',
      code: topP < 0 ? 'decimal_below_min_value' : 'decimal_above_max_value',
    });
  return undefined;
}

/** The effort must be a word of the interface and one that this model takes. `param` is where the dialect keeps it. */
export function checkEffort(body: Record<string, unknown>, effort: unknown, param: string): Refusal | undefined {
  if (effort == null) return undefined;
  if (typeof effort !== 'string') return wrongType(param, ['string'], effort);
  if (!openAiEfforts.includes(effort)) return invalidValue(param, effort, openAiEfforts);
  const id = stringOf(body.model);
  const model = openAiModel(id);
  if (model.known && !model.reasoning) return unsupportedParameter(param);
  if (model.efforts && !model.efforts.includes(effort))
    return openAiRefusal(
      `Unsupported value: '${effort}' is not supported with the '${id}' model. Supported values are: ${quoted(model.efforts)}.`,
      { param, code: 'unsupported_value' },
    );
  return undefined;
}

/** Reasoning models sample by themselves, but for some while they do not reason. */
export function refusesSampling(model: OpenAiModel, effort: unknown): boolean {
  return model.reasoning && !(model.samplesWithoutEffort && effort === 'none');
}

/** An image is an address or a data URL with bytes of a kind that the vendor sees. */
export function checkImageUrl(value: unknown, param: string): Refusal | undefined {
  const url = typeof value === 'string' ? value : stringOf(recordOf(value).url);
  const data = /^data:([^;,]*);base64,(.*)$/s.exec(url);
  const sound = data
    ? /^image\/(png|jpeg|jpg|gif|webp)$/.test(data[1] ?? '') && /^[A-Za-z0-9+/]+={0,2}$/.test(data[2] ?? '')
    : /^https?:\/\/\S+$/.test(url);
  if (sound) return undefined;
  return openAiRefusal(`Invalid '${param}'. Expected a base64-encoded data URL with an image MIME type or a URL.`, {
    param,
    code: 'invalid_value',
  });
}
